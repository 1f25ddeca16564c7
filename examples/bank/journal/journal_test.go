// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank/journal"
)

// plain forgets when the records were written.
func plain(records []journal.Record) []journal.Record {
	for i := range records {
		records[i].At = 0
	}
	return records
}

// open opens dir and closes the journal with the test.
func open(t *testing.T, dir, epoch string) (*journal.Journal, []journal.Record) {
	t.Helper()
	j, records, err := journal.Open(dir, epoch, "node-"+epoch)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j, plain(records)
}

// TestANewOwnerReadsEverythingAcknowledged shows that records survive changes
// of the owner in order.
func TestANewOwnerReadsEverythingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	a, records := open(t, dir, "1")
	require.Empty(t, records)
	require.NoError(t, a.Append(journal.Record{Transfer: "t1", Cents: 5}))

	b, records := open(t, dir, "2")
	require.Equal(t, []journal.Record{{Transfer: "t1", Cents: 5}}, records)
	require.NoError(t, b.Append(journal.Record{Transfer: "t2", Cents: -3}))

	_, records = open(t, dir, "3")
	require.Equal(t, []journal.Record{{Transfer: "t1", Cents: 5}, {Transfer: "t2", Cents: -3}}, records)
}

// TestAnOwnerThatWasReplacedIsNotAcknowledged is the frozen process: it wakes
// after its successor has read the journal, writes, and must learn that the
// write does not count. No later owner may read it.
func TestAnOwnerThatWasReplacedIsNotAcknowledged(t *testing.T) {
	dir := t.TempDir()
	frozen, _ := open(t, dir, "1")
	next, _ := open(t, dir, "2")
	require.ErrorIs(t, frozen.Append(journal.Record{Transfer: "late", Cents: 1}), journal.ErrSealed)
	require.NoError(t, next.Append(journal.Record{Transfer: "kept", Cents: 2}))

	_, records := open(t, dir, "3")
	require.Equal(t, []journal.Record{{Transfer: "kept", Cents: 2}}, records)

	chain, err := journal.ReadChain(dir)
	require.NoError(t, err)
	require.Equal(t, []journal.Record{{Transfer: "late", Cents: 1}}, plain(chain[0].Beyond))
}

// TestAnOldEpochCannotOpen shows that a late start with an old epoch is
// refused, and leaves nothing that counts.
func TestAnOldEpochCannotOpen(t *testing.T) {
	dir := t.TempDir()
	owner, _ := open(t, dir, "2")
	_, _, err := journal.Open(dir, "1", "node-1")
	require.ErrorIs(t, err, journal.ErrSealed)
	_, _, err = journal.Open(dir, "2", "another")
	require.ErrorIs(t, err, journal.ErrSealed)
	require.NoError(t, owner.Append(journal.Record{Transfer: "t", Cents: 1}))
	chain, err := journal.ReadChain(dir)
	require.NoError(t, err)
	require.Len(t, chain, 1)
}

// TestTornLinesAndMissingHeadersDoNotCount is the process that dies in the
// middle of a write.
func TestTornLinesAndMissingHeadersDoNotCount(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "1")
	require.NoError(t, a.Append(journal.Record{Transfer: "whole", Cents: 1}))
	segment, err := os.OpenFile(filepath.Join(dir, "seal-1"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = segment.WriteString(`{"transfer":"torn"`)
	require.NoError(t, err)
	require.NoError(t, segment.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal-2"), nil, 0o644)) // Died before its header.

	_, records := open(t, dir, "3")
	require.Equal(t, []journal.Record{{Transfer: "whole", Cents: 1}}, records)
}

// TestAnUnreadableSegmentIsAnError shows that damage is not taken for the end.
func TestAnUnreadableSegmentIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal-1"), []byte("no json\n"), 0o644))
	_, _, err := journal.Open(dir, "2", "node-2")
	require.ErrorContains(t, err, "segment 1")
}

// TestAnOwnerOpensItsEpochAgain is the entity that failed and is started anew
// by the same host.
func TestAnOwnerOpensItsEpochAgain(t *testing.T) {
	dir := t.TempDir()
	first, _ := open(t, dir, "1")
	require.NoError(t, first.Append(journal.Record{Transfer: "a", Cents: 1}))
	require.NoError(t, first.Close())
	second, records := open(t, dir, "1")
	require.Equal(t, []journal.Record{{Transfer: "a", Cents: 1}}, records)
	require.NoError(t, second.Append(journal.Record{Transfer: "b", Cents: 2}))
	_, records = open(t, dir, "2")
	require.Len(t, records, 2)
}

// TestOwnerIsWhoBeganLast tells who owns a journal, also while its successor
// has not got to its header.
func TestOwnerIsWhoBeganLast(t *testing.T) {
	dir := t.TempDir()
	owner, err := journal.Owner(dir)
	require.NoError(t, err)
	require.Empty(t, owner)
	open(t, dir, "1")
	open(t, dir, "2")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal-3"), nil, 0o600))
	owner, err = journal.Owner(dir)
	require.NoError(t, err)
	require.Equal(t, "node-2", owner)
	_, err = journal.Owner(filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// BenchmarkOpen takes over a journal that has seen twelve owners and 240
// records: it is what an account waits for when it moves.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	epoch := func(i int) string { return fmt.Sprintf("%06d", i) }
	for i := range 12 {
		j, _, err := journal.Open(dir, epoch(i), "owner")
		require.NoError(b, err)
		for n := range 20 {
			require.NoError(b, j.Append(journal.Record{Transfer: fmt.Sprintf("t-%d-%d", i, n), Cents: 1}))
		}
		require.NoError(b, j.Close())
	}
	b.ReportAllocs()
	for b.Loop() {
		// The owner opens its own epoch again, so that the journal does not grow.
		j, records, err := journal.Open(dir, epoch(11), "owner")
		if err != nil || len(records) != 240 {
			b.Fatalf("%d records: %v", len(records), err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
