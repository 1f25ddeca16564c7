// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"

	"github.com/quorate/quorate/config/field"
)

// [Check] decodes the files into a configuration that reports, when it is validated, what
// otherwise only a start finds ([startable.Validate]), and then warns of what the system does
// not keep ([startable.warn]). What several files say of one cluster is compared in compare.go.

// Check reads and merges files as [Load] does, and reports besides the faults that
// otherwise only the start of a node would find: an address beyond this machine without
// TLS, certificate files that cannot be used, and names of strategies that do not exist.
// Files that this user may not read are skipped.
func Check(own Own, paths ...string) error {
	s, err := check(own, paths...)
	if err == nil && own.Warn != nil {
		s.warn(own.Warn)
	}
	return err
}

// CheckEach checks files of which each is that of another node of one cluster, as [Check] does, and
// compares them: names of clusters that differ and addresses that do not are faults. [Own.Warn] is told of lists of
// seed nodes that differ, and of nodes without a data directory among others.
func CheckEach(own Own, paths ...string) error {
	var faults config.Errors
	all := make([]*startable, 0, len(paths))
	for _, path := range paths {
		s, err := check(own, path)
		var some config.Errors
		switch {
		case errors.As(err, &some):
			faults = append(faults, some...)
		case err != nil:
			return err
		}
		all = append(all, s)
	}
	if len(faults) > 0 {
		return faults
	}
	faults = compare(all, paths, own.Warn)
	if len(faults) > 0 {
		return faults
	}
	for _, s := range all {
		if own.Warn != nil {
			s.warn(own.Warn)
		}
	}
	return nil
}

// check decodes files, and reports every fault.
func check(own Own, paths ...string) (*startable, error) {
	o := optionsOf(own.Options)
	o.own = own
	file, err := o.loader().Load(paths...)
	if err != nil {
		return nil, err
	}
	choices, err := o.choiceSections(file)
	if err != nil {
		return nil, err
	}
	s := &startable{
		linkable: linkable{Config: Default(), options: o}, own: own.Strategies, kinds: own.Kinds, resolve: file.Resolve,
	}
	return s, file.DecodeAll(s, slices.Concat(own.Sections, choices, o.strangeStates(file))...)
}

// warn tells of settings that are right and that this system does not keep.
func (s *startable) warn(tell func(key, reason string)) {
	if why := s.forgetful(); why != "" {
		tell("sharding.allocation.strategy", why)
	}
	if why := lonely(s.Config); why != "" {
		tell("membership.seed-nodes", why)
	}
	for _, entry := range s.ownEntries() {
		tell(field.Of(entry))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Plugins)) {
		if key, why := s.unstartable(s.Plugins[name]); why != "" {
			tell("plugins."+name+"."+key, why)
		}
		if s.options.unenforced == nil {
			continue
		}
		for _, lack := range field.Parts(s.options.unenforced(s.Plugins[name])) {
			key, reason := field.Of(lack)
			tell("plugins."+name+"."+key, reason)
		}
	}
}

// Own is what a program adds to a node, for [Check].
type Own struct {
	// Strategies are the names of strategies that the program gives the node by options.
	Strategies []string

	// Kinds are the names of the kinds of entities that the program has, for gateway.kinds. Empty: they are not known,
	// and not looked at.
	Kinds []string

	// Sections are the sections of [WithSection]. Where the type of a section is not
	// known, a pointer to an any takes whatever the section holds.
	Sections []config.Section

	// Options are those with which the program starts the node. Only those count that give
	// it something to link, [WithMetrics] for instance: what a file asks for besides is
	// refused.
	Options []Option

	// Warn is told of settings that are no faults and that the system of this process does
	// not keep, once there is no fault: limits of a plugin that it does not know, a user or
	// an executable that it does not have; of locations of shards that are not durable; of a node that finds nobody by itself,
	// or itself under another name. Nil if nobody wants to know.
	Warn func(key, reason string)

	// Whole says that Options link everything that the project has, as the quorate command
	// does: the name of a method of discovery that is not among them is reported as unknown,
	// and not as something that the program may have to link.
	Whole bool
}

// startable is a configuration that is checked as for a start.
type startable struct {
	linkable `koanf:",squash"`

	own     []string                 // The strategies of the program itself.
	kinds   []string                 // The kinds of the program; empty if they are not known.
	resolve func(path string) string // Makes the path of a file absolute that is relative to the configuration's.
}

// Validate reports every fault that no section sees by itself.
func (s *startable) Validate() error {
	return errors.Join(
		s.linkable.Validate(), s.exposed(),
		s.certificates("transport.tls", s.Transport.TLS), s.certificates("management.tls", s.Management.TLS),
		s.certificates("gateway.tls", s.Gateway.TLS),
		s.joinDecider(), s.unserved(),
		s.known("membership.failure-detector.strategy", s.Membership.FailureDetector.Strategy, fd.BuiltIns()...),
		s.known("downing.strategy", s.Downing.Strategy, downingNames()...),
		s.known("sharding.allocation.strategy", s.Sharding.Allocation.Strategy, allocationNames()...),
	)
}

// exposed reports a node that other machines can reach without TLS.
func (s *startable) exposed() error {
	if s.Transport.TLS.Complete() || s.Transport.AllowInsecure {
		return nil
	}
	key, address := "transport.bind", s.Transport.Bind
	if address == "" {
		key, address = "node.address", s.Node.Address
	}
	if !beyond(address) {
		return nil
	}
	return field.Errorf(key, "%s is not on the loopback interface, where alone a node listens without TLS: configure transport.tls, or set transport.allow-insecure", address)
}

// beyond reports whether other machines can reach an address. Its section, and not this
// function, reports a text that is no address.
func beyond(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.Unmap().IsLoopback()
}

// certificates opens the files of a section as a start does.
func (s *startable) certificates(key string, names transport.TLSFiles) error {
	if !names.Complete() { // No files are named, or the section reports which one is missing.
		return nil
	}
	for _, path := range names.Paths() {
		*path = s.resolve(*path)
	}
	_, err := mutual.Open(names, nil)
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return &field.Error{Key: key, Reason: strings.ReplaceAll(err.Error(), "\n", "; "), Err: err}
}

// known reports the name of a strategy that does not exist.
func (s *startable) known(key, name string, builtIn ...string) error {
	_, plugin := s.Plugins[name]
	if plugin || name == "" || slices.Contains(builtIn, name) || slices.Contains(s.own, name) { // The section reports an empty name.
		return nil
	}
	return field.Errorf(key, "%q is neither built in (%s) nor the name of a plugin; a strategy of the program itself is given to config check by --own", name, strings.Join(builtIn, ", "))
}

// unserved reports kinds that clients are to reach and that the program does not have.
func (s *startable) unserved() error {
	var faults []error
	for _, kind := range s.Gateway.Kinds {
		if len(s.kinds) > 0 && kind != gateway.All && !slices.Contains(s.kinds, kind) {
			faults = append(faults, field.Errorf("gateway.kinds", "%q is no kind of the program, which has %s, so that clients are refused: correct the name, or name it to config check by --kinds", field.Clip(kind), strings.Join(s.kinds, ", ")))
		}
	}
	return errors.Join(faults...)
}

// unstartable says at which key why a plugin cannot be started on this machine, an empty text if nothing is in the way. A
// node starts without it, and the machine of the node may be another one.
func (s *startable) unstartable(p plugins.Config) (key, why string) {
	if found := variable.FindString(p.Path); found != "" {
		return "path", fmt.Sprintf("%q has the variable %s, and nothing replaces it in a file: write the path", field.Clip(p.Path), found)
	}
	path := s.resolve(p.Path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "path", path + " is not on this machine: correct it, unless the nodes have the file"
	case err != nil: // This user may not look, and the node may.
		return "", ""
	case info.IsDir():
		return "path", path + " is a directory: name the executable in it"
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return "path", path + " is not executable: say chmod +x"
	}
	if sum := checksum(path); p.SHA256 != "" && sum != "" && !strings.EqualFold(sum, p.SHA256) {
		return "sha256", fmt.Sprintf("is not that of %s on this machine, %s, so that the plugin is not started: quorate plugin pin writes it", path, sum)
	}
	return "", ""
}

// checksum returns the checksum of a file, empty if it cannot be read.
func checksum(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // It was only read.
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
