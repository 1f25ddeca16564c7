// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/steps"
	"github.com/quorate/quorate/machine"
)

// weighed is what a step has done.
type weighed struct {
	objects, bytes int
	effects        int
	entries        int // Of the replica, in messages.
}

// weigh has a replica receive a message, and measures the step. What the step causes is not carried out.
func (r *replica) weigh(from int, reg *protocol.Register, body any) (w weighed) {
	var out machine.Outbox
	in := machine.Received{From: node(from), Message: protocol.Envelope{From: protocol.ReplicaID(from), Lineage: reg.Lineage, Gen: reg.Gen, Register: reg, Caught: true, Body: body}}
	w.objects, w.bytes = steps.Allocated(func() { r.Step(machine.Now{Mono: r.f.now}, in, &out) })
	for _, e := range out.Effects() {
		w.effects++
		if s, ok := e.(machine.Send); ok {
			switch b := s.Message.(protocol.Envelope).Body.(type) {
			case protocol.Put:
				w.entries += len(b.Entries)
			case protocol.PullReply:
				w.entries += len(b.Entries)
			}
		}
	}
	return w
}

// keysOf returns keys of two buckets.
func keysOf(n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("key-", i); table.BucketOf(key) < 2 {
			keys = append(keys, key)
		}
	}
	return keys
}

// The largest message of each type is a step in proportion to what it names and what the replica holds, in what is
// allocated and in what is sent: also if it names a thing again and again, or things that nobody has asked about.
func TestTheLargestMessagesAreBoundedSteps(t *testing.T) {
	const held, most = 1000, 20_000 // Entries of the replica, in two buckets, and what a message names.
	reg := stable(3, 1, 2)
	f := alone(t, 2, 2, reg)
	r, other := f.at(2), f.at(1)
	keys := keysOf(held)
	var entries []table.Entry
	var changes []table.Change
	var refusals []protocol.Refusal
	var wants []protocol.MissingEntry
	var repeated, texts []string
	var origins []crdt.Origin
	var nodes []gossip.NodeID
	var missing []protocol.ReplicaID
	many := protocol.BucketSummary{}
	for i := range most {
		key := keys[i%held]
		entry := table.Entry{Key: key, State: table.Live, Type: elements, Value: crdt.GSet[uint64]{}.Add(7).Settled(), Versions: table.Versions{{Origin: protocol.OriginOf(1), Count: 1}}}
		entries = append(entries, entry)
		changes = append(changes, table.Change{Key: key, Type: elements, Origin: protocol.OriginOf(1), To: 1, Delta: crdt.GSet[uint64]{}.Add(7)})
		refusals = append(refusals, protocol.Refusal{Key: key, Reason: "no"})
		wants = append(wants, protocol.MissingEntry{Bucket: uint16(i % 2), Key: table.HashKey(key)})
		many.Keys = append(many.Keys, protocol.KeyHash{Key: uint64(i), Entry: 1})
		repeated, texts = append(repeated, keys[0]), append(texts, fmt.Sprint("other-", i))
		origins, nodes, missing = append(origins, protocol.OriginOf(gossip.UID(1000+i))), append(nodes, node(i+10)), append(missing, protocol.ReplicaID(i+1))
	}
	r.weigh(1, reg, protocol.Put{Op: 1, Stamp: 3, Entries: entries[:held]})
	big := changed(reg, func(r *protocol.Register) { r.Gen, r.Retired = 4, origins })
	change := r.add(1)
	r.command(protocol.Write{Op: 9, Change: change, Level: protocol.Level{Name: protocol.All}, Limit: time.Minute})
	flight := mustHear[protocol.Deltas](other).Seq
	f.run(2 * time.Second)
	pass := mustHear[protocol.Compare](other).Pass
	sums, hashes := make([]uint64, 64), make([]uint64, 64)
	sums[0], hashes[0], hashes[1] = 1, 1, 1
	buckets := make([]protocol.BucketSummary, 512) // The same again and again.
	reason := strings.Repeat("x", most)
	ballot := protocol.Ballot{Round: 9, By: 1}
	all := make([]uint8, 64)
	for i := range all {
		all[i] = uint8(i)
	}
	rows := []any{
		protocol.Hello{Ask: true, Taken: 1},
		protocol.Deltas{Seq: 1, Stamp: 3, Changes: changes},
		protocol.DeltasTaken{Seq: flight, Gaps: repeated, Deleted: texts, Refusals: refusals},
		protocol.DeltasTaken{Seq: 1 << 40, Gaps: repeated},
		protocol.Put{Op: 1, Stamp: 3, Entries: entries},
		protocol.PutTaken{Op: 9, Deleted: texts, Refusals: refusals},
		protocol.Ask{Op: 1, Key: keys[0]},
		protocol.Answer{Op: 9, Entry: &entries[0]},
		protocol.EntryRequest{Op: 1, Key: keys[0]},
		protocol.EntryReply{Op: 9, Stamp: 3, Entry: &entries[0], At: 1, Base: 1},
		protocol.Commit{Op: 1, Stamp: 3, Key: keys[0], Type: elements, Delta: crdt.GSet[uint64]{}.Add(8), Level: protocol.Level{Name: protocol.All}, Limit: time.Minute},
		protocol.RemoveKey{Op: 2, Stamp: 3, Key: keys[1], Level: protocol.Level{Name: protocol.All}, Limit: time.Minute},
		protocol.Committed{Op: 9, Verdict: protocol.Confirmed, Answered: nodes, Missing: missing, Reason: reason},
		protocol.Compare{Pass: 1, Root: 1},
		protocol.AskBuckets{Pass: 1, Groups: all},
		protocol.Pull{Pass: 1, Buckets: buckets},
		protocol.Pull{Pass: 1, Buckets: []protocol.BucketSummary{many}},
		protocol.Groups{Pass: pass, Sums: sums},
		protocol.BucketHashes{Pass: pass, Groups: []uint8{0}, Hashes: hashes},
		protocol.PullReply{Pass: pass, Stamp: 3, Done: []uint16{0, 1}, Entries: entries, Missing: wants},
		protocol.Sweep{Gen: 3, UpTo: 2, Retired: origins},
		protocol.SweepReply{Gen: 3, Buckets: make([]table.BucketSum, most), Gone: origins},
		protocol.OlderStore{Of: 2, Written: 1},
		protocol.Prepare{Slot: 4, Ballot: ballot},
		protocol.Promise{Slot: 4, Ballot: ballot, Accepted: ballot, Value: big},
		protocol.Accept{Slot: 4, Ballot: ballot, Value: big},
		protocol.Accepted{Slot: 4, Ballot: ballot},
	}
	var names []string
	for i, body := range rows {
		names = append(names, reflect.TypeOf(body).Name())
		w := r.weigh(1, reg, body)
		require.LessOrEqual(t, w.objects, 20*(held+most), "row %d, %T", i, body)
		require.LessOrEqual(t, w.bytes, 2048*(held+most), "row %d, %T", i, body)
		require.LessOrEqual(t, w.effects, held+most, "row %d, %T", i, body)
		require.LessOrEqual(t, w.entries, held+10, "row %d, %T: each is sent once", i, body)
	}
	slices.Sort(names)
	require.Equal(t, slices.Sorted(slices.Values(append(steps.Cases(t, "received.go", "dispatch"), steps.Cases(t, "passes.go", "received")...))), slices.Compact(names), "each message has a row")
}
