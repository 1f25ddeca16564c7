// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

// The contract of stores, by several processes at once; then what a process that was killed leaves of
// its line, and files that are damaged; then what auditors read, and the time that a start takes.

// processes is several stores over one directory, which take turns.
type processes struct {
	stores []*journal.Store
	turn   atomic.Uint64
}

func (p *processes) next() *journal.Store { return p.stores[p.turn.Add(1)%uint64(len(p.stores))] }

func (p *processes) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	return p.next().Load(ctx, claims)
}

func (p *processes) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	return p.next().Save(ctx, writes)
}

// open returns so many stores over one directory.
func open(t testing.TB, dir string, n int) *processes {
	t.Helper()
	p := new(processes)
	for i := range n {
		s, err := journal.Open(dir, fmt.Sprint("node-", i))
		require.NoError(t, err)
		p.stores = append(p.stores, s)
	}
	return p
}

func TestTheStoreKeepsTheContract(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " processes"), func(t *testing.T) {
			statetest.Test(t, statetest.Place{
				New: func(t testing.TB) statetest.Server {
					dir := t.TempDir()
					return statetest.Server{Store: open(t, dir, n), Restart: func(t testing.TB) store.Store { return open(t, dir, n) }}
				},
				Changes: 300, // The three journals of the suite are read as a whole at each start.
			})
		})
	}
}

// key is the record of the tests.
var key = store.Key{Kind: "account", ID: "a"}

// by returns an owner of the n-th epoch.
func by(n uint64) store.Owner { return store.Owner{Epoch: epoch.Epoch{Born: 1, N: n}, Instance: 1} }

// happened is a write of one event.
func happened(owner store.Owner, expected uint64, text string) store.Write {
	return store.Write{Key: key, Owner: owner, Expected: expected, Version: expected + 1, Events: []store.Value{{Form: 1, Bytes: []byte(text)}}}
}

// written returns a directory with a record of one owner and one event.
func written(t *testing.T) (string, *journal.Store) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, dir, 1).stores[0]
	_, err := s.Load(t.Context(), []store.Claim{{Key: key, Owner: by(1)}})
	require.NoError(t, err)
	heads, err := s.Save(t.Context(), []store.Write{happened(by(1), 0, "whole")})
	require.NoError(t, err)
	require.Equal(t, []store.Head{{Owner: by(1), Version: 1}}, heads)
	return dir, s
}

// add appends a text to the file of the record.
func add(t *testing.T, dir, text string) {
	t.Helper()
	file, err := os.OpenFile(journal.Path(dir, key), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// A process that dies in the middle of a line leaves a part of it: that does not count, and harms no
// line after it, whatever its length.
func TestALineThatBreaksOffDoesNotCount(t *testing.T) {
	dir, s := written(t)
	file, err := os.ReadFile(journal.Path(dir, key))
	require.NoError(t, err)
	_, err = s.Save(t.Context(), []store.Write{happened(by(1), 1, "torn")})
	require.NoError(t, err)
	whole, err := os.ReadFile(journal.Path(dir, key))
	require.NoError(t, err)
	for cut := len(file); cut < len(whole); cut++ {
		require.NoError(t, os.WriteFile(journal.Path(dir, key), whole[:cut], 0o600))
		next := open(t, dir, 1)
		records, err := next.Load(t.Context(), []store.Claim{{Key: key, Owner: by(2)}})
		require.NoError(t, err)
		require.Equal(t, store.Head{Owner: by(2), Version: 1}, records[0].Head)
		require.Len(t, records[0].Events, 1)
		heads, err := next.Save(t.Context(), []store.Write{happened(by(2), 1, "after it")})
		require.NoError(t, err)
		require.Equal(t, []store.Head{{Owner: by(2), Version: 2}}, heads)
	}
}

// A file that holds anything else is damaged: an error, and no empty record.
func TestADamagedFileIsAnError(t *testing.T) {
	for _, text := range []string{"\nno json", "\n{}", `}`, "\n" + `{"claim":{"Owner":{"Epoch":"x"}}}`} {
		dir, _ := written(t)
		add(t, dir, text+"\n")
		next := open(t, dir, 1)
		_, err := next.Load(t.Context(), []store.Claim{{Key: key, Owner: by(2)}})
		if text == "}" { // Behind a line that is whole: it is ignored.
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, journal.Path(dir, key), text)
		_, err = next.Save(t.Context(), []store.Write{happened(by(1), 1, "x")})
		require.Error(t, err, text)
		_, err = journal.Read(dir, key)
		require.Error(t, err, text)
		_, err = journal.Keys(dir)
		require.Error(t, err, text)
	}
}

// A file that is gone, or was put back to what it was, is read anew.
func TestAFileThatIsShorterThanBefore(t *testing.T) {
	dir, s := written(t)
	_, err := s.Save(t.Context(), []store.Write{happened(by(1), 1, "a long event, so that the next line is shorter than this one was")})
	require.NoError(t, err)
	require.NoError(t, os.Remove(journal.Path(dir, key)))
	heads, err := s.Save(t.Context(), []store.Write{happened(by(1), 2, "x")})
	require.NoError(t, err)
	require.Equal(t, []store.Head{{}}, heads)
}

// Auditors see each line, and whether it was done.
func TestAuditorsSeeWhatWasRefused(t *testing.T) {
	dir, s := written(t)
	_, err := s.Load(t.Context(), []store.Claim{{Key: key, Owner: by(3)}})
	require.NoError(t, err)
	_, err = s.Load(t.Context(), []store.Claim{{Key: key, Owner: by(2)}})
	require.NoError(t, err)
	heads, err := s.Save(t.Context(), []store.Write{happened(by(1), 1, "late")})
	require.NoError(t, err)
	require.Equal(t, []store.Head{{Owner: by(3), Version: 1}}, heads)
	entries, err := journal.Read(dir, key)
	require.NoError(t, err)
	var done []bool
	for _, e := range entries {
		require.Equal(t, "node-0", e.Node)
		require.Positive(t, e.At)
		done = append(done, e.Counts)
	}
	require.Equal(t, []bool{true, true, true, false, false}, done)
	keys, err := journal.Keys(dir)
	require.NoError(t, err)
	require.Equal(t, []store.Key{key}, keys)
	_, err = journal.Read(dir, store.Key{Kind: "account", ID: "nobody"})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = journal.Keys(dir + "-nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// BenchmarkLoad measures how long an account waits for its journal when it moves: the
// journal has 240 events of twelve owners.
func BenchmarkLoad(b *testing.B) {
	s := open(b, b.TempDir(), 1)
	for i := range uint64(12) {
		_, err := s.Load(b.Context(), []store.Claim{{Key: key, Owner: by(i)}})
		require.NoError(b, err)
		for n := range uint64(20) {
			_, err := s.Save(b.Context(), []store.Write{happened(by(i), i*20+n, "a transfer")})
			require.NoError(b, err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		records, err := s.Load(b.Context(), []store.Claim{{Key: key, Owner: by(12)}})
		if err != nil || len(records[0].Events) != 240 {
			b.Fatalf("%d events: %v", len(records[0].Events), err)
		}
	}
}
