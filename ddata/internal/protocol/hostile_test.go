// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Replicas that lie: what a member of the cluster can say that is nonsense, or the answer of
// another.

// unsorted is a set as no machine makes it.
func unsorted(of ...protocol.ReplicaID) protocol.Set {
	var s protocol.Set
	for _, id := range of {
		s = append(s, protocol.Replica{ID: id})
	}
	return s
}

// change returns a register that is changed by a function.
func changed(r *protocol.Register, do func(*protocol.Register)) *protocol.Register {
	c := *r
	do(&c)
	return &c
}

// nonsense are contents that no machine sends.
func nonsense() map[string]any {
	many := make([]uint64, 64)
	return map[string]any{
		"nothing":                   nil,
		"a number":                  7,
		"groups that are not there": protocol.AskBuckets{Pass: 1, Groups: []uint8{64, 255}},
		"hashes of such":            protocol.BucketHashes{Pass: 1, Groups: []uint8{255}, Hashes: many},
		"too few hashes":            protocol.BucketHashes{Pass: 1, Groups: []uint8{1}, Hashes: many[:1]},
		"too many sums":             protocol.Groups{Pass: 1, Sums: make([]uint64, 1000)},
		"no such bucket":            protocol.Pull{Pass: 1, Buckets: []protocol.BucketSummary{{Bucket: 65535}}},
		"wants no such bucket":      protocol.PullReply{Pass: 1, Done: []uint16{65535}, Missing: []protocol.MissingEntry{{Bucket: 65535, Key: 1}}},
		"an entry without type":     protocol.Put{Op: 1, Stamp: 1, Entries: []table.Entry{{Key: "k", State: table.Live}}},
		"an entry without key":      protocol.Put{Op: 1, Stamp: 1, Entries: []table.Entry{{State: table.Deleted}}},
		"a change without type":     protocol.Deltas{Seq: 1, Stamp: 1, Changes: []table.Change{{Key: "k", Origin: 1, To: 1}}},
		"a batch of another":        protocol.DeltasTaken{Seq: 99, Gaps: []string{"", "k"}, Deleted: []string{"k"}},
		"an operation of another":   protocol.PutTaken{Op: 99, Deleted: []string{"k"}},
		"an answer to nobody":       protocol.Answer{Op: 99},
		"a sweep of tomorrow":       protocol.Sweep{Gen: 99, UpTo: 98, Retired: []crdt.Origin{1, 2, 3}},
		"no question was asked":     protocol.SweepReply{Gen: 1, Tombs: 1},
		"no ballot was begun":       protocol.Promise{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}},
		"nothing was proposed":      protocol.Accepted{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}},
		"no value":                  protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}},
		"a value without sets":      protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}, Value: &protocol.Register{Gen: 2}},
		"a key without type":        protocol.Commit{Op: 1, Key: "k", Level: protocol.Level{Name: 200, N: -1, Extra: -9, MinCap: -9}, Limit: -time.Second},
		"nothing was asked for":     protocol.EntryReply{Op: 99, At: 1},
		"another is older":          protocol.OlderStore{Of: 99, Written: 1 << 63},
		"older than in memory":      protocol.OlderStore{Of: 2, Written: 1 << 63},
		"nothing was committed":     protocol.Committed{Op: 99, Verdict: 200},
	}
}

// What a member says that makes no sense changes nothing, and what a stranger says is not
// heard.
// covers B31, B42.
func TestNonsenseIsHarmless(t *testing.T) {
	for name, body := range nonsense() {
		t.Run(name, func(t *testing.T) {
			reg := stable(1, 1, 2, 3)
			f := alone(t, 4, 2, reg)
			f.at(2).add(1)
			f.run(2 * time.Second) // Comparisons are under way.
			before, _ := f.at(2).table.Get("k")
			for _, from := range []int{1, 4} {
				f.at(from).say(2, reg, body)
			}
			f.run(2 * time.Second)
			after, _ := f.at(2).table.Get("k")
			require.Equal(t, table.HashOfEntry(before), table.HashOfEntry(after))
			require.True(t, reg.Equal(f.at(2).Register(0)))
			heard := f.at(2).Counts().Strangers
			f.at(2).step(machine.Received{From: node(9), Message: protocol.Envelope{From: 9, Body: body}})
			require.Equal(t, heard+1, f.at(2).Counts().Strangers)
			f.at(1).say(2, reg, protocol.Ask{Op: 5, Key: "k"})
			require.NotNil(t, mustHear[protocol.Answer](f.at(1)).Entry, "it goes on")
		})
	}
}

// A register that no machine makes is not taken over, and none of it is proposed or accepted.
func TestAbsurdRegistersAreRefused(t *testing.T) {
	good := stable(2, 1, 2, 3)
	for name, do := range map[string]func(*protocol.Register){
		"no phase":             func(r *protocol.Register) { r.Phase = 0 },
		"no such phase":        func(r *protocol.Register) { r.Phase = 9 },
		"no lineage":           func(r *protocol.Register) { r.Lineage = protocol.Lineage{} },
		"nobody counts":        func(r *protocol.Register) { r.Current = nil },
		"not in order":         func(r *protocol.Register) { r.Current = unsorted(3, 1, 2) },
		"twice the same":       func(r *protocol.Register) { r.Current = unsorted(1, 1, 2) },
		"no replica":           func(r *protocol.Register) { r.Current = unsorted(0, 1, 2) },
		"joint without next":   func(r *protocol.Register) { r.Phase = protocol.PhaseJoint },
		"stable with next":     func(r *protocol.Register) { r.Next = set(1) },
		"ended without old":    func(r *protocol.Register) { r.Phase = protocol.PhaseEnded },
		"stable with old":      func(r *protocol.Register) { r.Old = set(1) },
		"swept in the future":  func(r *protocol.Register) { r.Swept = 3 },
		"retired without name": func(r *protocol.Register) { r.Retired = []crdt.Origin{0} },
		"held without homes":   func(r *protocol.Register) { r.Held = []protocol.Held{{Buckets: []uint16{1}}} },
		"held without buckets": func(r *protocol.Register) { r.Held = []protocol.Held{{Homes: set(1)}} },
		"held homes unsorted":  func(r *protocol.Register) { r.Held = []protocol.Held{{Homes: unsorted(2, 1), Buckets: []uint16{1}}} },
		"held moves nowhere": func(r *protocol.Register) {
			r.Held = []protocol.Held{{Homes: set(1), Moves: true, Buckets: []uint16{1}}}
		},
		"held twice": func(r *protocol.Register) {
			r.Held = []protocol.Held{{Homes: set(1), Buckets: []uint16{1}}, {Homes: set(2), Buckets: []uint16{1}}}
		},
		"no such bucket is held": func(r *protocol.Register) { r.Held = []protocol.Held{{Homes: set(1), Buckets: []uint16{4096}}} },
		"reset in the future":    func(r *protocol.Register) { r.Resets = []protocol.Reset{{Gen: 3, Buckets: []uint16{1}}} },
		"reset without buckets":  func(r *protocol.Register) { r.Resets = []protocol.Reset{{Gen: 1}} },
		"reset unsorted":         func(r *protocol.Register) { r.Resets = []protocol.Reset{{Gen: 1, Buckets: []uint16{2, 1}}} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := changed(good, do)
			f := alone(t, 3, 2, stable(1, 1, 2, 3))
			malformed := f.at(2).Counts().Malformed
			f.at(1).say(2, bad, protocol.Hello{})
			require.Equal(t, uint64(1), f.at(2).Register(0).Gen)
			require.Equal(t, malformed+1, f.at(2).Counts().Malformed)
			f.at(1).heard = nil
			f.at(1).say(2, stable(1, 1, 2, 3), protocol.Accept{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}, Value: bad})
			_, accepted := heardLast[protocol.Accepted](f.at(1))
			require.False(t, accepted)
			f.at(1).say(2, stable(1, 1, 2, 3), protocol.Promise{Slot: 2, Ballot: protocol.Ballot{Round: 9, By: 1}, Accepted: protocol.Ballot{Round: 9, By: 1}, Value: bad})
			require.Equal(t, malformed+3, f.at(2).Counts().Malformed)
		})
	}
	t.Run("another generation than the sender's", func(t *testing.T) {
		f := alone(t, 3, 2, stable(1, 1, 2, 3))
		f.at(1).speak(2, protocol.Envelope{From: 1, Lineage: good.Lineage, Gen: 7, Register: good, Body: protocol.Hello{}})
		require.Equal(t, uint64(1), f.at(2).Register(0).Gen)
	})
}

// In memory a replica is a node: a member cannot speak for the replica of another.
func TestAMemberDoesNotSpeakForAnother(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 4, 2, reg)
	malformed := f.at(2).Counts().Malformed
	f.at(4).speak(2, protocol.Envelope{From: 3, Lineage: reg.Lineage, Gen: 1, Body: protocol.Hello{}})
	require.Equal(t, malformed+1, f.at(2).Counts().Malformed)
	of, ok := f.at(2).Route(0).Node(3)
	require.True(t, ok)
	require.Equal(t, gossip.UID(3), of.UID)
}

// writing returns a fleet of which the second has a write under way, which nobody but itself
// has confirmed.
func writing(t *testing.T) (*fleet, *protocol.Register) {
	t.Helper()
	reg := stable(1, 1, 2, 3)
	f := alone(t, 4, 2, reg)
	change := f.at(2).add(1)
	f.at(2).command(protocol.Write{
		Op: 1, Change: change, Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second,
	})
	f.run(time.Second)
	require.Empty(t, f.at(2).done)
	return f, reg
}

// The word of a replica that was not asked confirms no write, and ends none.
func TestOnlyThoseWhoCountConfirm(t *testing.T) {
	f, reg := writing(t)
	f.at(4).say(2, reg, protocol.PutTaken{Op: 1})
	f.at(4).say(2, reg, protocol.PutTaken{Op: 1, Deleted: []string{"k"}})
	f.at(4).say(2, reg, protocol.PutTaken{Op: 1, Refusals: []protocol.Refusal{{Key: "k", Reason: "no"}}})
	for seq := range uint64(4) {
		f.at(4).say(2, reg, protocol.DeltasTaken{Seq: seq})
		f.at(4).say(2, reg, protocol.DeltasTaken{Seq: seq, Deleted: []string{"k"}})
	}
	require.Empty(t, f.at(2).done)
	f.at(3).say(2, reg, protocol.PutTaken{Op: 1})
	require.Len(t, f.at(2).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(2).done[0].Verdict)
	require.Empty(t, f.at(2).done[0].Refusals)
}

// A read takes the answers of those whom it asks, and gives what has changed back to a
// majority before it returns.
func TestAReadWritesBackBeforeItReturns(t *testing.T) {
	reg := stable(1, 2, 3, 4)
	f := alone(t, 5, 1, reg)
	other := f.at(5)
	change := other.add(1)
	entry, _ := other.table.Get("k")
	require.NotZero(t, change.To)
	f.at(1).command(protocol.Read{Op: 1, Key: "k", Level: protocol.Level{Name: protocol.Majority}, Limit: 20 * time.Second})
	f.at(4).add(666)
	lie, _ := f.at(4).table.Get("k")
	f.at(5).say(1, reg, protocol.Answer{Op: 1, Entry: &lie})
	f.at(2).say(1, reg, protocol.Answer{Op: 1, Entry: &entry})
	f.at(3).say(1, reg, protocol.Answer{Op: 1, Same: true})
	require.Empty(t, f.at(1).done, "one of three holds it")
	put := mustHear[protocol.Put](f.at(3))
	require.Len(t, put.Entries, 1)
	f.at(3).say(1, reg, protocol.PutTaken{Op: 1})
	require.Len(t, f.at(1).done, 1)
	require.Equal(t, protocol.Confirmed, f.at(1).done[0].Verdict)
	require.False(t, f.at(1).done[0].Entry.Value.(crdt.GSet[uint64]).Has(666), "the answer of who was not asked counts for nothing")
}

// A change of which an earlier one is missing is not taken, and the answer says so.
// covers B32.
func TestAGapIsAnswered(t *testing.T) {
	reg := stable(1, 1, 2, 3)
	f := alone(t, 3, 2, reg)
	delta := table.Change{Key: "d", Type: elements, Origin: protocol.OriginOf(1), From: 1, To: 2, Delta: crdt.GSet[uint64]{}.Add(7)}
	f.at(1).say(2, reg, protocol.Deltas{Seq: 1, Stamp: 1, Changes: []table.Change{delta}})
	require.Equal(t, []string{"d"}, mustHear[protocol.DeltasTaken](f.at(1)).Gaps)
	_, ok := f.at(2).table.Get("d")
	require.False(t, ok)
}
