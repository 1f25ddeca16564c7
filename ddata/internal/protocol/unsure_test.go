// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine"
)

// Groups that write behind: node 1 is the machine, the others are puppets. First the words of the
// tests; then what leaves before it is written; then what a replica does that is unsure, and when
// it ends; last what others do about it.

// transfer has all nodes write behind.
func transfer(r *replica) {
	r.behind = protocol.WriteBehindBounds{Interval: time.Second, Bytes: 1 << 20}
}

// unclean starts node 1 of some with the store of a node that has not ended in order.
func unclean(t *testing.T, n int) (*fleet, *protocol.Register) {
	t.Helper()
	var ids []protocol.ReplicaID
	var up []int
	for i := 1; i <= n; i++ {
		ids, up = append(ids, protocol.ReplicaID(i)), append(up, i)
	}
	reg := stable(3, ids...)
	f := newFleet(t, n, puppets(1), onDisk, transfer, func(r *replica) {
		if r.i == 1 {
			r.meta = protocol.Meta{Register: reg, Caught: true, Written: batches, Behind: true, Restarts: 4}
		}
	})
	require.EqualValues(t, 5, f.at(1).calls[0].Request.(protocol.WriteBatch).Meta.Restarts, "each unclean start has a number of its own")
	require.EqualValues(t, 1, f.at(1).Counts().Unclean)
	require.Zero(t, f.at(1).Counts().Restored)
	f.at(1).settled()
	f.know(members(t, up), 1)
	for i := 2; i <= n; i++ {
		f.at(i).shows(reg, protocol.Hello{}, sureOf(5))
	}
	return f, reg
}

// sureOf is what a sure replica says of itself that knows of so many unclean starts.
func sureOf(restarts uint64) func(*protocol.Envelope) {
	return func(e *protocol.Envelope) { e.Agrees, e.Restarts = true, restarts }
}

// unsureOf is what an unsure one says.
func unsureOf(restarts uint64) func(*protocol.Envelope) {
	return func(e *protocol.Envelope) {
		e.Agrees, e.Restarts, e.Apart, e.Unsure, e.Caught = true, restarts, true, true, false
	}
}

// compared answers the comparison that node 1 has begun with a puppet: both hold the same.
func (r *replica) compared(reg *protocol.Register, as func(*protocol.Envelope)) {
	r.f.t.Helper()
	for range 5 {
		if b, ok := heardLast[protocol.Compare](r); ok {
			r.shows(reg, protocol.Groups{Pass: b.Pass, Same: true}, as)
			return
		}
		r.f.run(time.Second)
		r.f.at(1).settled()
	}
	require.FailNow(r.f.t, "not asked for its copy", "node %d", r.i)
}

func (f *fleet) unsure() bool { return f.at(1).Unsure(0) }

// An unsure replica answers no demand but the comparisons of one who is unsure too.
func TestOneWhoIsUnsureIsLikeOneWhoIsNotThere(t *testing.T) {
	f, reg := unclean(t, 3)
	require.Contains(t, f.at(1).Survey().Apart, "acknowledged")
	f.run(time.Second)
	require.Positive(t, f.at(1).Survey().Unsure)
	demands := []any{
		protocol.Prepare{Slot: 4, Ballot: protocol.Ballot{Round: 9, By: 2}},
		protocol.Accept{Slot: 4, Ballot: protocol.Ballot{Round: 9, By: 2}, Value: stable(4, 2)},
		protocol.Compare{Pass: 1},
		protocol.Sweep{Gen: 3, UpTo: 2},
		protocol.Put{Op: 1, Stamp: 3},
		protocol.Deltas{Seq: 1, Stamp: 3},
		protocol.EntryRequest{Op: 1, Key: "k"},
		protocol.Ask{Op: 1, Key: "k"},
	}
	for _, body := range demands {
		f.at(2).heard = nil
		f.at(2).shows(reg, body, sureOf(5))
		for _, l := range f.at(2).heard {
			require.IsType(t, protocol.Hello{}, l.message.Body, "%T", body)
		}
	}
	f.at(2).heard = nil
	f.at(2).shows(reg, protocol.Compare{Pass: 1}, unsureOf(5))
	answer := f.at(2).heard[len(f.at(2).heard)-1].message
	require.IsType(t, protocol.Groups{}, answer.Body)
	require.True(t, answer.Unsure)
	require.True(t, answer.Apart)
	require.EqualValues(t, 5, answer.Restarts)
}

// A replica is sure again when it has taken in from more sure ones than may lack a write of a
// majority; those that are unsure, or have not heard of its start, do not count.
func TestAReplicaIsSureAgain(t *testing.T) {
	for n, enough := range map[int]int{2: 1, 3: 2, 4: 2, 5: 3, 6: 3} {
		f, reg := unclean(t, n)
		for i := 2; i < enough+1; i++ {
			f.at(i).compared(reg, sureOf(5))
		}
		f.at(enough+1).compared(reg, sureOf(4))
		require.True(t, f.unsure(), "of %d, and one has not heard of the start", n)
		f.at(enough+1).compared(reg, sureOf(5))
		require.False(t, f.unsure(), "of %d", n)
		require.Empty(t, f.at(1).Survey().Apart)
	}
}

// When a majority is unsure, the replica takes in from all, after it has heard of each of them
// that it is unsure.
func TestAMajorityThatIsUnsure(t *testing.T) {
	f, reg := unclean(t, 3)
	f.at(2).compared(reg, unsureOf(5))
	f.at(3).compared(reg, unsureOf(5))
	f.at(2).compared(reg, unsureOf(5))
	require.True(t, f.unsure(), "both were asked before it was known who else is unsure")
	f.at(3).compared(reg, unsureOf(5))
	require.False(t, f.unsure())
	require.EqualValues(t, 1, f.at(1).Counts().Restored)
}

// Others that are unsure at different times are no majority.
func TestThoseWhoAreUnsureOneAfterTheOther(t *testing.T) {
	f, reg := unclean(t, 5)
	f.at(2).compared(reg, unsureOf(5))
	f.at(2).shows(reg, protocol.Hello{}, sureOf(5))
	for i := 3; i <= 5; i++ {
		f.at(i).shows(reg, protocol.Hello{}, unsureOf(6))
	}
	f.at(3).compared(reg, unsureOf(6))
	f.at(4).compared(reg, sureOf(6))
	f.at(5).compared(reg, sureOf(6))
	require.True(t, f.unsure(), "two of five are unsure, and of two sure ones the copies are here")
}

// Who is gone for good is not waited for once a majority has failed.
func TestTheGoneAreNotWaitedFor(t *testing.T) {
	f, reg := unclean(t, 3)
	f.at(2).compared(reg, sureOf(5))
	f.know(members(t, []int{1, 2}, 3), 1)
	f.run(5 * time.Second)
	f.at(1).settled()
	require.True(t, f.unsure(), "its disk may come back")
	f.run(10 * time.Second)
	f.at(1).settled()
	require.False(t, f.unsure())
}

// What is acknowledged leaves before it is written, with the number of a batch that is; the mark
// in the store comes first. The batch follows within the interval.
func TestAcknowledgementsRunAhead(t *testing.T) {
	reg := stable(3, 1, 2, 3)
	f := newFleet(t, 3, puppets(1), onDisk, transfer, func(r *replica) {
		if r.i == 1 {
			r.meta = protocol.Meta{Register: reg, Caught: true, Written: batches}
		}
	})
	f.know(members(t, []int{1, 2, 3}), 1)
	n := f.at(1)
	first := n.calls[0].Request.(protocol.WriteBatch)
	require.True(t, first.Meta.Behind)
	f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Body: protocol.Hello{}})
	f.at(3).speak(1, protocol.Envelope{From: 3, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Body: protocol.Hello{}})
	require.Empty(t, f.at(2).heard, "nothing leaves before the mark")
	n.settled()
	change := f.at(2).add(7)
	f.at(2).heard = nil
	f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Body: protocol.Deltas{Seq: 1, Stamp: 3, Changes: []table.Change{change}}})
	require.Len(t, f.at(2).heard, 1)
	answer := f.at(2).heard[0].message
	require.IsType(t, protocol.DeltasTaken{}, answer.Body)
	require.EqualValues(t, batches+1, answer.Written)
	require.Empty(t, n.calls, "the entry waits")
	f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Body: protocol.Prepare{Slot: 4, Ballot: protocol.Ballot{Round: 9, By: 2}}})
	require.Len(t, f.at(2).heard, 1, "a vote waits")
	require.Len(t, n.calls[0].Request.(protocol.WriteBatch).Entries, 1, "each batch has all that has changed")
	n.settled()
	require.Len(t, f.at(2).heard, 2)
	f.at(2).shows(reg, protocol.Sweep{Gen: 3, UpTo: 2}, agrees)
	f.at(2).shows(reg, protocol.Deltas{Seq: 2, Stamp: 3, Changes: []table.Change{f.at(2).add(8)}}, agrees)
	require.Empty(t, n.calls)
	f.at(2).heard = nil
	f.at(2).speak(1, protocol.Envelope{From: 2, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Body: protocol.Sweep{Gen: 3, UpTo: 2}})
	require.Empty(t, f.at(2).heard, "the word for a sweep waits")
}

// The entries are written after the interval, or before a machine ends in order.
func TestTheRestIsWritten(t *testing.T) {
	f, reg := unclean(t, 3)
	n := f.at(1)
	require.True(t, n.Final()[0].Meta.Behind, "an unsure replica stays one")
	f.at(2).compared(reg, sureOf(5))
	f.at(3).compared(reg, sureOf(5))
	change := f.at(2).add(7)
	f.at(2).shows(reg, protocol.Deltas{Seq: 1, Stamp: 3, Changes: []table.Change{change}}, sureOf(5))
	require.Empty(t, n.calls)
	f.run(time.Second)
	require.Len(t, n.calls[0].Request.(protocol.WriteBatch).Entries, 1)
	last := n.Final()
	require.Len(t, last, 1)
	require.False(t, last[0].Meta.Behind)
	require.Len(t, last[0].Entries, 1, "nothing is known of the batch that is under way")
}

// Acknowledgements wait while the store fails, and when more would wait than is allowed.
func TestAcknowledgementsWaitForAStoreThatFails(t *testing.T) {
	f, reg := unclean(t, 3)
	n := f.at(1)
	f.at(2).compared(reg, sureOf(5))
	f.at(3).compared(reg, sureOf(5))
	f.at(2).shows(reg, protocol.Deltas{Seq: 1, Stamp: 3, Changes: []table.Change{f.at(2).add(7)}}, sureOf(5))
	f.run(1100 * time.Millisecond)
	n.step(machine.Called{ID: n.calls[0].ID, Err: store.ErrFull})
	f.at(2).heard = nil
	f.at(2).shows(reg, protocol.Deltas{Seq: 2, Stamp: 3, Changes: []table.Change{f.at(2).add(8)}}, sureOf(5))
	_, answered := heardLast[protocol.DeltasTaken](f.at(2))
	require.False(t, answered)
}

// An acknowledgement that was given before an unclean start of anybody, of which the one who
// counts it has heard, does not count.
func TestAcknowledgementsOfFormerNodesDoNotCount(t *testing.T) {
	reg := stable(3, 1, 2, 3, 4, 5)
	f := newFleet(t, 5, puppets(1), onDisk, transfer, func(r *replica) {
		if r.i == 1 {
			r.meta = protocol.Meta{Register: reg, Caught: true, Written: batches}
		}
	})
	n := f.at(1)
	n.settled()
	f.know(members(t, []int{1, 2, 3, 4, 5}), 1)
	for i := 2; i <= 5; i++ {
		f.at(i).shows(reg, protocol.Hello{}, sureOf(0))
	}
	change := n.add(7)
	n.command(protocol.Write{Op: 1, Change: change, Level: protocol.Level{Name: protocol.Majority}, Limit: time.Minute})
	f.at(2).shows(reg, protocol.DeltasTaken{Seq: 1}, sureOf(0))
	f.at(3).heard = nil
	f.at(3).speak(1, protocol.Envelope{From: 3, Lineage: reg.Lineage, Gen: reg.Gen, Agrees: true, Restarts: 1, Body: protocol.Ask{Op: 9, Key: "k"}})
	require.Empty(t, f.at(3).heard, "nothing is said before the number is written")
	n.settled()
	f.at(4).shows(reg, protocol.PutTaken{Op: 1}, sureOf(0))
	f.at(3).shows(reg, protocol.PutTaken{Op: 1}, sureOf(1))
	require.Empty(t, n.done, "of those that have acknowledged since the start there are two")
	f.at(5).shows(reg, protocol.PutTaken{Op: 1}, sureOf(1))
	require.Len(t, n.done, 1)
	require.Equal(t, protocol.Confirmed, n.done[0].Verdict)
}
