// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The machine of a node. On the side of who asks: ask sends a question to all, answered takes what they say, and
// finish ends it; on the other side serve has the program look, and gathered sends what it found.

// Service is the number under which questions and answers travel.
const Service = component.ServiceSurvey

// ComponentName is the name of [Machine] among the components of a node.
const ComponentName = "surveys"

// Ask is the command to ask nodes. [Finished] with the same ID ends it.
type Ask struct {
	ID    uint64
	Limit time.Duration // Above 0, at most [LimitMax].
	// Question is put to all members that run sharding, unless To says which node is asked what. IDs and limits are set
	// by the machine.
	Question Question
	To       []Part
}

// Part is a question to one node.
type Part struct {
	Node     gossip.NodeID
	Question Question
}

// Said is the answer of a node.
type Said struct {
	Node   gossip.NodeID
	Answer Answer
}

// Missing is a node that has not answered.
type Missing struct {
	Node gossip.NodeID
	Why  string
	// Unasked says that the node has not had the question.
	Unasked bool
}

// Finished is published when all that were asked have answered, or the limit is over.
type Finished struct {
	ID      uint64
	Said    []Said    // Sorted by node.
	Missing []Missing // Sorted by node.
}

// Gather is an effect: find out what the question asks for, and say so by [Gathered].
type Gather struct {
	From     gossip.NodeID
	Question Question
}

// Gathered is the input that answers [Gather].
type Gathered struct {
	To     gossip.NodeID
	Answer Answer
}

// Bounds of what a node does at one time.
const (
	maxAsks   = 16
	maxServed = 16
	// maxHeard is how many questions of others are remembered, so that none is acted upon twice.
	maxHeard = 1024
)

// Machine asks, and answers, for a node. Create it with [New]. Invariants, between steps:
//
//	Q1  every Ask is answered by one Finished;
//	Q2  a question is served once, and as long as it is there are no more than maxServed;
//	Q3  an answer counts if its node was asked under its number, and is the first.
type Machine struct {
	self  gossip.NodeID
	state *gossip.State
	last  uint64 // The number of the last question.
	asks  []*asking
	heard map[heard]bool
	order []heard // In the order in which they came, a ring from next on once it is full.
	next  int
	serve map[heard]bool // Questions of others under way.

	now machine.Now
	out *machine.Outbox
}

// heard names a question.
type heard struct {
	from gossip.NodeID
	id   uint64
}

// asking is a question of this node under way.
type asking struct {
	Ask
	until   machine.Instant
	waiting map[gossip.NodeID]uint64 // The number of the question that each node has.
	result  Finished
}

type limitTimer struct{ ID uint64 }

var _ machine.Machine = (*Machine)(nil)

// New returns the machine of a node.
func New(self gossip.NodeID) *Machine {
	machine.Assert(!self.IsZero(), "a node that is asked has an id")
	return &Machine{self: self, heard: make(map[heard]bool), serve: make(map[heard]bool)}
}

// Step feeds one input.
func (m *Machine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	m.now, m.out = now, out
	switch in := in.(type) {
	case machine.Started:
		out.Publish(component.Services{Service: Service})
	case component.Changed:
		m.state = in.State
		m.left()
	case Ask:
		m.ask(in)
	case Gathered:
		m.gathered(in)
	case machine.Received:
		switch message := in.Message.(type) {
		case Question:
			m.asked(in.From, message)
		case Answer:
			m.answered(in.From, message)
		}
	case machine.Fired:
		if t, ok := in.Timer.(limitTimer); ok {
			m.expire(t.ID)
		}
	case component.Stopping:
		for len(m.asks) > 0 {
			m.expire(m.asks[0].ID)
		}
	}
	m.out = nil
}

// ask puts a question to the nodes.
func (m *Machine) ask(in Ask) {
	a := &asking{Ask: in, waiting: make(map[gossip.NodeID]uint64), result: Finished{ID: in.ID}}
	a.Limit = min(max(a.Limit, time.Millisecond), LimitMax)
	a.until = m.now.Mono.Add(a.Limit)
	parts := in.To
	if parts == nil {
		for _, node := range m.everybody() {
			parts = append(parts, Part{node, in.Question})
		}
	}
	if len(m.asks) >= maxAsks {
		for _, p := range parts {
			a.miss(p.Node, "this node asks too many questions at one time", true)
		}
		m.out.Publish(a.result)
		return
	}
	m.asks = append(m.asks, a)
	m.out.Arm(limitTimer{in.ID}, a.until)
	for _, p := range parts {
		m.put(a, p)
	}
	m.settle(a)
}

// everybody returns the nodes that run sharding, this one among them, sorted.
func (m *Machine) everybody() []gossip.NodeID {
	all := []gossip.NodeID{m.self}
	if m.state != nil {
		for _, o := range m.state.Members() {
			if o.Node != m.self && (o.HasService(uint16(component.ServiceSharding)) || o.HasService(uint16(Service))) {
				all = append(all, o.Node)
			}
		}
	}
	slices.SortFunc(all, gossip.NodeID.Compare)
	return all
}

// put sends a question to a node, unless the node cannot be asked.
func (m *Machine) put(a *asking, p Part) {
	m.last++
	q := p.Question
	q.ID, q.Limit = m.last, a.Limit
	if p.Node == m.self {
		a.waiting[p.Node] = q.ID
		m.out.Add(Gather{From: m.self, Question: q})
		return
	}
	o := (*gossip.Member)(nil)
	if m.state != nil {
		o = m.state.Member(p.Node)
	}
	switch {
	case o == nil:
		a.miss(p.Node, "is no member", true)
	case o.Status == gossip.Down:
		a.miss(p.Node, "was declared down", true)
	case !o.HasService(uint16(Service)):
		a.miss(p.Node, "runs a version that cannot be asked", true)
	default:
		a.waiting[p.Node] = q.ID
		m.out.Add(machine.Send{To: p.Node, Lane: laneOf(len(q.Payload)), Message: q})
	}
}

// bulkFrom is the size from which on a message must not delay those of control.
const bulkFrom = 8 << 10

func laneOf(size int) machine.Lane {
	if size >= bulkFrom {
		return machine.LaneBulk
	}
	return machine.LaneControl
}

func (a *asking) miss(node gossip.NodeID, why string, unasked bool) {
	delete(a.waiting, node)
	a.result.Missing = append(a.result.Missing, Missing{node, why, unasked})
}

// left gives up the nodes that are no members any more.
func (m *Machine) left() {
	for _, a := range slices.Clone(m.asks) {
		for _, node := range slices.SortedFunc(maps.Keys(a.waiting), gossip.NodeID.Compare) {
			if node != m.self && m.state.Member(node) == nil {
				a.miss(node, "has left the cluster, or was removed", false)
			}
		}
		m.settle(a)
	}
}

// answered takes the answer of a node.
func (m *Machine) answered(from gossip.NodeID, answer Answer) {
	for _, a := range m.asks {
		id, waits := a.waiting[from]
		if !waits || id != answer.ID {
			continue
		}
		delete(a.waiting, from)
		switch answer.Fault {
		case FaultNone, FaultNoKind:
			a.result.Said = append(a.result.Said, Said{from, answer})
		case FaultBusy:
			a.miss(from, "serves too many questions at one time", true)
		default:
			a.miss(from, answer.Detail, false)
		}
		m.settle(a)
		return
	}
}

// expire ends a question: who has not answered is missing.
func (m *Machine) expire(id uint64) {
	i := slices.IndexFunc(m.asks, func(a *asking) bool { return a.ID == id })
	if i < 0 {
		return
	}
	a := m.asks[i]
	for _, node := range slices.SortedFunc(maps.Keys(a.waiting), gossip.NodeID.Compare) {
		why := fmt.Sprintf("did not answer within %v", a.Limit)
		if m.state != nil && node != m.self && !m.state.Reachable(node) {
			why += ": members do not hear from it"
		}
		a.miss(node, why, false)
	}
	m.settle(a)
}

// settle publishes what came of a question once nobody is waited for.
func (m *Machine) settle(a *asking) {
	if len(a.waiting) > 0 {
		return
	}
	m.asks = slices.DeleteFunc(m.asks, func(o *asking) bool { return o == a })
	m.out.Disarm(limitTimer{a.ID})
	slices.SortFunc(a.result.Said, func(x, y Said) int { return x.Node.Compare(y.Node) })
	slices.SortFunc(a.result.Missing, func(x, y Missing) int { return x.Node.Compare(y.Node) })
	m.out.Publish(a.result)
}

// asked has the program look for what another node asks for.
func (m *Machine) asked(from gossip.NodeID, q Question) {
	name := heard{from, q.ID}
	if m.heard[name] {
		return
	}
	m.remember(name)
	if len(m.serve) >= maxServed {
		m.out.Send(from, Answer{ID: q.ID, Fault: FaultBusy})
		return
	}
	m.serve[name] = true
	m.out.Add(Gather{From: from, Question: q})
}

// remember notes that a question has come.
func (m *Machine) remember(name heard) {
	m.heard[name] = true
	if len(m.order) < maxHeard {
		m.order = append(m.order, name)
		return
	}
	delete(m.heard, m.order[m.next])
	m.order[m.next] = name
	m.next = (m.next + 1) % maxHeard
}

// gathered sends what the program has found to who has asked.
func (m *Machine) gathered(in Gathered) {
	if in.To == m.self {
		m.answered(m.self, in.Answer)
		return
	}
	delete(m.serve, heard{in.To, in.Answer.ID})
	size := 0
	for _, e := range in.Answer.Entities {
		size += len(e.At.ID)
	}
	m.out.Add(machine.Send{To: in.To, Lane: laneOf(size + 32*len(in.Answer.Shards)), Message: in.Answer})
}
