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

// A journal under owners that follow each other: what a new owner reads, an owner that was
// replaced, epochs that are too old; then lines that are torn or damaged; then an owner that
// opens its epoch again, which node the owner is, and the time that opening takes.

// plain takes the times out of records, which differ from run to run.
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

// TestANewOwnerReadsEverythingAcknowledged shows that records survive changes of the owner,
// in their order.
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

// TestAnOwnerThatWasReplacedIsNotAcknowledged plays a process that was frozen: it writes
// after its successor has read the journal, and must learn that the write does not count.
// No later owner may read that write.
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

// TestTornLinesAndMissingHeadersDoNotCount plays processes that die in the middle of a
// write.
func TestTornLinesAndMissingHeadersDoNotCount(t *testing.T) {
	dir := t.TempDir()
	a, _ := open(t, dir, "1")
	require.NoError(t, a.Append(journal.Record{Transfer: "whole", Cents: 1}))
	segment, err := os.OpenFile(filepath.Join(dir, "seal-1"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = segment.WriteString(`{"transfer":"torn"`)
	require.NoError(t, err)
	require.NoError(t, segment.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal-2"), nil, 0o644)) // Its owner died before it wrote the header.

	_, records := open(t, dir, "3")
	require.Equal(t, []journal.Record{{Transfer: "whole", Cents: 1}}, records)
}

// TestAnUnreadableSegmentIsAnError shows that a damaged line is not taken for the end of the
// journal.
func TestAnUnreadableSegmentIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal-1"), []byte("no json\n"), 0o644))
	_, _, err := journal.Open(dir, "2", "node-2")
	require.ErrorContains(t, err, "segment 1")
}

// TestAnOwnerOpensItsEpochAgain plays an entity that failed and is started again by the same
// node.
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

// TestOwnerIsWhoBeganLast shows that a journal belongs to the owner that began last. A
// successor that has not written its header has not begun.
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

// BenchmarkOpen measures how long an account waits for its journal when it moves: the
// journal has 240 records of twelve owners.
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
