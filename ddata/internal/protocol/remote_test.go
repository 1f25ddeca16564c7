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
)

// A node that is no home of the key k changes it through one that is, and messages between the two
// are lost or doubled.

// away returns a fleet of three nodes with two copies, and the number of the one that does not
// hold the key k and of the home that it asks.
func away(t *testing.T, as ...func(*replica)) (f *fleet, asker, home int) {
	t.Helper()
	f = newFleet(t, 3, append(as, func(r *replica) { r.copies = 2 })...)
	f.together()
	asker = 1 + slices.IndexFunc(f.nodes, func(r *replica) bool { return !r.Route(0).Here(table.BucketOf("k")) })
	require.Positive(t, asker)
	f.at(asker).command(protocol.FetchEntry{Op: 1, Key: "k", Limit: 5 * time.Second})
	entry := f.at(asker).fetched[0]
	require.Equal(t, protocol.Confirmed, entry.Verdict)
	home = 1 + slices.IndexFunc(f.nodes, func(r *replica) bool { return protocol.OriginOf(node(r.i).UID) == table.Owner(entry.At) })
	return f, asker, home
}

// commit has the asker commit one element to the entry that it has fetched.
func commit(f *fleet, asker int) {
	entry := f.at(asker).fetched[0]
	delta, _ := elements.Delta(crdt.GSet[uint64]{}.Add(9))
	f.at(asker).command(protocol.CommitDelta{
		Op: 1, Key: "k", Type: elements, Delta: delta, Base: entry.Base, Level: protocol.Level{Name: protocol.Majority}, Limit: 5 * time.Second,
	})
}

// updates returns how many updates of a home are in the key k.
func updates(f *fleet, home int) uint64 {
	e, _ := f.at(home).table.Get("k")
	n := uint64(0)
	for _, v := range e.Versions {
		n += v.Count
	}
	return n
}

// loses loses the first messages of a sort between two nodes.
func (f *fleet) loses(n int, is func(body any) bool) {
	f.drop = func(_, _ int, body any) bool {
		if n == 0 || !is(body) {
			return false
		}
		n--
		return true
	}
}

func isCommit(body any) bool    { _, is := body.(protocol.Commit); return is }
func isCommitted(body any) bool { _, is := body.(protocol.Committed); return is }

// A commit, or its answer, that is lost is asked for again, and the change is made once.
func TestALostCommitIsAskedForAgain(t *testing.T) {
	for name, is := range map[string]func(any) bool{"commit": isCommit, "answer": isCommitted} {
		t.Run(name, func(t *testing.T) {
			f, asker, home := away(t)
			f.loses(2, is)
			commit(f, asker)
			f.run(time.Second)
			require.Len(t, f.at(asker).done, 1, "long before its time is over")
			require.Equal(t, protocol.Confirmed, f.at(asker).done[0].Verdict)
			require.EqualValues(t, 1, updates(f, home))
		})
	}
}

// A commit that comes twice is made once, and answered as the first time, also while it runs.
func TestADoubledCommitIsMadeOnce(t *testing.T) {
	f, asker, home := away(t)
	var first protocol.Commit
	acknowledged := false
	f.drop = func(_, _ int, body any) bool {
		if c, is := body.(protocol.Commit); is {
			first = c
		}
		_, taken := body.(protocol.DeltasTaken)
		return (taken || isPutTaken(body)) && !acknowledged
	}
	commit(f, asker)
	again := func() { f.at(asker).speak(home, f.at(asker).envelope(first)) }
	again()
	require.Empty(t, f.at(asker).done, "it runs")
	acknowledged = true
	f.run(time.Second)
	require.Len(t, f.at(asker).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(asker).done[0].Verdict)
	again()
	f.run(time.Second)
	require.EqualValues(t, 1, updates(f, home))
}

// A commit takes the place of what has fetched, and is no further operation: at the bound it is
// made, and ends once.
func TestACommitIsMadeAtTheBoundOfOperations(t *testing.T) {
	f, asker, home := away(t, func(r *replica) { r.bounds.Operations = 1 })
	commit(f, asker)
	f.run(10 * time.Second)
	require.Len(t, f.at(asker).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(asker).done[0].Verdict)
	require.EqualValues(t, 1, updates(f, home))
}

// A home that does not remember its answer says of a change that it cannot make that it may have
// made it: who asks must not take that for a conflict, and make the change again.
func TestAForgottenAnswerIsNoConflict(t *testing.T) {
	f, asker, home := away(t, func(r *replica) { r.bounds.Operations = 2 })
	f.loses(1, isCommitted)
	commit(f, asker)
	for op := range protocol.OpID(2) { // Their answers take the place of the first.
		other := protocol.Commit{Op: 77 + op, Key: "k", Type: elements, Delta: crdt.GSet[uint64]{}.Add(8), Base: 1, Limit: time.Second}
		f.at(asker).speak(home, f.at(asker).envelope(other))
	}
	f.run(time.Second)
	require.Len(t, f.at(asker).done, 1)
	require.Equal(t, protocol.Unconfirmed, f.at(asker).done[0].Verdict)
	require.EqualValues(t, 1, updates(f, home))
}

func isPutTaken(body any) bool { _, is := body.(protocol.PutTaken); return is }

// envelope returns a message that the machine of this node might send.
func (r *replica) envelope(body any) protocol.Envelope {
	reg := r.Register(0)
	return protocol.Envelope{From: protocol.ReplicaID(r.i), Lineage: reg.Lineage, Gen: reg.Gen, Register: reg, Caught: true, Body: body}
}
