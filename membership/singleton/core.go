// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The vocabulary of a core comes first: messages, phases, configuration, [Actions]. Then
// come its inputs, each of which ends in the same evaluation of the rule
// ([Core.evaluate]), and last the rule.

// Message is a message between two cores: [Request] or [Done].
type Message interface{ singletonMessage() }

// Request asks a member that is leaving to confirm that its instance has stopped.
type Request struct{}

// Done confirms that the sender, which is leaving, runs no instance and never
// will again in this incarnation.
type Done struct{}

func (Request) singletonMessage() {}
func (Done) singletonMessage()    {}

// Phase is the state of a core.
type Phase uint8

// The phases.
const (
	Younger     Phase = iota // An older member is responsible, or its age is not known yet.
	Becoming                 // The oldest, except for members whose confirmation is awaited.
	Oldest                   // The instance runs here.
	HandingOver              // The instance was told to stop.
	Ended                    // The instance stopped, and never starts here again.
)

// String returns the name of the phase.
func (p Phase) String() string {
	names := [...]string{"younger", "becoming", "oldest", "handing-over", "ended"}
	if int(p) < len(names) {
		return names[p]
	}
	return "none"
}

// Config configures a core.
type Config struct {
	// Role is the role that a candidate needs; empty for none.
	Role string
	// Service must run on a candidate; 0 for none.
	Service machine.Service
	// Retry is the time after which a request is repeated. Default 1 s.
	Retry time.Duration
	// Limit is the time after which a hand-over is reported as stuck. Default 10 s.
	Limit time.Duration
	// Starts is how often an earlier core of the same instance may have started it on this node: the terms of this
	// core are above those. 0: there was none.
	Starts uint64
}

// Send is a message to the core of another member.
type Send struct {
	To      gossip.NodeID
	Message Message
}

// Actions collects what a core wants to have done. The zero value is ready for use.
type Actions struct {
	// Start is the term under which to start the instance; zero for none.
	Start Term
	// Stop says that the instance must stop; [Core.InstanceStopped] answers.
	Stop bool
	// Send are messages to send, in order.
	Send []Send
	// Stuck are members whose hand-over takes longer than the limit; each is reported
	// once.
	Stuck []gossip.NodeID
}

// Core applies the rule of this package to one instance. See the package comment.
type Core struct {
	cfg    Config
	fences *component.Fences // Shared with all that belong to the component.
	self   gossip.NodeID
	state  *gossip.State
	phase  Phase
	term   Term
	floor  gossip.Age

	starts uint64
	// known are the candidates that were members and are not fenced; with the zero age,
	// candidates of which only the removal is known.
	known   map[gossip.NodeID]gossip.Age
	stopped map[gossip.NodeID]bool    // Members that have confirmed that their instance stopped.
	asked   map[gossip.NodeID]request // Members that were asked to confirm.
	askers  []gossip.NodeID           // Members that wait for this one's confirmation.
}

// request is the state of the request to one member.
type request struct {
	first, last machine.Instant
	reported    bool
}

// New returns a core in the phase [Younger]. It asks the fences of the component that it
// is a part of, and leaves adding and forgetting to the component.
func New(cfg Config, fences *component.Fences) *Core {
	if cfg.Retry <= 0 {
		cfg.Retry = time.Second
	}
	if cfg.Limit <= 0 {
		cfg.Limit = 10 * time.Second
	}
	return &Core{
		cfg:     cfg,
		fences:  fences,
		starts:  cfg.Starts,
		known:   make(map[gossip.NodeID]gossip.Age),
		stopped: make(map[gossip.NodeID]bool),
		asked:   make(map[gossip.NodeID]request),
	}
}

// Phase returns the phase.
func (c *Core) Phase() Phase { return c.phase }

// Term returns the term of the last start here; zero if there was none.
func (c *Core) Term() Term { return c.term }

// Asked reports whether another member waits for this one's confirmation.
func (c *Core) Asked() bool { return len(c.askers) > 0 }

// SetFloor excludes candidates that are older than floor. A party that obeyed a term of
// floor would refuse a term of such a candidate; the candidate can be the oldest only if
// the service came to it after younger members had it. Floors only rise.
func (c *Core) SetFloor(floor gossip.Age) {
	if c.floor.Compare(floor) < 0 {
		c.floor = floor
	}
}

// Update takes a new state of the cluster, after the fences have dropped what it has
// forgotten.
func (c *Core) Update(now machine.Instant, self gossip.NodeID, state *gossip.State, out *Actions) {
	prev := c.state
	c.self, c.state = self, state
	for _, m := range state.Members() {
		if m.Node != self && c.candidate(m) && !c.fences.Has(m.Node) {
			c.known[m.Node] = m.Age()
		}
	}
	if state != prev {
		c.noteRemoved(prev)
	}
	c.evaluate(now, out)
}

// noteRemoved notes members that were removed before this node knew them: a node that
// joins between the removal of a member and that member's fence may be the oldest by
// then, and must not start while the removed member can still be running the instance.
func (c *Core) noteRemoved(prev *gossip.State) {
	if prev == nil {
		prev = new(gossip.State)
	}
	for _, t := range c.state.Tombstones() {
		if c.fences.Has(t.Node) || prev.Member(t.Node) != nil {
			continue
		}
		if _, before := prev.Removed(t.Node); !before {
			c.known[t.Node] = gossip.Age{}
		}
	}
}

// Fenced says that a removed member cannot be running anything any more, after the member
// was added to the fences. It panics if it was not added: the next state would make the
// core wait for that member again.
func (c *Core) Fenced(now machine.Instant, node gossip.NodeID, out *Actions) {
	machine.Assert(c.fences.Has(node), "a node is added to the fences before a core hears of it", "node", node)
	delete(c.known, node)
	delete(c.asked, node)
	delete(c.stopped, node)
	c.evaluate(now, out)
}

// Receive takes a message of another member's core.
func (c *Core) Receive(now machine.Instant, from gossip.NodeID, m Message, out *Actions) {
	switch m.(type) {
	case Request:
		if !slices.Contains(c.askers, from) {
			c.askers = append(c.askers, from)
		}
	case Done:
		c.stopped[from] = true
	}
	c.evaluate(now, out)
}

// InstanceStopped answers [Actions.Stop].
func (c *Core) InstanceStopped(now machine.Instant, out *Actions) {
	if c.phase == HandingOver {
		c.phase = Ended
		c.evaluate(now, out)
	}
}

// Retire stops the instance although this member stays: the instance was started under a
// term that others refuse. It starts again when the rule and the floor permit.
func (c *Core) Retire(floor gossip.Age) {
	c.SetFloor(floor)
	if c.phase == Oldest {
		c.phase = Younger
	}
}

// Tick repeats requests. It is called every Retry or more often.
func (c *Core) Tick(now machine.Instant, out *Actions) { c.evaluate(now, out) }

// candidate reports whether m can run, or have run, the instance.
func (c *Core) candidate(m *gossip.Member) bool {
	return m.UpNumber > 0 && m.Age().Compare(c.floor) >= 0 &&
		(c.cfg.Role == "" || m.HasRole(c.cfg.Role)) &&
		(c.cfg.Service == 0 || m.HasService(uint16(c.cfg.Service)))
}

func (c *Core) evaluate(now machine.Instant, out *Actions) {
	if c.state == nil {
		return
	}
	me := c.state.Member(c.self)
	staying := me != nil && me.Status >= gossip.Up && me.Status < gossip.Leaving
	switch {
	case c.phase == Oldest && !staying:
		c.phase = HandingOver
		out.Stop = true
	case c.phase <= Becoming && me != nil && me.Status >= gossip.Leaving:
		c.phase = Ended
	case c.phase <= Becoming && staying && c.candidate(me):
		c.approach(now, me, out)
	case c.phase == Becoming:
		c.phase = Younger
	}
	if c.phase == Ended {
		for _, to := range c.askers {
			out.Send = append(out.Send, Send{To: to, Message: Done{}})
		}
		c.askers = c.askers[:0]
	}
}

// approach starts the instance if the rule permits, or asks for missing confirmations.
func (c *Core) approach(now machine.Instant, me *gossip.Member, out *Actions) {
	older, waiting := c.older(me.Age())
	switch {
	case older:
		c.phase = Younger
	case len(waiting) > 0:
		c.phase = Becoming
		for _, node := range waiting {
			c.ask(now, node, out)
		}
	default:
		c.starts++
		c.phase, c.term = Oldest, Term{UpNumber: me.UpNumber, UID: c.self.UID, Start: c.starts}
		out.Start = c.term
	}
}

// older reports whether an older candidate blocks this one that cannot be asked: one that
// stays, is down, or is removed and not fenced. Otherwise waiting are the older
// candidates that are leaving and have not confirmed.
func (c *Core) older(mine gossip.Age) (blocked bool, waiting []gossip.NodeID) {
	for node, age := range c.known {
		younger := cmp.Or(age.Compare(mine), node.Compare(c.self)) > 0 // Uids may be equal at two addresses.
		if age != (gossip.Age{}) && (age.Compare(c.floor) < 0 || younger) {
			continue
		}
		m := c.state.Member(node)
		switch {
		case m == nil || m.Status < gossip.Leaving || m.Status >= gossip.Down:
			blocked = true
		case !c.stopped[node]:
			waiting = append(waiting, node)
		}
	}
	slices.SortFunc(waiting, gossip.NodeID.Compare)
	return blocked, waiting
}

func (c *Core) ask(now machine.Instant, node gossip.NodeID, out *Actions) {
	r, again := c.asked[node]
	if again && now.Sub(r.last) < c.cfg.Retry {
		return
	}
	if !again {
		r.first = now
	}
	r.last = now
	if !r.reported && now.Sub(r.first) >= c.cfg.Limit {
		r.reported = true
		out.Stuck = append(out.Stuck, node)
	}
	c.asked[node] = r
	out.Send = append(out.Send, Send{To: node, Message: Request{}})
}

// String describes the core in one line.
func (c *Core) String() string {
	return fmt.Sprintf("%s term %s floor %d known %d confirmed %d", c.phase, c.term, c.floor.UpNumber, len(c.known), len(c.stopped))
}
