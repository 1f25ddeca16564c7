// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

// world is a cluster in which anything may happen between two steps: states
// of replicas, as random sequences of edits, merges and deltas make them.
type world struct {
	t        *rapid.T
	wild     bool // Any member removes others without agreement; then none is promoted.
	replicas []*replica
	uid      gossip.UID
	wall     int64
}

type replica struct {
	id      gossip.NodeID
	state   *gossip.State
	past    []*gossip.State
	dead    bool
	removed map[gossip.NodeID]bool // Every node that this replica ever knew to be removed.
}

func newWorld(t *rapid.T, wild bool) *world {
	w := &world{t: t, wild: wild, uid: 1, wall: 1000}
	first := &replica{id: w.identity(0), removed: map[gossip.NodeID]bool{}, state: gossip.New(gossip.ClusterID{})}
	w.replicas = append(w.replicas, first)
	w.become(first, first.state.Edit(first.id, func(e *gossip.Edit) {
		e.SetCluster(gossip.ClusterID{Born: 1, Nonce: 2})
		e.Join(gossip.Member{Node: first.id})
		e.SetStatus(first.id, gossip.Up, 1)
	}))
	return w
}

func (w *world) identity(slot int) gossip.NodeID {
	w.uid++
	return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("10.0.0.%d", slot), Port: 1}, UID: w.uid}
}

func (w *world) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

func (w *world) replica() *replica {
	var live []*replica
	for _, r := range w.replicas {
		if !r.dead {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		// Skip of a rapid.T leaves out one action that does not apply now, here and
		// below; another is drawn in its place, and the test goes on.
		w.t.Skip("everybody is dead") // This draw does not apply; the test goes on.
	}
	return live[w.pick(len(live))]
}

func (w *world) member(r *replica) *gossip.Member {
	members := r.state.Members()
	return members[w.pick(len(members))]
}

// become makes s the state of r and checks the invariants of the step.
//
// covers I6, I7, I8.
func (w *world) become(r *replica, s *gossip.State) {
	s = s.See(r.id).Restamp(r.id)
	requireWellFormed(w.t, s)
	requireNotBackwards(w.t, r.state, s)
	if !w.wild {
		rewire(w.t, s)
	}
	for _, t := range s.Tombstones() {
		r.removed[t.Node] = true
	}
	for id := range r.removed {
		require.Nil(w.t, s.Member(id), "%v came back", id)
	}
	if s != r.state {
		r.past = append(r.past, r.state)
		r.state = s
	}
	if _, removed := s.Removed(r.id); removed {
		r.dead = true // A dead replica sends nothing, so it need not stamp anything.
		return
	}
	for _, o := range w.replicas {
		if o != r && o.state.Member(o.id) != nil && o.state.Clock().Equal(s.Clock()) {
			require.Equal(w.t, coreOf(o.state), coreOf(s), "equal clocks, different states")
		}
	}
}

// coreOf describes everything but the seen set.
func coreOf(s *gossip.State) string {
	p := s.Parts()
	p.Seen = nil
	var text string
	for _, m := range p.Members {
		text += fmt.Sprintln(*m)
	}
	for _, set := range p.Observers {
		text += fmt.Sprintln(*set)
	}
	p.Members, p.Observers = nil, nil
	return text + fmt.Sprintf("%+v", p)
}

// hears reports whether to accepts what from sends: only from members that
// it does not know to be Down.
func hears(to *replica, from gossip.NodeID) bool {
	m := to.state.Member(from)
	return m != nil && m.Status != gossip.Down
}

func (w *world) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"join": w.join, "leave": w.leave, "mark": w.mark, "service": w.service, "crash": w.crash, "down": w.down,
		"merge": w.merge, "wire": w.wire, "delta": w.delta, "push": w.push, "replay": w.replay, "repair": w.repair,
		"lead": w.lead, "agree": w.agree,
	}
	if w.wild {
		actions["remove"] = w.remove
		delete(actions, "lead")
	}
	for name, action := range actions {
		actions[name] = func(t *rapid.T) { w.t = t; action(t) }
	}
	return actions
}

func (w *world) edit(r *replica, change func(*gossip.Edit)) { w.become(r, r.state.Edit(r.id, change)) }

func (w *world) join(t *rapid.T) {
	contact := w.replica()
	slot := w.pick(6)
	address := gossip.Address{Host: fmt.Sprintf("10.0.0.%d", slot), Port: 1}
	if contact.id.Address == address || len(w.replicas) > 12 || contact.state.Member(contact.id).Status >= gossip.Exiting {
		t.Skip("no join") // This draw does not apply; the test goes on.
	}
	for _, r := range w.replicas {
		r.dead = r.dead || r.id.Address == address
	}
	if old := contact.state.ByAddress(address); old != nil && old.Status != gossip.Down {
		w.edit(contact, func(e *gossip.Edit) {
			require.False(w.t, e.Join(gossip.Member{Node: w.identity(slot)}), "the old incarnation is not Down")
			require.True(w.t, e.Down(old.Node, "replaced"))
			e.Mark(old.Node, gossip.Terminated)
		})
		return
	}
	n := &replica{id: w.identity(slot), removed: maps.Clone(contact.removed)}
	w.edit(contact, func(e *gossip.Edit) {
		require.True(w.t, e.Join(gossip.Member{Node: n.id, Roles: []string{"b", "a"}, Unknown: gossip.Unknown{Version: 1, Fields: "\x18\x01"}}))
	})
	n.state = rewire(w.t, contact.state)
	w.replicas = append(w.replicas, n)
	w.become(n, n.state)
}

func (w *world) leave(*rapid.T) {
	r := w.replica()
	id := w.member(r).Node
	w.edit(r, func(e *gossip.Edit) { e.SetStatus(id, gossip.Leaving, 0) })
}

func (w *world) mark(*rapid.T) {
	r := w.replica()
	id := w.member(r).Node
	w.edit(r, func(e *gossip.Edit) {
		if !e.Clear(id) {
			e.Mark(id, gossip.Unreachable)
		}
	})
}

func (w *world) service(*rapid.T) {
	r := w.replica()
	w.edit(r, func(e *gossip.Edit) {
		if w.pick(2) == 0 {
			e.SetUnknown([]string{"", "\x18\x02", "\x18\x03"}[w.pick(3)])
			return
		}
		e.AddService(uint16(w.pick(4)))
	})
}

func (w *world) crash(t *rapid.T) {
	alive := 0
	for _, r := range w.replicas {
		if !r.dead {
			alive++
		}
	}
	if alive < 3 {
		t.Skip("too few left") // This draw does not apply; the test goes on.
	}
	w.replica().dead = true
}

// down declares a crashed node dead, as voters do: a node that is joining decides nothing, else two that have joined by
// two nodes that crashed would each be left alone. In a wild world anybody declares any node dead.
func (w *world) down(t *rapid.T) {
	r := w.replica()
	if !w.wild && r.state.Member(r.id).Status < gossip.Up {
		t.Skip("no voter") // This draw does not apply; the test goes on.
	}
	m := w.member(r)
	i := slices.IndexFunc(w.replicas, func(o *replica) bool { return o.id == m.Node })
	if m.Node == r.id || !w.wild && !w.replicas[i].dead {
		t.Skip("alive") // This draw does not apply; the test goes on.
	}
	w.edit(r, func(e *gossip.Edit) { e.Down(m.Node, fmt.Sprint("reason ", w.pick(2))) })
}

// remove removes a member without convergence, by any replica, which no cluster does.
// The states must stay consistent nevertheless.
func (w *world) remove(*rapid.T) {
	r := w.replica()
	id := w.member(r).Node
	w.wall++
	w.edit(r, func(e *gossip.Edit) { e.Remove(id, time.UnixMilli(w.wall)) })
}

func (w *world) pair(t *rapid.T) (from, to *replica) {
	from, to = w.replica(), w.replica()
	if from == to || !hears(to, from.id) {
		t.Skip("refused") // This draw does not apply; the test goes on.
	}
	return from, to
}

func (w *world) merge(t *rapid.T) {
	from, to := w.pair(t)
	w.become(to, to.state.Merge(from.state))
}

func (w *world) wire(t *rapid.T) {
	from, to := w.pair(t)
	p := from.state.Parts()
	p.Members = slices.Clone(p.Members)
	o, err := gossip.FromParts(p)
	if w.wild {
		o, err = from.state, nil
	}
	require.NoError(w.t, err)
	w.become(to, to.state.Merge(o))
}

// apply applies a delta and compares the result with the merge that the delta stands
// for.
func (w *world) apply(to *replica, from *gossip.State, d gossip.Delta) bool {
	require.NoError(w.t, d.Validate())
	got, err := to.state.Apply(d)
	if err != nil {
		require.ErrorIs(w.t, err, gossip.ErrNotCovered)
		require.Same(w.t, to.state, got)
		return false
	}
	requireEqual(w.t, to.state.Merge(from), got, "a delta is a merge")
	w.become(to, got)
	return true
}

func (w *world) delta(t *rapid.T) {
	from, to := w.pair(t)
	require.True(w.t, w.apply(to, from.state, from.state.Delta(to.state.Clock())))
}

// push sends the edits since some earlier state of the sender.
func (w *world) push(t *rapid.T) {
	from, to := w.pair(t)
	if len(from.past) == 0 {
		t.Skip("nothing new") // This draw does not apply; the test goes on.
	}
	old := from.past[w.pick(len(from.past))]
	if w.pick(2) == 0 {
		w.apply(to, from.state, from.state.Delta(old.Clock()))
	} else {
		w.apply(to, from.state, from.state.DeltaTo(old.Digest()))
	}
}

// replay sends a state that the sender had long ago.
func (w *world) replay(t *rapid.T) {
	from, to := w.pair(t)
	if len(from.past) == 0 {
		t.Skip("no past") // This draw does not apply; the test goes on.
	}
	w.become(to, to.state.Merge(from.past[w.pick(len(from.past))]))
}

// repair lets two replicas compare digests until they agree.
func (w *world) repair(t *rapid.T) {
	a, b := w.pair(t)
	if hears(a, b.id) {
		w.converse(a, b)
	}
}

func (w *world) converse(a, b *replica) {
	digest, from, to := a.state.Digest(), a, b
	for range 12 {
		order := to.state.CompareDigest(digest)
		base := digest
		switch order {
		case gossip.Same:
			return
		case gossip.Newer, gossip.SeenDiffers, gossip.Concurrent:
			if from.dead || to.dead || !hears(from, to.id) {
				return
			}
			require.True(w.t, w.apply(from, to.state, to.state.DeltaTo(digest)), "a delta to a digest fits")
		case gossip.Older, gossip.Undecided:
		default:
			require.Fail(w.t, "unexpected", "%v", order)
		}
		if from.dead || to.dead || !hears(from, to.id) || !hears(to, from.id) {
			return
		}
		digest = to.state.DigestFor(base)
		from, to = to, from
	}
	require.Equal(w.t, a.state.Describe(), b.state.Describe(), "repair does not end")
}

// lead does what a leader does under convergence.
//
// covers I29.
func (w *world) lead(*rapid.T) {
	r := w.replica()
	if ok, _ := r.state.Convergence(r.id, nil); !ok || r.state.Leader(r.id) != r.id {
		return
	}
	for _, o := range w.replicas {
		if o == r || o.dead || r.state.Member(r.id).Status >= gossip.Exiting {
			continue
		}
		ok, _ := o.state.Convergence(o.id, nil)
		require.False(w.t, ok && o.state.Leader(o.id) == o.id && o.state.Member(o.id).Status < gossip.Exiting,
			"two leaders: %v and %v\n%s\n%s", r.id, o.id, r.state.Describe(), o.state.Describe())
	}
	w.wall++
	w.edit(r, func(e *gossip.Edit) {
		if w.pick(4) == 0 {
			e.SetUnknownRegisters([]string{"", "\x18\x02", "\x18\x03"}[w.pick(3)])
		}
		var voters []gossip.NodeID
		for _, m := range r.state.Members() {
			switch m.Status {
			case gossip.Joining, gossip.WeaklyUp:
				e.SetStatus(m.Node, gossip.Up, e.LastUpNumber()+1)
			case gossip.Leaving:
				e.SetStatus(m.Node, gossip.Exiting, 0)
			case gossip.Down:
				e.Remove(m.Node, time.UnixMilli(w.wall))
			case gossip.Up:
				voters = append(voters, m.Node)
			default:
			}
		}
		e.SetConfig(voters)
		if len(r.state.Tombstones()) > 2 && w.canPrune(r) {
			e.SetPrunedBefore(time.UnixMilli(w.wall))
		}
	})
}

// canPrune reports whether no replica that may still be heard knows less than the
// leader, and forgets what is under way: in practice, a day has passed.
func (w *world) canPrune(leader *replica) bool {
	for _, r := range w.replicas {
		if !r.dead && !r.state.Clock().Equal(leader.state.Clock()) {
			return false
		}
	}
	for _, r := range w.replicas {
		r.past = nil
	}
	return true
}

// agree lets all living replicas exchange everything.
func (w *world) agree(*rapid.T) {
	for range 2 {
		for _, a := range w.replicas {
			for _, b := range w.replicas {
				if a != b && !a.dead && !b.dead && hears(b, a.id) {
					w.become(b, b.state.Merge(a.state))
				}
			}
		}
	}
}

func TestReplicasStayConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newWorld(t, false).actions())
	})
}

func TestReplicasStayConsistentWhateverIsRemoved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newWorld(t, true).actions())
	})
}
