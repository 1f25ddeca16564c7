// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

// What a machine has to do that random runs hardly ever bring about: one machine among
// puppets, or three machines between which some messages are lost.

// alone returns a fleet of nodes of which all but one are puppets, which know a register.
func alone(t *testing.T, n, machine int, reg *protocol.Register, as ...func(*replica)) *fleet {
	t.Helper()
	f := newFleet(t, n, append(as, puppets(machine))...)
	f.together()
	for _, p := range f.nodes {
		if p.puppet {
			p.say(machine, reg, protocol.Hello{})
			p.heard = nil
		}
	}
	f.at(machine).written()
	return f
}

// An operator has accepted a loss, and a replica that has not heard of it yet goes on in the
// lineage that has ended. What that one has written there is not merged, and it is told of the
// present register.
func TestTheDataOfAnEndedLineageIsNotMerged(t *testing.T) {
	past := stable(3, 1, 2, 3)
	reg := changed(past, func(r *protocol.Register) { r.Lineage, r.Gen = protocol.Lineage{Turn: 2, ID: 8}, 3 })
	f := alone(t, 3, 2, reg)
	delta := table.Change{Key: "k", Type: elements, Origin: protocol.OriginOf(3), To: 1, Delta: crdt.GSet[uint64]{}.Add(7)}
	entry := table.Entry{Key: "k", State: table.Live, Type: elements, Value: crdt.GSet[uint64]{}.Add(7).Settled(), Versions: table.Versions{{Origin: protocol.OriginOf(3), Count: 1}}}
	for name, body := range map[string]any{
		"deltas": protocol.Deltas{Seq: 1, Stamp: past.Gen, Changes: []table.Change{delta}},
		"put":    protocol.Put{Op: 1, Stamp: past.Gen, Entries: []table.Entry{entry}},
	} {
		f.at(3).heard = nil
		f.at(3).speak(2, protocol.Envelope{From: 3, Lineage: past.Lineage, Gen: past.Gen, Body: body})
		_, merged := f.at(2).table.Get(delta.Key)
		require.False(t, merged, name)
		f.run(time.Second) // It is not told twice in a moment.
		told := f.at(3).heard
		require.NotEmpty(t, told, name)
		require.True(t, reg.Equal(told[len(told)-1].message.Register), name)
	}
}

// joint returns the register after a stable one, in which other replicas are to count.
func joint(from *protocol.Register, next ...protocol.ReplicaID) *protocol.Register {
	r := *from
	r.Gen, r.Phase, r.Next = r.Gen+1, protocol.PhaseJoint, set(next...)
	return &r
}

// ended returns the register after a joint phase.
func ended(from *protocol.Register) *protocol.Register {
	r := *from
	r.Gen, r.Phase, r.Current, r.Old, r.Next = r.Gen+1, protocol.PhaseEnded, r.Next, r.Current, nil
	return &r
}

// Paxos Made Simple, P1a: an acceptor that has promised accepts nothing below.
func TestAnAcceptorKeepsItsPromise(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg)
	value := joint(reg, 1, 2)
	f.at(1).say(2, reg, protocol.Prepare{Slot: 2, Ballot: protocol.Ballot{Round: 5, By: 1}})
	require.False(t, mustHear[protocol.Promise](f.at(1)).Refused)
	f.at(3).say(2, reg, protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 3, By: 3}, Value: value})
	refusal := mustHear[protocol.Accepted](f.at(3))
	require.True(t, refusal.Refused)
	require.Equal(t, protocol.Ballot{Round: 5, By: 1}, refusal.Ballot, "the ballot to beat")
	f.at(1).say(2, reg, protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 5, By: 1}, Value: value})
	require.False(t, mustHear[protocol.Accepted](f.at(1)).Refused)
	f.at(3).say(2, reg, protocol.Prepare{Slot: 2, Ballot: protocol.Ballot{Round: 6, By: 3}})
	promise := mustHear[protocol.Promise](f.at(3))
	require.Equal(t, protocol.Ballot{Round: 5, By: 1}, promise.Accepted)
	require.True(t, value.Equal(promise.Value), "an acceptor tells what it has accepted")
}

// proposing returns a fleet of four in which the first wants to take in the fourth, and the
// ballot for which it has asked.
func proposing(t *testing.T) (*fleet, *protocol.Register, protocol.Ballot) {
	t.Helper()
	reg := stable(1, 1, 2, 3)
	f := alone(t, 4, 1, reg)
	f.run(2 * time.Second)
	return f, reg, mustHear[protocol.Prepare](f.at(2)).Ballot
}

// Paxos Made Simple, P2c: who proposes takes the value of the highest ballot that an
// acceptor has accepted.
func TestAValueThatMayBeDecidedIsProposedAgain(t *testing.T) {
	f, reg, ballot := proposing(t)
	accepted := joint(reg, 1, 2)
	f.at(2).say(1, reg, protocol.Promise{Slot: 2, Ballot: ballot, Accepted: protocol.Ballot{Round: 1, By: 3}, Value: accepted})
	require.True(t, accepted.Equal(mustHear[protocol.Accept](f.at(3)).Value))
}

// Promises and acceptances count from acceptors alone, and so does what they have accepted.
func TestOnlyAcceptorsDecide(t *testing.T) {
	f, reg, ballot := proposing(t)
	f.at(4).say(1, reg, protocol.Promise{Slot: 2, Ballot: ballot, Accepted: protocol.Ballot{Round: 9, By: 4}, Value: stable(2, 4)})
	_, asked := heardLast[protocol.Accept](f.at(3))
	require.False(t, asked, "the word of a stranger is no promise")
	f.at(2).say(1, reg, protocol.Promise{Slot: 2, Ballot: ballot})
	value := mustHear[protocol.Accept](f.at(3)).Value
	require.Equal(t, protocol.PhaseJoint, value.Phase, "what a stranger has accepted counts for nothing")
	require.True(t, set(1, 2, 3, 4).Same(value.Next))
	f.at(4).say(1, reg, protocol.Accepted{Slot: 2, Ballot: ballot})
	require.Equal(t, uint64(1), f.at(1).Register(0).Gen)
	f.at(3).say(1, reg, protocol.Accepted{Slot: 2, Ballot: ballot})
	require.Equal(t, uint64(2), f.at(1).Register(0).Gen)
}

// An attempt asks those again that have not answered, for the same ballot, until they have.
func TestAnAttemptAsksAgain(t *testing.T) {
	f, reg, ballot := proposing(t)
	f.at(3).heard = nil
	f.run(time.Second)
	require.Equal(t, ballot, mustHear[protocol.Prepare](f.at(2)).Ballot)
	f.at(3).say(1, reg, protocol.Promise{Slot: 2, Ballot: ballot, Refused: true}) // Of a life before it promised.
	f.run(time.Second)
	require.Equal(t, ballot.Round+1, mustHear[protocol.Prepare](f.at(2)).Ballot.Round)
	ballot.Round++
	f.at(3).say(1, reg, protocol.Promise{Slot: 2, Ballot: ballot})
	require.Equal(t, ballot, mustHear[protocol.Accept](f.at(2)).Ballot)
	f.at(3).say(1, reg, protocol.Accepted{Slot: 2, Ballot: protocol.Ballot{Round: 1, By: 3}})
	f.at(3).heard = nil
	f.run(time.Second)
	require.Equal(t, ballot, mustHear[protocol.Accept](f.at(2)).Ballot)
	require.Equal(t, ballot, mustHear[protocol.Accept](f.at(3)).Ballot)
	f.at(2).say(1, reg, protocol.Accepted{Slot: 2, Ballot: ballot})
	require.Equal(t, uint64(2), f.at(1).Register(0).Gen)
}

// A node that leaves creates no register, and goes on with no attempt to create one: of a member
// that has left in order the others know that it has none. Alone, it would create one of no
// replicas, which nothing changes any more.
func TestALeavingNodeCreatesNoRegister(t *testing.T) {
	leaving := func(others ...int) *gossip.State {
		raw := members(t, append([]int{1}, others...)).Parts()
		first := *raw.Members[0]
		first.Status = gossip.Leaving
		raw.Members[0] = &first
		state, err := gossip.FromParts(raw)
		require.NoError(t, err)
		return state
	}
	alone := newFleet(t, 1)
	alone.know(leaving(), 1)
	alone.run(10 * time.Second)
	require.Nil(t, alone.at(1).Register(0))

	f := newFleet(t, 2, puppets(1))
	f.together()
	f.at(2).speak(1, protocol.Envelope{From: 2, Body: protocol.Hello{}})
	f.run(time.Second)
	ballot := mustHear[protocol.Prepare](f.at(2)).Ballot
	f.know(leaving(2), 1)
	f.run(time.Second)
	f.at(2).speak(1, protocol.Envelope{From: 2, Body: protocol.Promise{Slot: 1, Ballot: ballot}})
	f.run(time.Second)
	_, asked := heardLast[protocol.Accept](f.at(2))
	require.False(t, asked)
	require.Nil(t, f.at(1).Register(0))
}

// While all leave together, as they were ready for it, those who hold the data stay those who have it when they are
// started again; a replica that is lost before that is replaced as ever, and who leaves alone counts no more.
func TestASetStaysWhenAllLeaveTogether(t *testing.T) {
	with := func(up []int, leaves int, others gossip.Status, removed ...int) *gossip.State {
		raw := members(t, up, removed...).Parts()
		for i, m := range raw.Members {
			changed := *m
			if changed.Status = others; m.Node == node(leaves) {
				changed.Status = gossip.Leaving
			}
			raw.Members[i] = &changed
		}
		state, err := gossip.FromParts(raw)
		require.NoError(t, err)
		return state
	}
	for name, test := range map[string]struct {
		state *gossip.State
		want  protocol.Set
	}{
		"all are ready":              {with([]int{1, 2, 3}, 0, gossip.Ready), set(1, 2, 3)},
		"all leave together":         {with([]int{1, 2, 3}, 3, gossip.Ready), set(1, 2, 3)},
		"one leaves alone":           {with([]int{1, 2, 3}, 3, gossip.Up), set(1, 2)},
		"one leaves, others prepare": {with([]int{1, 2, 3}, 3, gossip.Preparing), set(1, 2)},
		"one is lost of those ready": {with([]int{1, 2}, 0, gossip.Ready, 3), set(1, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			f.together()
			require.True(t, set(1, 2, 3).Same(f.at(1).Register(0).Current))
			f.know(test.state, 1, 2, 3)
			f.run(10 * time.Second)
			require.True(t, test.want.Same(f.at(1).Register(0).Current), "%v", f.at(1).Register(0).Current)
		})
	}
}

// An acceptor promises a ballot again to the node to which it has promised that, also when it
// has heard only what was to be accepted; to no other node, since a replica that has
// started again may have forgotten what it proposed with the ballot.
func TestAPromiseIsGivenAgainToItsNode(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 4, 2, reg, onDisk)
	ask := protocol.Prepare{Slot: 2, Ballot: protocol.Ballot{Round: 5, By: 1}}
	promised := func(from int) protocol.Promise {
		f.at(from).speak(2, protocol.Envelope{From: 1, Lineage: reg.Lineage, Gen: reg.Gen, Body: ask})
		f.at(2).written()
		return mustHear[protocol.Promise](f.at(from))
	}
	require.False(t, promised(1).Refused)
	require.False(t, promised(1).Refused)
	accept := protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 6, By: 1}, Value: joint(reg, 1, 2)}
	f.at(1).say(2, reg, accept)
	f.at(2).written()
	require.False(t, mustHear[protocol.Accepted](f.at(1)).Refused)
	ask.Ballot = accept.Ballot
	require.False(t, promised(1).Refused)
	f.know(members(t, []int{2, 3, 4}, 1), 2)
	again := promised(4)
	require.True(t, again.Refused)
	require.Equal(t, ask.Ballot, again.Ballot, "the ballot to beat")
}

// Stores that need longer for a write than an attempt waits at first do not keep a register
// from being decided.
func TestSlowStoresDecide(t *testing.T) {
	f := newFleet(t, 3, onDisk)
	f.know(members(t, []int{1, 2, 3}), 1, 2, 3)
	for range 12 {
		f.run(protocol.DefaultTiming().Patient * 4 / 3)
		for _, r := range f.nodes {
			r.written()
		}
	}
	for _, r := range f.nodes {
		require.NotNil(t, r.Register(0))
	}
}

// The first register needs the word of every member: one may hold a register already.
func TestCreationNeedsEverybodysWord(t *testing.T) {
	f := newFleet(t, 3)
	f.drop = func(from, to int, _ any) bool { return from == 3 || to == 3 }
	f.together()
	f.run(20 * time.Second)
	for i := range 3 {
		require.Nil(t, f.at(i+1).Register(0))
	}
	f.drop = func(int, int, any) bool { return false }
	f.run(5 * time.Second)
	for i := range 3 {
		require.True(t, set(1, 2, 3).Same(f.at(i+1).Register(0).Current))
	}
}

// Who is silent, and goes by a lineage that has ended, is told of the present one also when it
// knows of a greater generation, and the first word to it was lost.
func TestASilentReplicaIsToldOfTheLineage(t *testing.T) {
	past, now := stable(38, 3), stable(4, 1, 2)
	now.Lineage = protocol.Lineage{Turn: 2, ID: 9}
	f := alone(t, 3, 1, now)
	f.drop = func(_, to int, _ any) bool { return to == 3 }
	f.at(3).speak(1, protocol.Envelope{From: 3, Lineage: past.Lineage, Gen: past.Gen, Body: protocol.Hello{}})
	f.run(2 * time.Second)
	f.drop = func(int, int, any) bool { return false }
	f.run(2 * time.Second)
	require.True(t, slices.ContainsFunc(f.at(3).heard, func(l peerMessage) bool { return l.message.Register != nil && l.message.Lineage == now.Lineage }))
}

// A register that anybody knows is taken over, not created anew.
func TestAKnownRegisterIsTakenOver(t *testing.T) {
	f := newFleet(t, 3, puppets(1))
	f.together()
	f.at(2).speak(1, protocol.Envelope{From: 2, Body: protocol.Hello{}})
	f.at(3).say(1, stable(5, 2, 3), protocol.Hello{})
	f.run(10 * time.Second)
	require.Equal(t, uint64(5), f.at(1).Register(0).Gen)
	_, asked := heardLast[protocol.Prepare](f.at(3))
	require.True(t, asked, "the first wants to be taken in")
}

// deleteKey writes a key and deletes it, in a fleet of machines, so that a tombstone is
// everywhere.
func (f *fleet) deleteKey() {
	f.at(1).add(1)
	f.at(1).command(protocol.SendDeltas{})
	f.run(2 * time.Second)
	f.at(1).command(protocol.Delete{Op: 1, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: time.Second})
}

// tombstones returns how many tombstones the i-th replica holds.
func (f *fleet) tombstones(i int) int {
	n, _ := f.at(i).table.Tombstones(1 << 62)
	return n
}

// lose loses the messages with content to a replica: it keeps what it has.
func lose(to int) func(int, int, any) bool {
	return func(_, at int, body any) bool {
		switch body.(type) {
		case protocol.Deltas, protocol.Put, protocol.PullReply, protocol.Compare, protocol.Groups:
			return at == to
		default:
			return false
		}
	}
}

// A tombstone falls only when all replicas have said that they hold the same.
func TestASweepNeedsEverybodysWord(t *testing.T) {
	silent := func(from, _ int, body any) bool { _, answer := body.(protocol.SweepReply); return answer && from == 3 }
	for name, drop := range map[string]func(from, to int, body any) bool{"one does not answer": silent, "one lacks the tombstone": lose(3)} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3)
			f.together()
			f.at(1).add(1)
			f.drop = drop
			f.deleteKey()
			f.run(50 * time.Second)
			require.Equal(t, 1, f.tombstones(1))
			require.Zero(t, f.at(1).Register(0).Swept)
			f.drop = func(int, int, any) bool { return false }
			f.run(50 * time.Second)
			require.NotZero(t, f.at(1).Register(0).Swept)
			for i := range 3 {
				require.Zero(t, f.tombstones(i+1), "the key is usable again")
			}
		})
	}
}

// Where replicas hold different buckets, a tombstone falls when all homes of its bucket have
// said that they hold the same.
func TestASweepOfBucketsNeedsTheWordOfTheirHomes(t *testing.T) {
	f := newFleet(t, 4, func(r *replica) { r.copies = 2 })
	f.together()
	homes := f.at(1).Route(0).Homes(table.BucketOf("k"))
	require.Len(t, homes, 2)
	home, other := f.at(int(homes[0].UID)), f.at(int(homes[1].UID))
	home.add(1)
	f.drop = lose(other.i)
	home.command(protocol.Delete{Op: 1, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: time.Second})
	f.run(50 * time.Second)
	require.Equal(t, 1, f.tombstones(home.i))
	require.Zero(t, f.tombstones(other.i))
	require.Zero(t, home.Register(0).Swept)
	f.drop = func(int, int, any) bool { return false }
	f.run(50 * time.Second)
	require.NotZero(t, home.Register(0).Swept)
	require.Zero(t, f.tombstones(home.i))
}

// Who has not marked what fell does not know of what it holds whether it was deleted, and
// holds nothing; who has subscribed there can learn of it.
func TestWhoHasNotMarkedWhatFellHoldsNothing(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg)
	f.at(2).add(1)
	swept := stable(2, 1, 2, 3)
	swept.Swept, swept.Dropped = 2, 12345
	f.at(1).say(2, swept, protocol.Hello{})
	require.Zero(t, f.at(2).table.Len())
	require.False(t, f.at(2).Caught(0))
	require.Equal(t, []protocol.DroppedAll{{Group: 0, N: 1}}, f.at(2).wiped)
}

// Who has not caught up does not say what it holds, and says it afterwards.
func TestWhoHasNotCaughtUpHasNoSayInASweep(t *testing.T) {
	reg := stable(1, 1, 3)
	change := joint(reg, 1, 2, 3)
	f := alone(t, 3, 2, change)
	end := ended(change)
	f.at(1).sayCaught(2, end, protocol.Hello{})
	f.at(3).sayCaught(2, end, protocol.Hello{})
	question := protocol.Sweep{Gen: end.Gen, UpTo: end.Gen - 1}
	f.at(1).sayCaught(2, end, question)
	_, said := heardLast[protocol.SweepReply](f.at(1))
	require.False(t, said)
	f.at(3).heard = nil
	f.run(time.Second)
	for _, i := range []int{1, 3} {
		if compare, ok := heardLast[protocol.Compare](f.at(i)); ok {
			f.at(i).sayCaught(2, end, protocol.Groups{Pass: compare.Pass, Same: true})
		}
	}
	require.True(t, f.at(2).Caught(0))
	f.at(1).sayCaught(2, end, question)
	mustHear[protocol.SweepReply](f.at(1))
}

// An origin is retired only when all replicas agree that its node is gone, and have seen the
// same of it.
func TestAnOriginIsRetiredWhenAllHaveSeenTheSame(t *testing.T) {
	for name, late := range map[string]bool{"one knows of no removal": true, "one has seen less": false} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 4, func(r *replica) { r.puppet = r.i == 4 })
			f.know(members(t, []int{1, 2, 3}), 1, 2, 3)
			f.run(3 * time.Second)
			f.know(members(t, []int{1, 2, 3, 4}), 1, 2, 3)
			reg := f.at(1).Register(0)
			origin := protocol.OriginOf(4)
			delta := table.Change{Key: "k", Type: elements, Origin: origin, From: 0, To: 1, Delta: crdt.GSet[uint64]{}.Add(7)}
			for i := 1; i <= 3; i++ {
				if late || i < 3 {
					f.at(4).say(i, reg, protocol.Deltas{Seq: 1, Stamp: reg.Gen, Changes: []table.Change{delta}})
				}
			}
			knows := func(i int) bool { return slices.Contains(f.at(i).table.Origins(), origin) }
			require.True(t, knows(1))
			f.know(members(t, []int{1, 2, 3}, 4), 1, 2)
			if !late {
				f.know(members(t, []int{1, 2, 3}, 4), 3)
				f.drop = lose(3)
			}
			f.run(50 * time.Second)
			require.True(t, knows(1))
			require.Equal(t, late, knows(3))
			f.drop = func(int, int, any) bool { return false }
			f.know(members(t, []int{1, 2, 3}, 4), 3)
			f.run(50 * time.Second)
			for i := range 3 {
				require.False(t, knows(i+1))
				e, ok := f.at(i + 1).table.Get("k")
				require.True(t, ok)
				require.True(t, e.Value.(crdt.GSet[uint64]).Has(7), "what the origin has added stays")
			}
		})
	}
}

// Of a durable group nothing is acknowledged, promised or accepted before it is written.
func TestNothingIsSaidBeforeItIsWritten(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg, onDisk)
	silent := func(what string) {
		t.Helper()
		require.Empty(t, f.at(1).heard, what)
		require.NotEmpty(t, f.at(2).calls, what)
		f.at(2).written()
	}
	entry := table.Entry{Key: "k", State: table.Deleted, Stamp: 1}
	f.at(1).heard = nil
	f.at(1).say(2, reg, protocol.Put{Op: 1, Stamp: 1, Entries: []table.Entry{entry}})
	silent("an entry")
	mustHear[protocol.PutTaken](f.at(1))
	delta := table.Change{Key: "d", Type: elements, Origin: protocol.OriginOf(1), From: 0, To: 1, Delta: crdt.GSet[uint64]{}.Add(7)}
	f.at(1).say(2, reg, protocol.Deltas{Seq: 1, Stamp: 1, Changes: []table.Change{delta}})
	silent("a change")
	mustHear[protocol.DeltasTaken](f.at(1))
	ballot := protocol.Ballot{Round: 1, By: 1}
	f.at(1).say(2, reg, protocol.Prepare{Slot: 2, Ballot: ballot})
	silent("a promise")
	mustHear[protocol.Promise](f.at(1))
	f.at(1).say(2, reg, protocol.Accept{Slot: 2, Ballot: ballot, Value: joint(reg, 1, 2)})
	silent("an acceptance")
	mustHear[protocol.Accepted](f.at(1))
}

// A copy is whole by what its replica was when it was asked. What has come to it since was
// not asked for.
func TestACopyIsWholeByWhatItsReplicaWas(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	change := joint(reg, 4, 5)
	f := alone(t, 5, 4, change)
	for i := range 3 {
		f.at(i + 1).heard = nil
	}
	f.run(time.Second)
	asked := 0
	for i := 1; i <= 3; i++ {
		compare, ok := heardLast[protocol.Compare](f.at(i))
		if !ok {
			continue
		}
		require.False(t, f.at(4).Caught(0), "one of three is no winning part, and was not whole when it was asked")
		f.at(i).sayCaught(4, change, protocol.Groups{Pass: compare.Pass, Same: true})
		asked++
	}
	require.Equal(t, 2, asked)
	require.True(t, f.at(4).Caught(0), "two of three")
}

// A key that is nowhere is read at once, also while the sets change: there is nothing to write
// back to the replicas that are to take over.
func TestAnAbsentKeyIsReadWhileTheSetsChange(t *testing.T) {
	reg := *stable(2, 1)
	reg.Phase, reg.Next = protocol.PhaseJoint, set(1, 2, 3)
	f := alone(t, 3, 1, &reg)
	f.at(1).command(protocol.Read{Op: 1, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second})
	require.Len(t, f.at(1).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(1).done[0].Verdict)
	require.Nil(t, f.at(1).done[0].Entry)
}

// What a replica has acknowledged before it left the sets counts no more when it is back: it
// has dropped its copy in between.
func TestAnAcknowledgementEndsWithTheCopy(t *testing.T) {
	for name, skips := range map[string]bool{"the generation in between is known": false, "it is skipped": true} {
		t.Run(name, func(t *testing.T) {
			begun := joint(stable(1, 2, 3), 1)
			f := alone(t, 3, 2, begun)
			change := f.at(2).add(1)
			f.at(2).command(protocol.Write{
				Op: 1, Change: change, Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second,
			})
			f.at(1).say(2, begun, protocol.PutTaken{Op: 1})
			if !skips {
				f.at(3).say(2, stable(3, 2, 3), protocol.Hello{})
			}
			again := joint(stable(3, 2, 3), 1)
			f.at(3).say(2, again, protocol.PutTaken{Op: 1})
			require.Empty(t, f.at(2).done, "the first has dropped what it had acknowledged")
			f.at(1).say(2, again, protocol.PutTaken{Op: 1})
			require.Len(t, f.at(2).done, 1)
			require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
		})
	}
}

// A write that some replicas refuse goes on as long as the others are enough, and ends at once
// when they are not; who has refused first and stored it then counts.
func TestAWriteEndsWhenTooManyHaveRefused(t *testing.T) {
	all := protocol.Level{Name: protocol.All}
	for name, test := range map[string]struct {
		level   protocol.Level
		refuse  []int
		store   []int
		verdict protocol.Verdict // 0: it waits.
	}{
		"one of three":                  {majority, []int{2}, nil, 0},
		"one of three, the other holds": {majority, []int{2}, []int{3}, protocol.Confirmed},
		"two of three":                  {majority, []int{2, 3}, nil, protocol.Refused},
		"one of all":                    {all, []int{3}, nil, protocol.Refused},
		"one changes its mind":          {majority, []int{2}, []int{2}, protocol.Confirmed},
	} {
		t.Run(name, func(t *testing.T) {
			reg := stable(1, 1, 2, 3)
			f := alone(t, 3, 1, reg)
			change := f.at(1).add(1)
			f.at(1).command(protocol.Write{Op: 1, Change: change, Level: test.level, Limit: time.Hour})
			f.run(time.Second)
			for _, i := range test.refuse {
				f.at(i).say(1, reg, protocol.PutTaken{Op: 1, Refusals: []protocol.Refusal{{Key: "k", Reason: "full"}}})
			}
			for _, i := range test.store {
				f.at(i).say(1, reg, protocol.PutTaken{Op: 1})
			}
			f.run(time.Second)
			if test.verdict == 0 {
				require.Empty(t, f.at(1).done)
				return
			}
			require.Len(t, f.at(1).done, 1)
			require.Equal(t, test.verdict, f.at(1).done[0].Verdict)
			require.Len(t, f.at(1).done[0].Refusals, len(test.refuse))
		})
	}
}
