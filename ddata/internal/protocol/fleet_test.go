// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The bench of the machine: first the fleet, its nodes and its members; then how time
// passes and messages travel; then how effects are carried out; last what tests say in the
// name of a puppet, and what they read.

// fleet steps the machines of a few nodes in virtual time, without randomness in between:
// a message arrives when it is sent. A puppet runs nothing: the test speaks for it.
type fleet struct {
	t     *testing.T
	now   machine.Instant
	nodes []*replica // Sorted by node.
	queue []peerMessage
	drop  func(from, to int, body any) bool // Which messages are lost, by the numbers of the nodes.
	trace *strings.Builder
}

// peerMessage is a message on its way.
type peerMessage struct {
	from, to int
	message  protocol.Envelope
}

// replica is a node of a fleet.
type replica struct {
	*protocol.Machine
	f        *fleet
	i        int
	table    *table.Table
	timers   map[machine.Timer]machine.Instant
	puppet   bool
	heard    []peerMessage // What came to a puppet.
	done     []protocol.Done
	fetched  []protocol.FetchResult
	surveyed protocol.SurveyResult
	wiped    []protocol.DroppedAll
	alarms   []protocol.Alarm
	lost     [][]protocol.ReplicaID // Without whom the group has gone on.
	calls    []machine.Call         // What the store has to write.
	durable  bool
	goOn     bool
	standing bool // The machine is told of its standing.
	copies   int
	meta     protocol.Meta // What is in the store at the start.
	bounds   protocol.Bounds
	behind   protocol.WriteBehindBounds
}

// node returns the i-th node. Its replica, in memory, has the number i.
func node(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 1}, UID: gossip.UID(i)}
}

// set returns the set of some replicas.
func set(of ...protocol.ReplicaID) protocol.Set {
	var all []protocol.Replica
	for _, id := range of {
		all = append(all, protocol.Replica{ID: id})
	}
	return protocol.NewSet(all...)
}

// stable returns a register in which some replicas count.
func stable(gen uint64, of ...protocol.ReplicaID) *protocol.Register {
	return &protocol.Register{Lineage: protocol.Lineage{Turn: 1, ID: 7}, Gen: gen, Phase: protocol.PhaseStable, Current: set(of...)}
}

var elements = crdt.TypeOf[crdt.GSet[uint64]]()

// newFleet starts a number of nodes, of which none is a member yet.
func newFleet(t *testing.T, n int, as ...func(*replica)) *fleet {
	t.Helper()
	f := &fleet{t: t, now: 1, drop: func(int, int, any) bool { return false }}
	for i := 1; i <= n; i++ {
		r := &replica{f: f, i: i, timers: map[machine.Timer]machine.Instant{}, bounds: protocol.DefaultBounds()}
		for _, do := range as {
			do(r)
		}
		r.table = table.New(table.Config{Self: protocol.OriginOf(gossip.UID(i)), MaxValueBytes: 1 << 20, MaxBytes: 1 << 30})
		r.Machine = protocol.New(protocol.Config{
			Self: node(i), Timing: protocol.DefaultTiming(), Bounds: r.bounds, Standing: r.standing,
			Rand:   rand.New(rand.NewPCG(uint64(i), 1)),
			Groups: []protocol.Group{{Name: "default", Table: r.table, Replica: protocol.ReplicaID(i), Durable: r.durable, Copies: r.copies, Meta: r.meta, GoOn: r.goOn, Fresh: r.meta.Written == 0, WriteBehind: r.behind}},
		})
		f.nodes = append(f.nodes, r)
		r.step(machine.Started{})
	}
	return f
}

// puppets makes all nodes puppets but one.
func puppets(but int) func(*replica) { return func(r *replica) { r.puppet = r.i != but } }

// onDisk makes all nodes durable: what they write the test has to answer.
func onDisk(r *replica) { r.durable = true }

// at returns the i-th node.
func (f *fleet) at(i int) *replica { return f.nodes[i-1] }

// members returns the state in which some nodes are members, and others were removed.
func members(t *testing.T, up []int, removed ...int) *gossip.State {
	t.Helper()
	return membersOf(t, up, nil, removed)
}

// membersOf is members with some that leave.
func membersOf(t *testing.T, up, leaving, removed []int) *gossip.State {
	t.Helper()
	raw := gossip.Raw{Cluster: gossip.ClusterID{Born: 1, Nonce: 1}, LastUpNumber: gossip.UpNumber(len(up) + len(leaving))}
	status := gossip.Up
	for at, i := range slices.Concat(up, leaving) {
		if at == len(up) {
			status = gossip.Leaving
		}
		raw.Members = append(raw.Members, &gossip.Member{
			Node: node(i), Status: status, UpNumber: gossip.UpNumber(at + 1), Services: []uint16{uint16(protocol.Service)},
			Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
		})
	}
	for _, i := range removed {
		raw.Tombstones = append(raw.Tombstones, gossip.Tombstone{Node: node(i), RemovedAt: 1})
	}
	state, err := gossip.FromParts(raw)
	require.NoError(t, err)
	return state
}

// know tells some nodes who the members are.
func (f *fleet) know(state *gossip.State, nodes ...int) {
	for _, i := range nodes {
		f.at(i).step(component.Changed{State: state, Self: node(i)})
	}
}

// together makes all nodes members, and lets them create a register if none is a puppet.
func (f *fleet) together() {
	f.t.Helper()
	var all []int
	for i := range f.nodes {
		all = append(all, i+1)
	}
	f.know(members(f.t, all), all...)
	f.run(3 * time.Second)
}

// run lets time pass.
func (f *fleet) run(d time.Duration) {
	f.deliver()
	for end := f.now.Add(d); ; {
		r, t, at := f.due()
		if r == nil || at > end {
			f.now = end
			return
		}
		f.now = max(f.now, at)
		delete(r.timers, t)
		r.step(machine.Fired{Timer: t})
		f.deliver()
	}
}

// due returns the timer that is due first; of two at one moment, that of the lower node, and
// of one node the one with the lower text.
func (f *fleet) due() (of *replica, timer machine.Timer, at machine.Instant) {
	text := func(t machine.Timer) string { return fmt.Sprintf("%T%v", t, t) }
	for _, r := range f.nodes {
		for t, due := range r.timers {
			if of == nil || due < at || due == at && r == of && text(t) < text(timer) {
				of, timer, at = r, t, due
			}
		}
	}
	return of, timer, at
}

// deliver delivers what is on its way.
func (f *fleet) deliver() {
	for len(f.queue) > 0 {
		l := f.queue[0]
		f.queue = f.queue[1:]
		if f.drop(l.from, l.to, l.message.Body) {
			continue
		}
		if f.trace != nil {
			fmt.Fprintf(f.trace, "%8v %d > %d %s\n", time.Duration(f.now).Round(time.Millisecond), l.from, l.to, textOf(l.message))
		}
		if to := f.at(l.to); to.puppet {
			to.heard = append(to.heard, l)
		} else {
			to.step(machine.Received{From: node(l.from), Message: l.message})
		}
	}
}

// textOf says what a message is, in one line.
func textOf(e protocol.Envelope) string {
	text := fmt.Sprintf("gen %d", e.Gen)
	if e.Sealed {
		text += " sealed"
	}
	if e.Caught {
		text += " caught"
	}
	if r := e.Register; r != nil {
		text += fmt.Sprintf(" register %v %d+%d+%d swept %d", r.Phase, len(r.Current), len(r.Next), len(r.Old), r.Swept)
	}
	text += " " + nameOf(e.Body)
	switch b := e.Body.(type) {
	case protocol.Deltas:
		text += fmt.Sprintf(" %d of %d", b.Seq, len(b.Changes))
	case protocol.Put:
		text += fmt.Sprintf(" %d of %d stamp %d", b.Op, len(b.Entries), b.Stamp)
	case protocol.Promise:
		text += fmt.Sprintf(" %d %v refused %v", b.Slot, b.Ballot, b.Refused)
	case protocol.Accept:
		text += fmt.Sprintf(" %d %v %v", b.Slot, b.Ballot, b.Value.Phase)
	case protocol.PullReply:
		text += fmt.Sprintf(" %d done %d wants %d", len(b.Entries), len(b.Done), len(b.Missing))
	case protocol.Pull:
		text += fmt.Sprintf(" %d", len(b.Buckets))
	case protocol.Answer:
		text += fmt.Sprintf(" %d same %v", b.Op, b.Same)
	case protocol.DeltasTaken, protocol.PutTaken, protocol.Ask, protocol.Prepare, protocol.Accepted, protocol.Sweep, protocol.SweepReply:
		text += fmt.Sprintf(" %v", b)
	}
	return text
}

// nameOf returns the name of a message in the traces: that of its type, or the participle for two replies.
func nameOf(body any) string {
	switch body.(type) {
	case protocol.PullReply:
		return "Pulled"
	case protocol.SweepReply:
		return "Swept"
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", body), "protocol.")
	}
}

// step hands an input to the machine and carries out its effects.
func (r *replica) step(in machine.Input) {
	if r.puppet {
		return
	}
	var out machine.Outbox
	r.Step(machine.Now{Mono: r.f.now}, in, &out)
	for _, e := range out.Effects() {
		switch e := e.(type) {
		case machine.Send:
			r.f.queue = append(r.f.queue, peerMessage{r.i, int(e.To.UID), e.Message.(protocol.Envelope)})
		case machine.Arm:
			r.timers[e.Timer] = e.At
		case machine.Disarm:
			delete(r.timers, e.Timer)
		case machine.Call:
			r.calls = append(r.calls, e)
		case machine.Decide:
			if r.f.trace != nil {
				fmt.Fprintf(r.f.trace, "%8v %d   %s: %s, %s\n", time.Duration(r.f.now).Round(time.Millisecond), r.i, e.Subject, e.Verdict, e.Reason)
			}
		case protocol.Done:
			r.done = append(r.done, e)
		case protocol.SurveyResult:
			r.surveyed = e
		case protocol.DroppedAll:
			r.wiped = append(r.wiped, e)
		case protocol.Alarm:
			r.alarms = append(r.alarms, e)
		case protocol.ContinuedWithoutMajority:
			r.lost = append(r.lost, e.Lost)
		case protocol.FetchResult:
			r.fetched = append(r.fetched, e)
		}
	}
}

// command hands a command to the machine, and lets its messages arrive.
func (r *replica) command(in machine.Input) {
	r.step(in)
	r.f.deliver()
}

// written answers everything that the store was asked to write.
func (r *replica) written() {
	for len(r.calls) > 0 {
		call := r.calls[0]
		r.calls = r.calls[1:]
		r.step(machine.Called{ID: call.ID})
	}
	r.f.deliver()
}

// add adds an element to the key k at a replica.
func (r *replica) add(element uint64) table.Change {
	r.f.t.Helper()
	change, err := r.table.Update("k", elements, func(_ crdt.Origin, v any) (any, error) { return v.(crdt.GSet[uint64]).Add(element), nil })
	require.NoError(r.f.t, err)
	return change
}

// say sends a message of a puppet that knows a register.
func (r *replica) say(to int, reg *protocol.Register, body any) {
	r.speak(to, protocol.Envelope{From: protocol.ReplicaID(r.i), Lineage: reg.Lineage, Gen: reg.Gen, Register: reg, Body: body})
}

// sayCaught sends a message of a puppet that has caught up.
func (r *replica) sayCaught(to int, reg *protocol.Register, body any) {
	r.speak(to, protocol.Envelope{From: protocol.ReplicaID(r.i), Lineage: reg.Lineage, Gen: reg.Gen, Register: reg, Caught: true, Body: body})
}

func (r *replica) speak(to int, e protocol.Envelope) {
	r.f.queue = append(r.f.queue, peerMessage{r.i, to, e})
	r.f.deliver()
}

// heardLast returns the last message of a sort that a puppet has heard, and forgets what
// it has heard.
func heardLast[B any](r *replica) (b B, ok bool) {
	for _, l := range slices.Backward(r.heard) {
		if b, ok = l.message.Body.(B); ok {
			break
		}
	}
	r.heard = nil
	return b, ok
}

// mustHear is heardLast for a message that must have come.
func mustHear[B any](r *replica) B {
	r.f.t.Helper()
	b, ok := heardLast[B](r)
	require.True(r.f.t, ok, "no %T came to %d", b, r.i)
	return b
}

// Survey returns how the group stands.
func (r *replica) Survey() protocol.GroupStatus {
	var out machine.Outbox
	r.Step(machine.Now{Mono: r.f.now}, protocol.Survey{Op: 1}, &out)
	for _, e := range out.Effects() {
		if s, ok := e.(protocol.SurveyResult); ok {
			return s.Groups[0]
		}
	}
	return protocol.GroupStatus{}
}
