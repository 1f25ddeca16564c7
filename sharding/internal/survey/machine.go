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

// The machine of a node. On the side that asks, ask sends a question to the nodes, answered takes their answers, and
// settle ends it; on the other side, serveQuestion has the program look, and inspected sends what it has found.

// Service is the number under which questions and answers travel.
const Service = component.ServiceSurvey

// ComponentName is the name of [Machine] among the components of a node.
const ComponentName = "surveys"

// Ask is the command to ask nodes. [Finished] with the same ID ends it.
type Ask struct {
	ID    uint64
	Limit time.Duration // Above 0, at most [MaxLimit].
	// Question is put to all members that run sharding, unless To says which node is asked what. IDs and limits are set
	// by the machine.
	Question Question
	To       []Part
}

// Part is the question to one of several nodes.
type Part struct {
	Node     gossip.NodeID
	Question Question
}

// NodeAnswer is the answer of a node.
type NodeAnswer struct {
	Node   gossip.NodeID
	Answer Answer
}

// Missing is a node that has not answered.
type Missing struct {
	Node gossip.NodeID
	Why  string
	// Unasked says that the node did not get the question, or has refused it: it has done nothing.
	Unasked bool
}

// Finished is published when all nodes that were asked have answered, or the limit has passed.
type Finished struct {
	ID      uint64
	Answers []NodeAnswer // Sorted by node.
	Missing []Missing    // Sorted by node.
}

// Inspection is the effect that has the program find out what a question asks for. [InspectionResult] answers it.
type Inspection struct {
	From     gossip.NodeID
	Question Question
}

// InspectionResult is the input that answers [Inspection].
type InspectionResult struct {
	To     gossip.NodeID
	Answer Answer
}

// Bounds of what a node does at one time.
const (
	maxAsks   = 16
	maxServed = 16
	// maxSeen is how many questions of others are remembered, so that none is served twice.
	maxSeen = 1024
)

// Machine asks and answers questions for a node. Create it with [New]. Invariants, between steps:
//
//	Q1  every Ask is answered by one Finished;
//	Q2  a question is served once, and at most maxServed questions are served at a time;
//	Q3  an answer counts if its node was asked under its number, and if it is the first one.
type Machine struct {
	self    gossip.NodeID
	state   *gossip.State
	last    uint64 // The number of the last question.
	asks    []*asking
	seen    map[questionID]bool
	order   []questionID // In the order in which they came, a ring from next on once it is full.
	next    int
	serving map[questionID]bool // Questions of others under way.

	now machine.Now
	out *machine.Outbox
}

// questionID names a question of another node.
type questionID struct {
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
	return &Machine{self: self, seen: make(map[questionID]bool), serving: make(map[questionID]bool)}
}

// Step handles an input.
func (m *Machine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	m.now, m.out = now, out
	switch in := in.(type) {
	case machine.Started:
		out.Publish(component.Services{Service: Service})
	case component.Changed:
		m.state = in.State
		m.membersChanged()
	case Ask:
		m.ask(in)
	case InspectionResult:
		m.inspected(in)
	case machine.Received:
		switch message := in.Message.(type) {
		case Question:
			m.serveQuestion(in.From, message)
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
	a.Limit = min(max(a.Limit, time.Millisecond), MaxLimit)
	a.until = m.now.Mono.Add(a.Limit)
	parts := in.To
	if parts == nil {
		for _, node := range m.everybody() {
			parts = append(parts, Part{node, in.Question})
		}
	}
	if len(m.asks) >= maxAsks {
		for _, p := range parts {
			a.missing(p.Node, "this node asks too many questions at one time", true)
		}
		m.out.Publish(a.result)
		return
	}
	m.asks = append(m.asks, a)
	m.out.Arm(limitTimer{in.ID}, a.until)
	for _, p := range parts {
		m.send(a, p)
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

// send sends a question to a node, or notes why the node cannot be asked.
func (m *Machine) send(a *asking, p Part) {
	m.last++
	q := p.Question
	q.ID, q.Limit = m.last, a.Limit
	if p.Node == m.self {
		a.waiting[p.Node] = q.ID
		m.out.Add(Inspection{From: m.self, Question: q})
		return
	}
	o := (*gossip.Member)(nil)
	if m.state != nil {
		o = m.state.Member(p.Node)
	}
	switch {
	case o == nil:
		a.missing(p.Node, "is no member", true)
	case o.Status == gossip.Down:
		a.missing(p.Node, "was declared down", true)
	case !o.HasService(uint16(Service)):
		a.missing(p.Node, "runs a version that cannot be asked", true)
	default:
		a.waiting[p.Node] = q.ID
		m.out.Add(machine.Send{To: p.Node, Lane: laneOf(len(q.Payload)), Message: q})
	}
}

// bulkFrom is the size from which on messages have the lane for bulk, so that they do not delay those of control.
const bulkFrom = 8 << 10

func laneOf(size int) machine.Lane {
	if size >= bulkFrom {
		return machine.LaneBulk
	}
	return machine.LaneControl
}

func (a *asking) missing(node gossip.NodeID, why string, unasked bool) {
	delete(a.waiting, node)
	a.result.Missing = append(a.result.Missing, Missing{node, why, unasked})
}

// membersChanged gives up nodes that are no members any more.
func (m *Machine) membersChanged() {
	for _, a := range slices.Clone(m.asks) {
		for _, node := range slices.SortedFunc(maps.Keys(a.waiting), gossip.NodeID.Compare) {
			if node != m.self && m.state.Member(node) == nil {
				a.missing(node, "has left the cluster, or was removed", false)
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
			a.result.Answers = append(a.result.Answers, NodeAnswer{from, answer})
		case FaultBusy:
			a.missing(from, "serves too many questions at one time", true)
		default:
			a.missing(from, answer.Detail, false)
		}
		m.settle(a)
		return
	}
}

// expire ends a question: the nodes that have not answered are missing.
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
		a.missing(node, why, false)
	}
	m.settle(a)
}

// settle publishes the result of a question once no node is waited for.
func (m *Machine) settle(a *asking) {
	if len(a.waiting) > 0 {
		return
	}
	m.asks = slices.DeleteFunc(m.asks, func(o *asking) bool { return o == a })
	m.out.Disarm(limitTimer{a.ID})
	slices.SortFunc(a.result.Answers, func(x, y NodeAnswer) int { return x.Node.Compare(y.Node) })
	slices.SortFunc(a.result.Missing, func(x, y Missing) int { return x.Node.Compare(y.Node) })
	m.out.Publish(a.result)
}

// serveQuestion has the program look for what another node asks for.
func (m *Machine) serveQuestion(from gossip.NodeID, q Question) {
	name := questionID{from, q.ID}
	if m.seen[name] {
		return
	}
	m.remember(name)
	if len(m.serving) >= maxServed {
		m.out.Send(from, Answer{ID: q.ID, Fault: FaultBusy})
		return
	}
	m.serving[name] = true
	m.out.Add(Inspection{From: from, Question: q})
}

// remember notes that a question has come.
func (m *Machine) remember(name questionID) {
	m.seen[name] = true
	if len(m.order) < maxSeen {
		m.order = append(m.order, name)
		return
	}
	delete(m.seen, m.order[m.next])
	m.order[m.next] = name
	m.next = (m.next + 1) % maxSeen
}

// inspected sends what the program has found to the node that has asked.
func (m *Machine) inspected(in InspectionResult) {
	if in.To == m.self {
		m.answered(m.self, in.Answer)
		return
	}
	delete(m.serving, questionID{in.To, in.Answer.ID})
	size := 0
	for _, e := range in.Answer.Entities {
		size += len(e.At.ID)
	}
	m.out.Add(machine.Send{To: in.To, Lane: laneOf(size + 32*len(in.Answer.Shards)), Message: in.Answer})
}
