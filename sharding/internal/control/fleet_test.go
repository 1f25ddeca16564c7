// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/steps"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The bench of the control machine: first the fleet and its nodes, how they join, leave and
// are fenced, and how time passes; then how the effects of a node are carried out, with stubs
// of the strategy and of the cells; last what a test reads: messages that a puppet heard,
// events, decisions, and the text of a message in a trace.

// fleet steps the control machines of a few nodes in virtual time. Membership is
// a script: the test says which nodes are up, which leave, and when a removed member is
// fenced. Cells are stubs that stop when they are told to. The fleet checks at every
// moment that no shard has two hosts and that epochs rise from home to home.
type fleet struct {
	t         *testing.T
	now       time.Duration
	state     *gossip.State
	configure func(*control.Config) // Changes the configuration of nodes that start; nil: nothing.
	nodes     map[gossip.NodeID]*peer
	events    []happening
	order     int
	drop      func(from, to gossip.NodeID, m control.Message) bool
	trace     *strings.Builder
	stops     func(s protocol.ShardID) time.Duration       // Returns how long a shard takes to stop; negative: for ever.
	leases    map[protocol.ShardID]gossip.NodeID           // Who holds the lease of each shard.
	storeDown bool                                         // The store of leases does not answer.
	revisions map[uint64]uint32                            // How many shards were in use under each revision.
	epochs    map[protocol.ShardID]protocol.Epoch          // The epoch of the last home of each shard.
	answers   func(r machine.Call) (any, error)            // Answers the calls that ask where shards should live; nil: they get no answer.
	costs     func(s protocol.ShardID) float64             // How much of a processor a shard uses when it is measured; nil: none.
	noise     func() float64                               // By what factor a measurement is off; nil: none.
	memory    func(s protocol.ShardID) []protocol.Snapshot // What the entities of a shard give when it stops; nil: nothing.
	evens     func(r machine.Call) (any, error)            // Answers the calls that ask which shards should move; nil: no shard moves.
}

type happening struct {
	at    time.Duration
	order int
	do    func()
}

// peer is a node of a fleet. A puppet runs nothing: the test speaks for it.
type peer struct {
	*control.Control
	f         *fleet
	id        gossip.NodeID
	timers    map[machine.Timer]int
	hosting   map[protocol.ShardID]protocol.StartHosting
	stopping  map[protocol.ShardID]int
	told      []protocol.CellInput
	suspended bool
	puppet    bool
	dead      bool
	left      bool // The node has told membership that its work is handed over.
	heard     []control.Message
	events    []any
	decisions []machine.Decide
	calls     []machine.Call // The calls that ask the strategy where shards should live.
	rounds    []machine.Call // The calls that ask the strategy which shards should move.
	busy      time.Duration  // How long the entities have handled messages, until measuredAt.

	measuredAt time.Duration
	asking     map[protocol.ShardID]bool                 // The shards whose leases the node asks for, or holds.
	scale      control.Scale                             // What the node knows of the shards in use.
	layouts    []protocol.Layout                         // Those in force, once there was a change.
	retired    map[protocol.ShardID]protocol.RetireShard // What the node was told of shards that are retired.
	mute       bool                                      // The calls in rounds get no answer.
	worst      int                                       // The most that one step has done, see weigh.
	measures   bool                                      // Count what each step allocates.
	objects    int                                       // The most that one step has allocated.
	placed     int                                       // The most shards that one step has told one node to host.
}

const latency = time.Millisecond

// writer is the member in whose name the test edits the state; it runs no sharding.
var writer = member(99)

// member returns the id of the i-th node.
func member(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("n%d", i), Port: 1}, UID: gossip.UID(i)}
}

func epoch(n uint64) protocol.Epoch {
	return protocol.Epoch{Born: 1, Term: protocol.Term{UpNumber: 1, Start: 1}, N: n}
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{
		t: t, nodes: map[gossip.NodeID]*peer{}, epochs: map[protocol.ShardID]protocol.Epoch{}, revisions: map[uint64]uint32{}, leases: map[protocol.ShardID]gossip.NodeID{},
		state: gossip.New(gossip.ClusterID{Born: 7, Nonce: 1}),
		stops: func(protocol.ShardID) time.Duration { return 10 * time.Millisecond },
	}
	f.edit(func(e *gossip.Edit) bool { return e.Join(gossip.Member{Node: writer}) })
	return f
}

func (f *fleet) edit(do func(*gossip.Edit) bool) {
	f.t.Helper()
	f.state = f.state.Edit(writer, func(e *gossip.Edit) { require.True(f.t, do(e), "the edit was refused") })
}

// publish tells all nodes that the state has changed.
func (f *fleet) publish() {
	for _, id := range f.ids() {
		f.nodes[id].step(component.Changed{State: f.state, Self: id})
	}
}

func (f *fleet) ids() []gossip.NodeID {
	return slices.SortedFunc(maps.Keys(f.nodes), gossip.NodeID.Compare)
}

// six is the kind of most tests, with six shards.
func six() control.KindConfig {
	return control.KindConfig{
		Name: "k", Settings: control.Settings{Shards: 6, Hash: protocol.HashName, Codec: "c"},
		Timings: control.Timings{Handoff: 3 * time.Second},
	}
}

// add makes the i-th node a member that is up, and does not publish the state.
func (f *fleet) add(i int) *peer {
	f.t.Helper()
	f.edit(func(e *gossip.Edit) bool {
		return e.Join(gossip.Member{Node: member(i), Services: []uint16{uint16(protocol.Service)}}) &&
			e.SetStatus(member(i), gossip.Up, e.LastUpNumber()+1)
	})
	n := &peer{
		f: f, id: member(i), timers: map[machine.Timer]int{},
		hosting: map[protocol.ShardID]protocol.StartHosting{}, stopping: map[protocol.ShardID]int{}, asking: map[protocol.ShardID]bool{},
	}
	f.nodes[n.id] = n
	return n
}

// start lets the i-th node join and run the kinds.
func (f *fleet) start(i int, kinds ...control.KindConfig) *peer {
	f.t.Helper()
	n := f.add(i)
	f.begin(n, kinds...)
	return n
}

// begin lets a member, which may have been a puppet, run the kinds.
func (f *fleet) begin(n *peer, kinds ...control.KindConfig) {
	f.t.Helper()
	n.puppet = false
	cfg := control.Config{Self: n.id}
	if f.configure != nil {
		f.configure(&cfg)
	}
	n.Control = control.New(cfg)
	n.step(machine.Started{})
	for _, k := range kinds {
		n.step(control.AddKind{Kind: k})
	}
	n.step(component.Standing{Until: machine.Never})
	f.publish()
}

// puppet lets the i-th node join as a puppet, for which the test speaks.
func (f *fleet) puppet(i int) *peer {
	f.t.Helper()
	n := f.add(i)
	n.puppet = true
	f.publish()
	return n
}

// cluster starts n nodes with the kind, and runs until all shards have homes.
func (f *fleet) cluster(n int, kind control.KindConfig) []*peer {
	f.t.Helper()
	var nodes []*peer
	for i := range n {
		nodes = append(nodes, f.start(i+1, kind))
	}
	f.run(5 * time.Second)
	f.settled(int(cmp.Or(kind.Scale, kind.Settings.Shards)), nodes...)
	return nodes
}

func (f *fleet) set(st gossip.Status, n *peer) {
	f.t.Helper()
	f.edit(func(e *gossip.Edit) bool { return e.SetStatus(n.id, st, 0) })
	f.publish()
}

// remove removes a member from the state. Other nodes may still think that it hosts, until
// fence tells them that it does not.
func (f *fleet) remove(n *peer) {
	f.t.Helper()
	f.edit(func(e *gossip.Edit) bool { return e.Remove(n.id, time.Unix(9, 0)) })
	f.publish()
}

func (f *fleet) fence(n *peer) {
	n.dead = true
	clear(n.hosting)
	for _, id := range f.ids() {
		f.nodes[id].step(component.Fenced{Node: n.id})
	}
}

// after calls do when d has passed, in the order of the calls of after if several are due at
// one time. It returns a number by which the caller can recognise the call.
func (f *fleet) after(d time.Duration, do func()) int {
	f.order++
	h := happening{f.now + d, f.order, do}
	i, _ := slices.BinarySearchFunc(f.events, h, func(a, b happening) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.order, b.order)
	})
	f.events = slices.Insert(f.events, i, h)
	return f.order
}

// run lets d pass, with everything that is due in it.
func (f *fleet) run(d time.Duration) {
	end := f.now + d
	for len(f.events) > 0 && f.events[0].at <= end {
		h := f.events[0]
		f.events = f.events[1:]
		f.now = max(f.now, h.at)
		h.do()
	}
	f.now = end
}

func (f *fleet) log(format string, values ...any) {
	if f.trace != nil {
		fmt.Fprintf(f.trace, "%8.3f  %s\n", f.now.Seconds(), fmt.Sprintf(format, values...))
	}
}

func (n *peer) step(in machine.Input) {
	if n.dead || n.puppet {
		return
	}
	var out machine.Outbox
	work := n.Work()
	step := func() {
		n.Step(machine.Now{Mono: machine.Instant(n.f.now), Wall: time.Unix(0, int64(n.f.now))}, in, &out)
	}
	if n.measures {
		objects, _ := steps.Allocated(step)
		n.objects = max(n.objects, objects)
	} else {
		step()
	}
	n.weigh(int(n.Work()-work), out.Effects())
	if _, shards := n.Kept(); shards < 1000 {
		require.False(n.f.t, n.Miscounts())
	}
	for _, e := range out.Effects() {
		n.carry(e)
	}
}

// weigh notes how much one step did: entries of shards that it went over, effects, and entries in messages.
func (n *peer) weigh(work int, effects []machine.Effect) {
	placed := 0
	for _, e := range effects {
		work++
		if s, ok := e.(machine.Send); ok {
			switch m := s.Message.(type) {
			case control.Map:
				work += len(m.Homes) + len(m.Retired)
			case control.Host:
				work += len(m.Shards)
				placed = max(placed, len(m.Shards))
			case control.Report:
				work += len(m.Hosted) + len(m.Retired)
			}
		}
	}
	n.worst, n.placed = max(n.worst, work), max(n.placed, placed)
}

func (n *peer) carry(e machine.Effect) {
	switch e := e.(type) {
	case machine.Send:
		m := e.Message.(control.Message)
		require.Equal(n.f.t, carries(m), e.Lane == machine.LaneBulk, "what carries a memory, and nothing else, is bulk")
		n.f.send(n.id, e.To, m)
	case machine.Arm:
		n.arm(e)
	case machine.Disarm:
		delete(n.timers, e.Timer)
	case machine.Publish:
		n.events = append(n.events, e.Event)
		if _, ok := e.Event.(component.Drained); ok {
			n.left = true
			n.f.log("%s has handed everything over", n.id)
		}
		if v, ok := e.Event.(control.Violation); ok {
			n.f.log("%s VIOLATION shard %d: %s", n.id, v.Shard, v.Detail)
		}
	case machine.Decide:
		n.decisions = append(n.decisions, e)
		n.f.log("%s decides %s %s: %s (%s)", n.id, e.Topic, e.Subject, e.Verdict, e.Reason)
	case machine.Call:
		n.asked(e)
	case control.ToShard:
		if e.Kind == "k" { // Other kinds have no cells in the fleet.
			n.told = append(n.told, e.Input)
			n.cell(e.Shard, e.Input)
		}
	case control.ToShards:
		n.told = append(n.told, e.Input)
		n.all(e.Input)
	case control.UseLayouts:
		n.layouts = e.Layouts
	case control.MeasureLoad:
		n.measured(e)
	case control.AskLease:
		require.False(n.f.t, n.asking[e.Shard], "a lease is asked for once")
		n.asking[e.Shard] = true
		n.tryLease(e)
	case control.GiveLease:
		require.True(n.f.t, n.asking[e.Shard], "a lease is given back that was asked for")
		delete(n.asking, e.Shard)
		if n.f.leases[e.Shard] == n.id {
			delete(n.f.leases, e.Shard)
		}
	case control.ToRemembering: // No kind of the fleet remembers its entities.
	case control.ScaleChanged:
		n.scale = e.Scale
		n.f.log("%s knows that %d are in use, revision %d", n.id, e.Scale.Count, e.Scale.Revision)
	default:
		n.f.t.Fatalf("an effect of type %T", e)
	}
}

// measured says how busy the shards that the node hosts have kept it since it was asked last.
func (n *peer) measured(e control.MeasureLoad) {
	if since := n.f.now - n.measuredAt; n.f.costs != nil {
		if n.f.noise != nil {
			since = time.Duration(float64(since) * n.f.noise())
		}
		for _, s := range n.hosts() {
			n.busy += time.Duration(n.f.costs(s) * float64(since))
		}
	}
	n.measuredAt = n.f.now
	m := control.LoadMeasurement{Kind: e.Kind, Busy: n.busy, Processors: 1}
	n.f.after(latency, func() { n.step(m) })
}

// asked notes a call, and lets the strategy of the test answer it after the latency.
func (n *peer) asked(e machine.Call) {
	answers := n.f.answers
	if _, even := e.Request.(allocation.RebalanceRequest); even {
		n.rounds = append(n.rounds, e)
		if answers = n.f.evens; answers == nil {
			answers = func(machine.Call) (any, error) { return allocation.RebalanceResult{}, nil }
		}
		if n.mute {
			answers = nil
		}
	} else {
		n.calls = append(n.calls, e)
	}
	if answers != nil {
		result, err := answers(e)
		n.f.after(latency, func() { n.step(machine.Called{ID: e.ID, Result: result, Err: err}) })
	}
}

func (n *peer) arm(e machine.Arm) {
	var id int
	id = n.f.after(max(0, time.Duration(e.At)-n.f.now), func() {
		if n.timers[e.Timer] == id {
			delete(n.timers, e.Timer)
			n.step(machine.Fired{Timer: e.Timer})
		}
	})
	n.timers[e.Timer] = id
}

func (n *peer) all(in protocol.CellInput) {
	switch in.(type) {
	case protocol.SuspendHosting:
		n.suspended = true
	case protocol.UnsuspendHosting:
		n.suspended = false
	case protocol.AbandonHosting:
		clear(n.hosting)
		clear(n.stopping)
	}
}

// cell is a stub of the cell of a shard.
func (n *peer) cell(s protocol.ShardID, in protocol.CellInput) {
	switch in := in.(type) {
	case protocol.StartHosting:
		n.f.log("%s hosts %d, epoch %s base %s", n.id, s, short(in.Epoch), short(in.Base))
		for _, id := range n.f.ids() {
			if other := n.f.nodes[id]; other != n && !other.dead {
				_, hosts := other.hosting[s]
				require.False(n.f.t, hosts, "%s hosts shard %d, so does %s", n.id, s, id)
			}
		}
		n.f.scaled(n, s)
		if n.asking[s] {
			require.Equal(n.f.t, n.id, n.f.leases[s], "shard %d is hosted without its lease", s)
		}
		require.True(n.f.t, n.f.epochs[s].Less(in.Epoch), "epochs rise: shard %d from %s to %s", s, n.f.epochs[s], in.Epoch)
		n.f.epochs[s], n.hosting[s] = in.Epoch, in
	case protocol.StopHosting:
		if d := n.f.stops(s); d >= 0 {
			var id int
			id = n.f.after(d, func() { n.halt(s, id) })
			n.stopping[s] = id
		}
	case protocol.ResumeHosting:
		delete(n.stopping, s)
	case protocol.ReleaseHosting:
		n.stopping[s] = 0
		n.f.after(0, func() { n.halt(s, 0) })
	case protocol.RetireShard:
		n.f.log("%s hears that %d is retired, epoch %s base %s known %t", n.id, s, short(in.Epoch), short(in.Base), in.Known)
		for _, id := range n.f.ids() {
			if other := n.f.nodes[id]; !other.dead {
				require.NotContains(n.f.t, other.hosting, s, "%s hosts shard %d, which is retired", id, s)
			}
		}
		require.True(n.f.t, n.f.epochs[s].Less(in.Epoch), "epochs rise: shard %d from %s to %s", s, n.f.epochs[s], in.Epoch)
		if n.retired == nil {
			n.retired = map[protocol.ShardID]protocol.RetireShard{}
		}
		require.NotContains(n.f.t, n.retired, s, "%s was told before", n.id)
		n.retired[s] = in
	case protocol.SetRoute:
		if h, ok := n.hosting[s]; ok && h.Epoch.Less(in.Epoch) {
			delete(n.hosting, s)
		}
	}
}

// tryLease asks the store of the fleet for a lease, until it is given or not asked for any more. While the store is
// down it gives none.
func (n *peer) tryLease(e control.AskLease) {
	if !n.asking[e.Shard] || n.dead {
		return
	}
	if holder := n.f.leases[e.Shard]; !n.f.storeDown && (holder.IsZero() || holder == n.id) {
		n.f.leases[e.Shard] = n.id
		n.f.after(latency, func() { n.step(control.LeaseHeld(e)) })
		return
	}
	n.f.after(100*time.Millisecond, func() { n.tryLease(e) })
}

// loses has the store give the lease of a shard to somebody else.
func (f *fleet) loses(s protocol.ShardID, to gossip.NodeID) {
	n := f.nodes[f.leases[s]]
	f.leases[s] = to
	n.step(control.LeaseLost{Kind: "k", Shard: s, Epoch: n.hosting[s].Epoch})
}

// scaled checks that a shard which a node begins to host is in use, that nobody hosts any under another
// revision, and that a revision is one number of shards for ever.
func (f *fleet) scaled(n *peer, s protocol.ShardID) {
	if n.scale.Count == 0 {
		return
	}
	require.Less(f.t, uint32(s), n.scale.Count, "%s hosts shard %d under revision %d", n.id, s, n.scale.Revision)
	for _, id := range f.ids() {
		if other := f.nodes[id]; !other.dead && len(other.hosting) > 0 {
			require.Equal(f.t, n.scale, other.scale, "%s hosts shard %d while %s hosts %v", n.id, s, id, other.hosts())
		}
	}
	if count, known := f.revisions[n.scale.Revision]; known {
		require.Equal(f.t, count, n.scale.Count, "revision %d", n.scale.Revision)
	}
	f.revisions[n.scale.Revision] = n.scale.Count
}

// halt ends the stop of a shard, unless the stop was taken back or began anew.
func (n *peer) halt(s protocol.ShardID, stop int) {
	h, ok := n.hosting[s]
	if !ok || n.dead || n.stopping[s] != stop {
		return
	}
	delete(n.hosting, s)
	delete(n.stopping, s)
	var memory []protocol.Snapshot
	if n.f.memory != nil {
		memory = n.f.memory(s)
	}
	n.step(control.FromShard{Kind: "k", Shard: s, Event: protocol.ShardStopped{
		Epoch: h.Epoch, Base: h.Base, Positions: []protocol.Position{{Origin: writer, Seq: uint64(s) + 1}}, Snapshots: memory,
	}})
}

// send delivers a message after the latency, unless the test drops it.
func (f *fleet) send(from, to gossip.NodeID, m control.Message) {
	if f.drop != nil && f.drop(from, to, m) {
		return
	}
	if f.trace != nil { // A text takes long for a message about thousands of shards.
		if text := spell(m); text != "" {
			f.log("%s -> %s  %s", from, to, text)
		}
	}
	f.after(latency, func() {
		n := f.nodes[to]
		if n == nil || n.dead {
			return
		}
		if n.puppet {
			n.heard = append(n.heard, m)
			return
		}
		n.step(machine.Received{From: from, Message: m})
	})
}

// say sends a message from a puppet, and lets it arrive and be answered.
func (n *peer) say(to *peer, m control.Message) {
	n.f.send(n.id, to.id, m)
	n.f.run(2 * latency)
}

// last returns the last message of a type that a puppet heard, and forgets all that it heard.
func last[M control.Message](t *testing.T, n *peer) M {
	t.Helper()
	m, ok := find[M](n)
	require.True(t, ok, "%s heard no %T but %v", n.id, m, n.heard)
	n.heard = nil
	return m
}

func find[M control.Message](n *peer) (m M, ok bool) {
	for _, h := range slices.Backward(n.heard) {
		if m, ok := h.(M); ok {
			return m, true
		}
	}
	return m, false
}

// published returns the events of a type that a node published.
func published[E any](n *peer) []E {
	var all []E
	for _, e := range n.events {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// decided returns the decisions of a node on one topic, as text.
func (n *peer) decided(kind string) []string {
	var all []string
	for _, d := range n.decisions {
		if d.Topic == kind {
			all = append(all, d.Subject+": "+d.Verdict+": "+d.Reason)
		}
	}
	return all
}

// hosts returns the numbers of the shards that a node hosts, sorted.
func (n *peer) hosts() []protocol.ShardID { return slices.Sorted(maps.Keys(n.hosting)) }

// settled requires that the nodes host all shards, that their maps are equal and true, and
// that one of them is the coordinator.
func (f *fleet) settled(shards int, nodes ...*peer) {
	f.t.Helper()
	homes, hosted, coordinators := nodes[0].Inspect("k").Homes, 0, 0
	for _, n := range nodes {
		i := n.Inspect("k")
		require.Equal(f.t, homes, i.Homes, "the map at %s", n.id)
		require.Equal(f.t, len(n.hosting), i.Hosting)
		for _, h := range homes {
			_, hosts := n.hosting[h.Shard]
			require.Equal(f.t, h.Node == n.id, hosts, "shard %d at %s", h.Shard, n.id)
		}
		hosted += len(n.hosting)
		if i.Coordinating {
			coordinators++
			require.Equal(f.t, shards, i.Serving, n.String())
		}
		require.Empty(f.t, published[control.Violation](n))
	}
	require.Equal(f.t, shards, hosted)
	require.Equal(f.t, 1, coordinators)
}

func short(e protocol.Epoch) string { return fmt.Sprintf("%s/%d", e.Term, e.N) }

// spell returns the text of a message for a trace. Registrations are left out of traces,
// since nodes repeat them: their text is empty.
func spell(m control.Message) string {
	switch m := m.(type) {
	case control.Query:
		return "query " + m.Term.String()
	case control.Refused:
		return "refused, promised " + m.Promise.String()
	case control.NoRegion:
		return "no-region " + m.Term.String()
	case control.Report:
		text := "report " + m.Term.String()
		for _, h := range m.Hosted {
			text += fmt.Sprintf(" %d@%s:%s", h.Shard, short(h.Epoch), h.State)
		}
		return text
	case control.Register:
		return ""
	case control.Map:
		text := fmt.Sprintf("map %s from %d to %d", m.Term, m.From, m.To)
		for _, h := range m.Homes {
			text += fmt.Sprintf(" %d@%s", h.Shard, h.Node.Address.Host)
		}
		return text
	case control.Host:
		text := "host " + m.Term.String()
		for _, h := range m.Shards {
			text += fmt.Sprintf(" %d@%s", h.Shard, short(h.Epoch))
			for _, p := range h.Positions {
				text += fmt.Sprintf(" %s=%d", p.Origin, p.Seq)
			}
		}
		return text
	case control.ShardsStopped:
		text := "stopped " + m.Term.String()
		for _, s := range m.Shards {
			text += fmt.Sprintf(" %d@%s", s.Shard, short(s.Epoch))
		}
		return text
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T %v", m, m), "control.")
	}
}

// dropNext loses the next messages by which a region says that shards have stopped.
func (f *fleet) dropNext(n int) {
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		if _, stopped := m.(control.ShardsStopped); stopped && n > 0 {
			n--
			return true
		}
		return false
	}
}
