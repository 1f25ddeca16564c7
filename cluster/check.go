// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/mutual"

	"github.com/quorate/quorate/config/field"
)

// [Check] decodes the files into a configuration that reports, when it is validated, what
// otherwise only a start finds ([startable.Validate]), and then warns of what the system does
// not keep ([startable.warn]).

// Check reads and merges files as [Load] does, and reports besides the faults that
// otherwise only the start of a node would find: an address beyond this machine without
// TLS, certificate files that cannot be used, and names of strategies that do not exist.
// Files that this user may not read are skipped.
func Check(own Own, paths ...string) error {
	o := optionsOf(own.Options)
	o.own = own
	file, err := o.loader().Load(paths...)
	if err != nil {
		return err
	}
	choices, err := o.choiceSections(file)
	if err != nil {
		return err
	}
	s := &startable{
		linkable: linkable{Config: Default(), options: o}, own: own.Strategies, resolve: file.Resolve,
	}
	if err := file.DecodeAll(s, slices.Concat(own.Sections, choices, o.strangeStates(file))...); err != nil {
		return err
	}
	if own.Warn != nil {
		s.warn(own.Warn)
	}
	return nil
}

// warn tells of settings that are right and that this system does not keep.
func (s *startable) warn(tell func(key, reason string)) {
	if why := s.forgetful(); why != "" {
		tell("sharding.allocation.strategy", why)
	}
	if why := lonely(s.Config); why != "" {
		tell("membership.seed-nodes", why)
	}
	if s.options.unenforced == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Plugins)) {
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

	// Sections are the sections of [WithSection]. Where the type of a section is not
	// known, a pointer to an any takes whatever the section holds.
	Sections []config.Section

	// Options are those with which the program starts the node. Only those count that give
	// it something to link, [WithMetrics] for instance: what a file asks for besides is
	// refused.
	Options []Option

	// Warn is told of settings that are no faults and that the system of this process does
	// not keep, once there is no fault: limits of a plugin that it does not know, a user
	// that it does not have; of locations of shards that are not durable; and of a node that finds nobody by itself. Nil if nobody wants to know.
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
	resolve func(path string) string // Makes the path of a file absolute that is relative to the configuration's.
}

// Validate reports every fault that no section sees by itself.
func (s *startable) Validate() error {
	return errors.Join(
		s.linkable.Validate(), s.exposed(),
		s.certificates("transport.tls", s.Transport.TLS), s.certificates("management.tls", s.Management.TLS),
		s.certificates("gateway.tls", s.Gateway.TLS),
		s.joinDecider(),
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
