// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
)

var update = flag.Bool("update", false, "write the golden bytes")

// The parts of the samples.
var (
	visits  = crdt.GCounter{}.Add(self, 7).Settled()
	basket  = crdt.ORSet[string]{}.Add(self, "milk").Settled()
	mine    = table.Versions{{Origin: self, Count: 3}}
	theirs  = table.Versions{{Origin: unknownField, Count: 300}, {Origin: self, Count: 4}}
	ballot  = protocol.Ballot{Round: 2, By: 0xa1}
	north   = protocol.NewSet(protocol.Replica{ID: 0xa1, Zone: "north"}, protocol.Replica{ID: 0xa2, Zone: "south"})
	entries = []table.Entry{
		{Key: "basket", Type: texts, Value: basket, Versions: theirs, State: table.Live},
		{Key: "gone", State: table.Deleted, Stamp: 6},
		{Key: "idle", Type: counter, Floor: mine, State: table.Expired, Stamp: 7},
		{Key: "visits", Type: counter, Value: visits, Versions: mine, Floor: theirs[:1], State: table.Live},
	}
	register = protocol.Register{
		Lineage: protocol.Lineage{Turn: 1, ID: 0x1122334455667788}, Continues: 0x77, Gen: 9, Phase: protocol.PhaseJoint, Current: north,
		Next:  protocol.NewSet(protocol.Replica{ID: 0xa2, Zone: "south"}, protocol.Replica{ID: 0xa3}),
		Swept: 5, Dropped: 0x99, Retired: []crdt.Origin{0xb1, 0xb2},
	}
	// without is register with buckets that have lost their homes.
	without = func() protocol.Register {
		r := register
		r.Held = []protocol.Held{
			{Buckets: []uint16{1, 300}, Homes: north, Old: protocol.NewSet(protocol.Replica{ID: 0xa4, Zone: "west"})},
			{Buckets: []uint16{4095}, Homes: north[:1], Moves: true},
		}
		r.Resets = []protocol.Reset{{Gen: 7, Spared: north[1:], Buckets: []uint16{2}}, {Gen: 8, Buckets: []uint16{3}}}
		return r
	}()
	level    = protocol.Level{Name: protocol.Majority, Extra: 1, MinCap: 3}
	refusals = []protocol.Refusal{{Key: "visits", Reason: "the table is full"}}
)

const (
	self         = crdt.Origin(0x0000_1234_5678_9abc)
	unknownField = crdt.Origin(0x0000_0234_5678_9abc)
)

// samples is one body of each type.
func samples() map[string]any {
	return map[string]any{
		"hello":    protocol.Hello{Ask: true, Taken: 9},
		"prepare":  protocol.Prepare{Slot: 10, Ballot: ballot},
		"promise":  protocol.Promise{Slot: 10, Ballot: ballot, Refused: true, Accepted: protocol.Ballot{Round: 1, By: 0xa2}, Value: &register},
		"accept":   protocol.Accept{Slot: 10, Ballot: ballot, Value: &register},
		"accepted": protocol.Accepted{Slot: 10, Ballot: ballot, Refused: true},
		"deltas": protocol.Deltas{Seq: 300, Stamp: 9, Changes: []table.Change{
			{Key: "visits", Type: counter, Origin: self, From: 2, To: 3, Delta: visits},
			{Key: "basket", Type: texts, Origin: self, To: 1, Delta: basket, Whole: true},
			{Key: "visits", Type: counter, Origin: unknownField, From: 300, To: 300},
		}},
		"deltas-taken":  protocol.DeltasTaken{Seq: 300, Stale: true, Gaps: []string{"basket", "visits"}, Deleted: []string{"gone"}, Refusals: refusals},
		"put":           protocol.Put{Op: 4, Stamp: 9, Entries: entries},
		"put-taken":     protocol.PutTaken{Op: 4, Stale: true, Deleted: []string{"gone"}, Refusals: refusals},
		"ask":           protocol.Ask{Op: 4, Key: "visits", Hash: 0x77},
		"answer":        protocol.Answer{Op: 4, Same: true, Hash: 0x77, Entry: &entries[0], Away: true},
		"compare":       protocol.Compare{Pass: 2, Root: 0x77},
		"groups":        protocol.Groups{Pass: 2, Same: true, Sums: []uint64{1, 0, 3}},
		"ask-buckets":   protocol.AskBuckets{Pass: 2, Groups: []uint8{0, 63}},
		"bucket-hashes": protocol.BucketHashes{Pass: 2, Groups: []uint8{0, 63}, Hashes: []uint64{1, 0, 3}},
		"pull": protocol.Pull{Pass: 2, Buckets: []protocol.BucketSummary{
			{Bucket: 4095, Keys: []protocol.KeyHash{{Key: 1, Entry: 2}, {Key: 3, Entry: 4}}}, {},
		}},
		"pull-reply": protocol.PullReply{Pass: 2, Stamp: 9, Done: []uint16{0, 4095}, Entries: entries, Missing: []protocol.MissingEntry{{Bucket: 4095, Key: 0x77}, {}}},
		"sweep":      protocol.Sweep{Gen: 9, UpTo: 8, Retired: []crdt.Origin{0xb1}},
		"sweep-reply": protocol.SweepReply{
			Gen: 9, Tombs: 0x99, Origins: 0x98, Veto: true, Marked: 3, Newer: true, Gone: []crdt.Origin{0xb1},
			Buckets: []table.BucketSum{{Bucket: 7, Tombs: 1, Origins: 2}, {Bucket: 4095, Tombs: 3, Origins: 4}},
		},
		"older-store":   protocol.OlderStore{Of: 0xa1, Written: 300},
		"entry-request": protocol.EntryRequest{Op: 4, Key: "visits"},
		"entry-reply":   protocol.EntryReply{Op: 4, Away: true, Entry: &entries[3], At: self, Base: 0x77, Stamp: 7},
		"commit": protocol.Commit{
			Op: 4, Key: "visits", Type: counter, Delta: visits, Whole: true, Base: 0x77, Stamp: 7, Level: level, Limit: 5 * time.Second, Again: true,
		},
		"remove-key": protocol.RemoveKey{Op: 4, Stamp: 7, Key: "visits", Level: level, Limit: 5 * time.Second},
		"committed": protocol.Committed{
			Op: 4, Verdict: protocol.Refused, Answered: []gossip.NodeID{node(1), node(2)}, Missing: []protocol.ReplicaID{0xa3},
			Refusals: []protocol.NodeRefusal{{Node: node(3), Reason: "the table is full"}}, Reason: "the table is full",
		},
	}
}

// enveloped returns an envelope with every field set.
func enveloped(body any) protocol.Envelope {
	return protocol.Envelope{
		Group: 1, From: 0xa1, Lineage: register.Lineage, Gen: 9, Sealed: true, Caught: true, Register: &register, Body: body,
		Loaded: 6, Written: 300, Agrees: true, Apart: true, Older: true, Unsure: true, Restarts: 2, Suspended: true,
	}
}

// golden compares bytes with those of the file, which never change.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".hex")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(hex.EncodeToString(b)+"\n"), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(want)), hex.EncodeToString(b))
}

// The bytes of every message are part of the wire.
func TestGoldenBytes(t *testing.T) {
	for name, body := range samples() {
		t.Run(name, func(t *testing.T) {
			m := protocol.Envelope{From: 0xa1, Lineage: register.Lineage, Gen: 9, Body: body}
			if name == "hello" {
				m = enveloped(body)
			}
			b, err := codec.Append(nil, m)
			require.NoError(t, err)
			golden(t, name, b)
			got, err := codec.Decode(b)
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
}

// The bytes of a register that names buckets without homes are part of the wire.
func TestGoldenBytesOfHeldBuckets(t *testing.T) {
	m := protocol.Envelope{From: 0xa1, Lineage: register.Lineage, Gen: 9, Body: protocol.Accept{Slot: 10, Ballot: ballot, Value: &without}}
	b, err := codec.Append(nil, m)
	require.NoError(t, err)
	golden(t, "accept-held", b)
	got, err := codec.Decode(b)
	require.NoError(t, err)
	require.Equal(t, m, got)
}

// The samples have every field of their messages set, so that a field that is added to a
// message and not to its codec is noticed.
func TestSamplesAreComplete(t *testing.T) {
	complete := func(v any) {
		of := reflect.ValueOf(v)
		for i := range of.NumField() {
			require.False(t, of.Field(i).IsZero(), "%T.%s", v, of.Type().Field(i).Name)
		}
	}
	complete(enveloped(protocol.Hello{}))
	complete(wholeMeta)
	for _, body := range samples() {
		complete(body)
	}
}
