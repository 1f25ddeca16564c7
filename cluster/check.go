// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"

	"github.com/quorate/quorate/config/field"
)

// [Check] and [Start] decode the files into a configuration that reports, when it is validated, what else would be
// found one after the other while parts start ([startable.Validate]), so that both say the same. Check knows besides
// which strategies a program has, and warns of what the system does not keep ([startable.warn]). What several files say
// of one cluster is compared in compare.go.

// Check reads and merges files as [Load] does, and reports besides the faults that otherwise only the start of a node
// would find: an address beyond this machine without TLS, two listeners with one port, certificates that can never
// work, files that are not there, executables of plugins that cannot be started, and names of strategies that do not
// exist. [Start] reports the same. Files that this user may not read are skipped.
func Check(own Extensions, paths ...string) error {
	s, err := check(own, paths...)
	if err == nil && own.Warn != nil {
		s.warn(own.Warn)
	}
	return err
}

// CheckEach checks files of which each is that of another node of one cluster, as [Check] does, and
// compares them: names of clusters that differ and addresses that do not are faults. [Extensions.Warn] is told of lists
// of seed nodes that differ, and of nodes without a data directory among others.
func CheckEach(own Extensions, paths ...string) error {
	var faults config.Errors
	all := make([]*startCheck, 0, len(paths))
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
func check(own Extensions, paths ...string) (*startCheck, error) {
	o, file, beside, err := read(own, paths)
	if err != nil {
		return nil, err
	}
	s := &startCheck{
		linkCheck: linkCheck{Config: Default(), options: o}, resolve: file.Resolve,
	}
	return s, file.DecodeAll(s, beside...)
}

// read reads files for a program with its extensions, and returns the sections beside those of a node.
func read(own Extensions, paths []string) (*options, *config.File, []config.Section, error) {
	o := optionsOf(own.Options)
	o.own = own
	file, err := o.loader().Load(paths...)
	if err != nil {
		return nil, nil, nil, err
	}
	choices, err := o.choiceSections(file)
	return o, file, slices.Concat(own.Sections, choices, o.strangeStates(file)), err
}

// warn tells of settings that are right and that this system does not keep, or that are for development.
func (s *startCheck) warn(tell func(key, reason string)) {
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
		var lacks []error
		if !s.chooses(name) {
			lacks = append(lacks, s.unstartable(name))
		}
		if s.Plugins[name].Debug {
			lacks = append(lacks, field.Errorf("plugins."+name+".debug", "no limit of time ends its start, and it is not killed when it does not answer: for development alone"))
		}
		if s.options.unenforced != nil {
			lacks = append(lacks, field.Within("plugins."+name, s.options.unenforced(s.Plugins[name])))
		}
		told := map[string]bool{} // A user that cannot be had is in both lists.
		for _, lack := range field.Parts(errors.Join(lacks...)) {
			if !told[lack.Error()] {
				told[lack.Error()] = true
				tell(field.Of(lack))
			}
		}
	}
}

// Extensions is what a program adds to a node, for [Check].
type Extensions struct {
	// Strategies are the names of strategies that the program gives the node by options.
	Strategies []string

	// Kinds are the names of the kinds of entities that the program has, for gateway.kinds. Empty: they are not known,
	// and not looked at.
	Kinds []string

	// Sections are the sections of [WithSection]. Where the type of a section is not
	// known, a pointer to an any takes whatever the section holds.
	Sections []config.Section

	// Options are those with which the program starts the node. Only those count that give
	// it settings of a provider, or something to link, [WithMetrics] for instance: what a file asks for besides is
	// refused.
	Options []Option

	// Warn is told of settings that are no faults and that the system of this process does not keep, once there is no
	// fault: limits of a plugin that it does not know, a user that it does not have, the executable of a plugin that
	// nothing chooses; of plugins that may be debugged; of locations of shards that are not durable; and of a node that
	// finds nobody by itself, or itself under another name. Nil if nobody wants to know.
	Warn func(key, reason string)

	// Whole says that Options link everything that the project has, as the quorate command
	// does: the name of a method of discovery that is not among them is reported as unknown,
	// and not as something that the program may have to link.
	Whole bool
}

// startCheck is a configuration that is checked as for a start.
type startCheck struct {
	linkCheck `koanf:",squash"`

	resolve func(path string) string // Makes the path of a file absolute that is relative to the configuration's.
}

// Validate reports every fault that no section sees by itself.
func (s *startCheck) Validate() error {
	return errors.Join(s.linkCheck.Validate(), s.listeners(), s.certificates(), s.files(), s.plugins(), s.unknown(), s.unserved())
}

// unknown reports names of strategies that nothing in the program has, and a node that other machines reach.
func (s *startCheck) unknown() error {
	given := membership.GivenBy(s.options.membership...)
	var faults field.Faults
	if !given.Transport {
		faults.Add(s.exposed())
	}
	if name := s.Membership.FailureDetector.Strategy; !slices.Contains(given.Detectors, name) {
		faults.Add(s.known("membership.failure-detector.strategy", name, "WithFailureDetector or WithJudge", fd.BuiltIns()))
	}
	if !given.Downing {
		faults.Add(s.known("downing.strategy", s.Downing.Strategy, "WithDowning", downingNames()))
	}
	if !sharding.GivesAllocation(s.options.sharding...) {
		faults.Add(s.known("sharding.allocation.strategy", s.Sharding.Allocation.Strategy, "WithAllocation", allocationNames()))
	}
	if !given.JoinDecider {
		faults.Add(s.joinDecider())
	}
	return faults.Err()
}

// exposed reports a node that other machines can reach without TLS.
func (s *startCheck) exposed() error {
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
	return field.Relate(field.Errorf(key, "%s is not on the loopback interface, where alone a node listens without TLS: configure transport.tls, or set transport.allow-insecure", address), "transport.tls")
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

// known reports the name of a strategy that does not exist. Its section reports that it is empty.
func (s *startCheck) known(key, name, option string, builtIn []string) error {
	if name == "" || slices.Contains(builtIn, name) || s.named(name) {
		return nil
	}
	return field.Errorf(key, "%q is neither built in (%s) nor the name of a plugin, and the program gives none of that name by %s: write the name of one that there is, "+
		"or add a plugin to the section plugins; config check is told by --own of one that a program gives", field.Clip(name), strings.Join(builtIn, ", "), option)
}

// joinDecider reports the name of a decider that does not exist. The built-in rule has no name.
func (s *startCheck) joinDecider() error {
	name := s.Membership.Discovery.JoinDecider
	if name == "" || s.named(name) {
		return nil
	}
	return field.Errorf("membership.discovery.join-decider", "%q is not the name of a plugin, and the program gives no decider by WithJoinDecider: "+
		"add it to the section plugins, or take the name out; config check is told by --own of one that a program gives", field.Clip(name))
}

// named reports whether a plugin has a name, or what [Check] was told that the program brings.
func (s *startCheck) named(name string) bool {
	_, plugin := s.Plugins[name]
	return plugin || slices.Contains(s.options.own.Strategies, name)
}

// unserved reports kinds that clients are to reach and that the program does not have.
func (s *startCheck) unserved() error {
	var faults []error
	for _, kind := range s.Gateway.Kinds {
		if own := s.options.own.Kinds; len(own) > 0 && kind != gateway.All && !slices.Contains(own, kind) {
			faults = append(faults, field.Errorf("gateway.kinds", "%q is no kind of the program, which has %s, so that clients are refused: correct the name, or name it to config check by --kinds", field.Clip(kind), strings.Join(own, ", ")))
		}
	}
	return errors.Join(faults...)
}
