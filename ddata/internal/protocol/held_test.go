// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// Buckets of which a winning part of the homes is lost: seven nodes with three copies, of
// which the last ones end for good. First what the tests do with the fleet, then the tests.

var majority = protocol.Level{Name: protocol.Majority}

// sevenWithThreeCopies returns seven nodes that hold three copies of each key.
func sevenWithThreeCopies(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, 7, func(r *replica) { r.copies = 3 })
	f.together()
	require.Len(t, f.at(1).Register(0).Current, 7)
	return f
}

// homesOf returns the numbers of the nodes that hold a key.
func (f *fleet) homesOf(key string) (all []int) {
	for _, node := range f.at(1).Route(0).Homes(table.BucketOf(key)) {
		all = append(all, int(node.UID))
	}
	return all
}

// keyAt returns a key of which n of some nodes are homes.
func (f *fleet) keyAt(n int, of ...int) string {
	f.t.Helper()
	for i := range 10_000 {
		key := fmt.Sprintf("k%d", i)
		in := slices.DeleteFunc(f.homesOf(key), func(i int) bool { return !slices.Contains(of, i) })
		if len(in) == n {
			return key
		}
	}
	require.Fail(f.t, "there is no such key")
	return ""
}

// write adds an element to a key at the first of its homes, and returns how that has ended.
func (f *fleet) write(key string, element uint64) protocol.Verdict {
	f.t.Helper()
	r := f.at(f.homesOf(key)[0])
	change, err := r.table.Update(key, elements, func(_ crdt.Origin, v any) (any, error) { return v.(crdt.GSet[uint64]).Add(element), nil })
	require.NoError(f.t, err)
	return r.ended(protocol.Write{Op: r.nextOp(), Change: change, Level: majority, Limit: 3 * time.Second}).Verdict
}

func (r *replica) nextOp() protocol.OpID { return protocol.OpID(len(r.done) + 1) }

// ended has an operation run, and returns how it has ended.
func (r *replica) ended(in machine.Input) protocol.Done {
	r.f.t.Helper()
	n := len(r.done)
	r.command(in)
	r.f.run(4 * time.Second)
	require.Len(r.f.t, r.done, n+1)
	return r.done[n]
}

// read reads a key at a node.
func (r *replica) read(key string) protocol.Done {
	r.f.t.Helper()
	return r.ended(protocol.Read{Op: r.nextOp(), Key: key, Level: majority, Limit: 3 * time.Second})
}

// end ends nodes for good: the others hear nothing more of them, and that they were removed.
func (f *fleet) end(gone ...int) {
	f.t.Helper()
	f.drop = func(from, to int, _ any) bool { return slices.Contains(gone, from) || slices.Contains(gone, to) }
	var left []int
	for i := range f.nodes {
		if !slices.Contains(gone, i+1) {
			left = append(left, i+1)
		}
	}
	f.know(members(f.t, left, gone...), left...)
	f.run(30 * time.Second)
}

// heldIn returns the record of a key's bucket that is held back, nil for none.
func heldIn(r *protocol.Register, key string) *protocol.Held {
	for i, h := range r.Held {
		if slices.Contains(h.Buckets, uint16(table.BucketOf(key))) {
			return &r.Held[i]
		}
	}
	return nil
}

// Buckets that have lost two of three homes hold up no others: the set changes, all other
// keys are read and written, and those of such a bucket fail at once, with the replicas that
// are gone.
func TestLostHomesHoldUpNoOtherBucket(t *testing.T) {
	f := sevenWithThreeCopies(t)
	lost, kept := f.keyAt(2, 6, 7), f.keyAt(1, 6, 7)
	homes := f.homesOf(lost)
	require.Equal(t, protocol.Confirmed, f.write(lost, 1))
	require.Equal(t, protocol.Confirmed, f.write(kept, 1))
	f.end(6, 7)
	for i := 1; i <= 5; i++ {
		r := f.at(i).Register(0)
		require.Equal(t, protocol.PhaseStable, r.Phase)
		require.True(t, set(1, 2, 3, 4, 5).Same(r.Current))
		require.Nil(t, heldIn(r, kept))
		h := heldIn(r, lost)
		require.NotNil(t, h, "the value names the bucket")
		require.True(t, set(protocol.ReplicaID(homes[0]), 6, 7).Same(h.Homes), "it keeps its homes")
		require.True(t, f.at(i).Caught(0))
	}
	require.Equal(t, protocol.Confirmed, f.at(1).read(kept).Verdict)
	require.Equal(t, protocol.Confirmed, f.write(kept, 2))
	for i := 1; i <= 5; i++ {
		began := len(f.at(i).done)
		f.at(i).command(protocol.Read{Op: f.at(i).nextOp(), Key: lost, Level: majority, Limit: time.Minute})
		f.run(time.Second)
		require.Len(t, f.at(i).done, began+1, "it does not wait for its time")
		require.Equal(t, protocol.HomesLost, f.at(i).done[began].Verdict)
		require.Equal(t, []protocol.ReplicaID{6, 7}, f.at(i).done[began].Missing)
	}
	require.Equal(t, protocol.HomesLost, f.write(lost, 2))
}

// An operator accepts the loss: the buckets begin anew, with what the homes hold that are
// left, and nothing else is lost.
func TestAcceptedLossOfBuckets(t *testing.T) {
	f := sevenWithThreeCopies(t)
	lost, kept := f.keyAt(2, 6, 7), f.keyAt(1, 6, 7)
	require.Equal(t, protocol.Confirmed, f.write(lost, 1))
	require.Equal(t, protocol.Confirmed, f.write(kept, 1))
	f.end(6, 7)
	require.NotNil(t, heldIn(f.at(1).Register(0), lost))
	f.at(3).command(protocol.AcceptLoss{})
	f.run(30 * time.Second)
	r := f.at(1).Register(0)
	require.Equal(t, uint32(1), r.Lineage.Turn, "the lineage goes on")
	require.Empty(t, r.Held)
	require.NotEmpty(t, r.Resets)
	require.Equal(t, protocol.PhaseStable, r.Phase)
	for _, key := range []string{lost, kept} {
		done := f.at(2).read(key)
		require.Equal(t, protocol.Confirmed, done.Verdict)
		require.NotNil(t, done.Entry)
		require.Equal(t, protocol.Confirmed, f.write(key, 5))
	}
}

// A bucket of which nothing is left begins with nothing.
func TestAcceptedLossOfAWholeBucket(t *testing.T) {
	f := sevenWithThreeCopies(t)
	lost := f.keyAt(3, 5, 6, 7)
	require.Equal(t, protocol.Confirmed, f.write(lost, 1))
	f.end(5, 6, 7)
	done := f.at(1).read(lost)
	require.Equal(t, protocol.HomesLost, done.Verdict)
	require.Equal(t, []protocol.ReplicaID{5, 6, 7}, done.Missing)
	f.at(1).command(protocol.FetchEntry{Op: f.at(1).nextOp(), Key: lost, Limit: time.Minute})
	f.run(time.Second)
	require.Len(t, f.at(1).fetched, 1)
	require.Equal(t, protocol.HomesLost, f.at(1).fetched[0].Verdict)
	require.Equal(t, []protocol.ReplicaID{5, 6, 7}, f.at(1).fetched[0].Missing)
	f.at(1).command(protocol.AcceptLoss{})
	f.run(30 * time.Second)
	require.Empty(t, f.at(1).Register(0).Held)
	done = f.at(1).read(lost)
	require.Equal(t, protocol.Confirmed, done.Verdict)
	require.Nil(t, done.Entry)
	require.Equal(t, protocol.Confirmed, f.write(lost, 2))
}

// The loss of a bucket is accepted before the sets change. A home of it that comes back while
// it is still in the register, and was not spared, holds nothing of that bucket: what it has
// would count again beside what was written since. Other buckets it keeps, and who was spared
// keeps all.
func TestWhoMissedAnAcceptedLossDropsTheBucket(t *testing.T) {
	for name, spared := range map[string]bool{"struck": false, "spared": true} {
		t.Run(name, func(t *testing.T) {
			reg := stable(1, 1, 2, 3)
			f := alone(t, 3, 2, reg, func(r *replica) { r.copies = 3 })
			f.at(2).add(1) // The key k.
			const other = "another"
			require.NotEqual(t, table.BucketOf("k"), table.BucketOf(other))
			_, err := f.at(2).table.Update(other, elements, func(_ crdt.Origin, v any) (any, error) { return v.(crdt.GSet[uint64]).Add(1), nil })
			require.NoError(t, err)
			begun := stable(2, 1, 2, 3)
			begun.Resets = []protocol.Reset{{Gen: 2, Spared: set(1), Buckets: []uint16{uint16(table.BucketOf("k"))}}}
			if spared {
				begun.Resets[0].Spared = set(1, 2)
			}
			f.at(1).say(2, begun, protocol.Hello{})
			require.True(t, begun.Equal(f.at(2).Register(0)))
			_, holds := f.at(2).table.Get("k")
			require.Equal(t, spared, holds)
			_, holds = f.at(2).table.Get(other)
			require.True(t, holds, "another bucket")
			f.at(2).add(2)
			later := changed(begun, func(r *protocol.Register) { r.Gen++ })
			f.at(1).say(2, later, protocol.Hello{})
			_, holds = f.at(2).table.Get("k")
			require.True(t, holds, "it is dropped once")
		})
	}
}

// A replica with an older store, and a home that is gone, are not enough for a bucket of three
// homes, although the former is that of a member: the bucket is held back again when it was to
// move on, the change goes on without it, and an operator can accept its loss.
func TestAnOlderReplicaIsNoHomeThatIsBack(t *testing.T) {
	reg := joint(stable(1, 1, 2, 4, 5, 6, 7), 1, 2, 4, 5, 6)
	all := make([]uint16, table.Buckets)
	for i := range all {
		all[i] = uint16(i)
	}
	reg.Held = []protocol.Held{{Buckets: all, Homes: set(1, 2, 3), Moves: true}}
	f := alone(t, 7, 1, reg, onDisk, func(r *replica) { r.copies = 3 })
	f.know(members(t, []int{1, 2, 4, 5, 6, 7}, 3), 1)
	decide := func(what string) *protocol.Register {
		t.Helper()
		now := f.at(1).Register(0)
		for range 200 {
			f.run(100 * time.Millisecond)
			f.at(1).written()
			ask, asked := heardLast[protocol.Prepare](f.at(4))
			if !asked || ask.Slot != now.Gen+1 {
				continue
			}
			var accept protocol.Accept
			for _, i := range []int{4, 5, 6, 7} {
				f.at(i).say(1, now, protocol.Promise{Slot: ask.Slot, Ballot: ask.Ballot})
				f.at(1).written()
			}
			accept = mustHear[protocol.Accept](f.at(4))
			for _, i := range []int{4, 5, 6, 7} {
				f.at(i).say(1, now, protocol.Accepted{Slot: ask.Slot, Ballot: ask.Ballot})
				f.at(1).written()
			}
			return accept.Value
		}
		require.Fail(t, "nothing is proposed", what)
		return nil
	}
	f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Apart: true, Older: true, Body: protocol.Hello{}})
	f.at(1).command(protocol.Read{Op: 1, Key: "k", Level: majority, Limit: time.Hour})
	held := decide("the bucket is held back")
	require.Equal(t, protocol.PhaseJoint, held.Phase)
	require.False(t, held.Held[0].Moves)
	f.run(time.Second)
	f.at(1).written()
	require.Len(t, f.at(1).done, 1, "it does not wait for its time")
	require.Equal(t, protocol.HomesLost, f.at(1).done[0].Verdict)
	require.Equal(t, []protocol.ReplicaID{2, 3}, f.at(1).done[0].Missing)
	require.Equal(t, protocol.PhaseEnded, decide("the change ends without those that come no further").Phase)
	f.at(1).command(protocol.AcceptLoss{})
	f.at(1).written()
	begun := decide("the bucket begins anew")
	require.True(t, set(1).Same(begun.Resets[0].Spared))
}

// A replica that does not count proposes nothing, not even for an operator: it may have
// forgotten which ballots it has used.
func TestWhoIsOlderAcceptsNoLossOfBuckets(t *testing.T) {
	reg := stable(1, 1, 2, 4, 5, 6, 7)
	reg.Held = []protocol.Held{{Buckets: []uint16{7}, Homes: set(2, 3, 8)}}
	f := alone(t, 7, 1, reg, onDisk, func(r *replica) { r.copies = 3 })
	f.know(members(t, []int{1, 2, 4, 5, 6, 7}, 3), 1)
	f.at(2).say(1, reg, protocol.OlderStore{Of: 1, Written: 99})
	f.at(1).written()
	require.Contains(t, f.at(1).Survey().Apart, "older state")
	f.at(4).heard = nil
	f.at(1).command(protocol.AcceptLoss{})
	f.at(1).written()
	f.run(time.Second)
	f.at(1).written()
	_, asked := heardLast[protocol.Prepare](f.at(4))
	require.False(t, asked)
	require.Equal(t, uint32(1), f.at(1).Register(0).Lineage.Turn, "and no lineage begins")
}
