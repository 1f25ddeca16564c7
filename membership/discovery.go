// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/machine/optional"
)

// The configuration names methods ([DiscoveryConfig]), which are built in or given as an
// option; the node asks them in turn when its machine calls for a lookup ([search.lookUp]).
// The node keeps the state of the search that the machine publishes, for its interfaces
// ([search.sought]).

// DiscoveryConfig is the section of the contact points that are looked up, in place of
// seed nodes.
type DiscoveryConfig struct {
	// Methods are the names of the methods that are asked, in order, until one finds
	// something: "static", which is the list of membership.seed-nodes, a method that the
	// program adds, or a plugin. Empty: nothing is looked up, and the seed nodes are joined.
	Methods []string `koanf:"methods"`

	// JoinDecider is the name of the plugin that decides, in place of the built-in rule,
	// what this node does next with the contact points that were looked up. Empty: the
	// node with the lowest address forms the cluster. While the plugin gives no answer the
	// node goes on looking up, joins no cluster and forms none.
	JoinDecider string `koanf:"join-decider"`

	bootstrap.Config `koanf:",squash"`
}

// Validate reports every fault of the section.
func (c DiscoveryConfig) Validate() error {
	var faults field.Faults
	faults.Add(c.Config.Validate())
	faults.Refuse(c.JoinDecider != "" && !c.Looks(), "join-decider",
		"nobody asks %q, since methods names nothing that finds contact points: name a method, or take the decider out", c.JoinDecider)
	for i, name := range c.Methods {
		faults.Refuse(name == "", "methods", "entry %d is empty", i)
		faults.Refuse(slices.Contains(c.Methods[:i], name), "methods", "%q is given twice", name)
	}
	return faults.Err()
}

// Looks reports whether contact points are looked up.
func (c DiscoveryConfig) Looks() bool { return len(c.Methods) > 0 }

// validateSeeds reports seed nodes that are never asked because contact points are looked up,
// and the method "static" without seed nodes.
func (c ProtocolConfig) validateSeeds() error {
	static := slices.Contains(c.Discovery.Methods, discovery.MethodStatic)
	switch listed := len(c.SeedNodes) > 0; {
	case c.Discovery.Looks() && listed && !static:
		return field.Relate(field.Errorf("seed-nodes", "nobody asks them while discovery.methods looks contact points up: take them out, or add the method %q", discovery.MethodStatic), "discovery.methods")
	case static && !listed:
		return field.Relate(field.Errorf("discovery.methods", "the method %q finds nobody: it is the list seed-nodes, which is empty", discovery.MethodStatic), "seed-nodes")
	}
	return nil
}

// WithDiscovery adds methods by which contact points are looked up, each under the name by
// which membership.discovery.methods selects it. Methods that are not named there are not
// asked. The node tells its address to a method that is a [discovery.Announcer]. The caller
// closes the methods, after the node has ended. The methods of several such options all count.
func WithDiscovery(methods ...discovery.Method) Option {
	return func(o *options) { o.methods = append(o.methods, methods...) }
}

// WithJoinDecider sets the decider that says, in place of the built-in rule, what this node
// does next with the contact points that it has looked up. It needs
// membership.discovery.methods; for people it has the name that the configuration gives as
// join-decider. While the decider gives no answer the node goes on asking the contact points,
// joins no cluster and forms none.
func WithJoinDecider(d bootstrap.JoinDecider) Option { return func(o *options) { o.decider = d } }

// search looks contact points up for the machine of a node, and keeps the state of the search.
type search struct {
	found   discovery.Discovery   // Nil: contact points are not looked up.
	decider bootstrap.JoinDecider // Nil: the machine decides by the built-in rule.

	told                          atomic.Pointer[Bootstrap] // Nil until the machine has told the first state.
	answered, empty, failed, size atomic.Int64
}

// open puts the methods together that the options give and the configuration names, and
// returns the settings of the machine for the search, nil if contact points are not looked up.
func (s *search) open(cfg Config, o options, self gossip.Address) (*protocol.Bootstrap, error) {
	section := cfg.Membership.Discovery
	if !section.Looks() {
		if o.decider != nil {
			return nil, errors.New("a JoinDecider was given, and membership.discovery.methods names nothing that finds contact points")
		}
		return nil, nil // Without a search nothing is wrong.
	}
	if o.decider != nil {
		if err := optional.Check(o.decider, reflect.TypeFor[bootstrap.JoinDecider](), reflect.TypeFor[bootstrap.Classed]()); err != nil {
			return nil, fmt.Errorf("membership: the JoinDecider: %w", err)
		}
	}
	if section.JoinDecider != "" && o.decider == nil {
		return nil, field.Errorf("membership.discovery.join-decider", "%q is not the name of a plugin, and the program gives no decider by WithJoinDecider: add it to the section plugins, or take the name out", section.JoinDecider)
	}
	if section.Service == "" {
		section.Service = cfg.Cluster.Name
	}
	for _, name := range section.Methods {
		given := func(m discovery.Method) bool { return m.Name == name }
		if name != discovery.MethodStatic && !slices.ContainsFunc(o.methods, given) {
			return nil, field.Errorf("membership.discovery.methods", "%q is neither built in (%s) nor given by WithDiscovery", name, discovery.MethodStatic)
		}
	}
	if err := announceTo(section, o.methods, self); err != nil {
		return nil, err
	}
	found, err := discovery.New(discovery.Config{
		Methods: section.Methods, Endpoints: cfg.Membership.SeedNodes, LookupTimeout: section.ResolveTimeout,
	}, o.methods...)
	if err != nil {
		return nil, err
	}
	s.found, s.decider = found, o.decider
	// The methods have their limits one after the other. The second more is for a method that
	// takes a moment to return after its limit has passed.
	limit := time.Duration(len(section.Methods))*section.ResolveTimeout + time.Second
	return &protocol.Bootstrap{Config: section.Config, Limit: limit, Asked: o.decider != nil}, nil
}

// announceTo tells the address of this node to the selected methods that are announcers.
func announceTo(section DiscoveryConfig, methods []discovery.Method, self gossip.Address) error {
	for _, m := range methods {
		if err := optional.Check(m.Discovery, reflect.TypeFor[discovery.Discovery](), reflect.TypeFor[discovery.Announcer](), reflect.TypeFor[discovery.Classed]()); err != nil {
			return fmt.Errorf("membership: discovery by %s: %w", m.Name, err)
		}
		a, has := m.Discovery.(discovery.Announcer)
		if !has || !slices.Contains(section.Methods, m.Name) {
			continue
		}
		if err := a.Announce(section.Service, discovery.Target{Host: self.Host, Port: self.Port}); err != nil {
			return fmt.Errorf("membership: discovery by %s: %w", m.Name, err)
		}
	}
	return nil
}

// lookUp answers the machine's call for a lookup.
func (s *search) lookUp(ctx context.Context, q discovery.Query) (any, error) {
	return s.found.Lookup(ctx, q)
}

// decide answers the machine's call for a decision.
func (s *search) decide(ctx context.Context, seen bootstrap.Observations) (any, error) {
	return s.decider.Decide(ctx, seen)
}

// Bootstrap is the state of a node's search for contact points.
type Bootstrap struct {
	// Line says in one sentence what the node waits for, or that it waits for nothing.
	Line string
	// Points are the contact points that the last lookup has found, sorted by address.
	Points []ContactPoint
	// Required is how many contact points must answer and vote where nobody remembers a
	// cluster.
	Required int
	// StableMargin is for how long the set of contact points must be unchanged before a
	// cluster is formed, Stable for how long it had been unchanged when the machine told of
	// the search last, after a lookup or a round of questions.
	StableMargin, Stable time.Duration
	// Fault is why the last lookup failed, empty if that lookup answered.
	Fault string
	// LookedUp is when a lookup answered last, by the clock of this node; zero: never.
	LookedUp time.Time
}

// ContactPoint is one contact point, as a node knows it.
type ContactPoint struct {
	// Address is the "host:port" of the contact point.
	Address string
	// Answers says that the contact point has answered lately.
	Answers bool
	// Member says that the node there is in a cluster that goes on.
	Member bool
}

// sought keeps the state of the search that the machine tells.
func (s *search) sought(e protocol.SearchProgress, now time.Time) {
	b := &Bootstrap{
		Line: e.Line, Required: e.Observations.Required, StableMargin: e.Observations.StableMargin, Stable: e.Observations.Stable, Fault: e.Fault,
	}
	if before := s.told.Load(); before != nil {
		b.LookedUp = before.LookedUp
	}
	for _, p := range e.Observations.Points {
		b.Points = append(b.Points, ContactPoint{Address: p.Point.String(), Answers: p.Answered >= 0, Member: len(p.SeedNodes) > 0})
	}
	if e.LookedUp {
		s.count(e, b, now)
	}
	s.told.Store(b)
}

// count counts a lookup that has ended.
func (s *search) count(e protocol.SearchProgress, b *Bootstrap, now time.Time) {
	if e.Fault != "" {
		s.failed.Add(1)
		return
	}
	b.LookedUp = now.UTC()
	s.size.Store(int64(len(b.Points)))
	if len(b.Points) == 0 {
		s.empty.Add(1)
	} else {
		s.answered.Add(1)
	}
}

// joined notes that the node is in a cluster.
func (s *search) joined() {
	if before := s.told.Load(); before != nil && before.Line != lineJoined {
		b := *before
		b.Line = lineJoined
		s.told.Store(&b)
	}
}

// lineJoined is the Line of a node that is in a cluster.
const lineJoined = "nothing: this node is in a cluster"
