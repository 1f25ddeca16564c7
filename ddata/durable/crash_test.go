// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
)

// small has a log that is full after a few batches, so that logs are replaced and runs
// merged all the time.
var small = Config{Dir: "tray", Cluster: "bank", LogBytes: logHead + 3000}

// dump is everything that is in a store: a line for each meta and each record.
func dump(t *testing.T, s *Store) (map[string]string, error) {
	t.Helper()
	got := map[string]string{}
	for _, group := range s.Groups() {
		got[group] = "exists"
		err := s.Load(t.Context(), group, func(meta []byte) error {
			got[group+"/meta"] = string(meta)
			return nil
		}, func(r store.Record) error {
			got[group+"/key/"+r.Key] = string(r.Value)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// changed returns the content after batches.
func changed(before map[string]string, batches []store.Batch) map[string]string {
	got := maps.Clone(before)
	for _, b := range batches {
		got[b.Group] = "exists"
		if b.Wipe {
			maps.DeleteFunc(got, func(key, _ string) bool { return len(key) > len(b.Group)+5 && key[:len(b.Group)+5] == b.Group+"/key/" })
		}
		if b.Meta != nil {
			got[b.Group+"/meta"] = string(b.Meta)
		}
		for _, r := range b.Put {
			got[b.Group+"/key/"+r.Key] = string(r.Value)
		}
		for _, key := range b.Drop {
			delete(got, b.Group+"/key/"+key)
		}
	}
	return got
}

var errTest = errors.New("the process has died")

// sampleBatches draws the next batches of the store of sample.
func sampleBatches(rng *rand.Rand) []store.Batch { return storetest.RandomBatches(rng) }

func lockless() noLock { return noLock{} }

// work does what the goroutine in the background would do.
func work(t *testing.T, s *Store) {
	t.Helper()
	select {
	case <-s.worker.wake:
		s.tidy(t.Context())
	default:
	}
}

const seedVariable = "QUORATE_DURABLE_SEED"

// seeds returns the seeds of a test, or the one that the environment names.
func seeds(t *testing.T, count uint64) []uint64 {
	t.Helper()
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		return []uint64{seed}
	}
	all := make([]uint64, count)
	for i := range all {
		all[i] = uint64(i)
	}
	return all
}

// A store whose machine crashes, or whose process dies, at any operation has everything at
// the next start that was acknowledged, and of what was not each batch whole or not at all.
func TestWhatWasAcknowledgedIsThereAfterACrash(t *testing.T) {
	for _, seed := range seeds(t, historyCount) {
		history(t, seed)
		if t.Failed() {
			t.Fatalf("repeat: %s=%d go test -run %s .", seedVariable, seed, t.Name())
		}
	}
}

func history(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	d := newTray(rng)
	want := map[string]string{}
	var starts uint64
	for range 8 {
		d.FailAt, d.Err = d.Operations+1+rng.IntN(90), errTest
		var doubt []store.Batch // what was not acknowledged
		s, err := open(small, d, lockless())
		if err == nil {
			require.Greater(t, s.Starts(), starts, "seed %d", seed)
			for err == nil {
				batches := storetest.RandomBatches(rng)
				if err = s.Apply(t.Context(), batches); err != nil {
					doubt = batches
					break
				}
				want = changed(want, batches)
				work(t, s)
			}
		}
		if rng.IntN(3) == 0 {
			d.Die()
		} else {
			d.Crash()
		}
		s, err = open(small, d, lockless())
		require.NoError(t, err, "seed %d", seed)
		require.Greater(t, s.Starts(), starts, "seed %d", seed)
		starts = s.Starts()
		got, err := dump(t, s)
		require.NoError(t, err, "seed %d", seed)
		match := slices.IndexFunc(prefixes(doubt), func(p []store.Batch) bool { return maps.Equal(changed(want, p), got) })
		require.GreaterOrEqual(t, match, 0, "seed %d: what is there is neither the acknowledged nor more of the last batches", seed)
		want = got
		if rng.IntN(2) == 0 {
			s.tidy(t.Context())
		}
		require.NoError(t, s.Close())
	}
}

// prefixes returns all beginnings of batches, none and all of them included.
func prefixes(batches []store.Batch) (all [][]store.Batch) {
	for i := range len(batches) + 1 {
		all = append(all, batches[:i])
	}
	return all
}

// A full disk, a disk that does not write and one that does not sync are told, and
// lose nothing that was acknowledged; after a full disk the same store goes on.
func TestADiskThatFailsLosesNothing(t *testing.T) {
	syncs := func(op string) bool { return op == "sync" }
	others := func(op string) bool { return op != "sync" }
	for name, c := range map[string]struct {
		err   error
		fails func(op string) bool
		kind  error
	}{
		"full":             {syscall.ENOSPC, others, store.ErrFull},
		"quota":            {syscall.EDQUOT, others, store.ErrFull},
		"full at the sync": {syscall.ENOSPC, syncs, syscall.ENOSPC},
		"broken":           {syscall.EIO, nil, syscall.EIO},
		"read only":        {syscall.EROFS, nil, syscall.EROFS},
		"not synced":       {syscall.EIO, syncs, syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				rng := rand.New(rand.NewPCG(seed, 3))
				d := newTray(rng)
				s, err := open(small, d, lockless())
				require.NoError(t, err)
				want := map[string]string{}
				var doubt []store.Batch
				d.FailAt, d.Err, d.Fails = d.Operations+1+rng.IntN(200), c.err, c.fails
				for err == nil {
					batches := storetest.RandomBatches(rng)
					if err = s.Apply(t.Context(), batches); err != nil {
						doubt = batches
						break
					}
					want = changed(want, batches)
					work(t, s)
				}
				require.ErrorIs(t, err, c.kind)
				require.Contains(t, err.Error(), "tray/", "it names the file")
				d.FailAt = 0
				if errors.Is(err, store.ErrFull) {
					work(t, s)
					got, err := dump(t, s)
					require.NoError(t, err)
					want, doubt = got, nil
					more := []store.Batch{{Group: "after", Put: []store.Record{{Key: "k", Value: []byte("v")}}}}
					require.NoError(t, s.Apply(t.Context(), more), "seed %d: there is room again", seed)
					want = changed(want, more)
				}
				_ = s.Close() // A disk that is broken may say so again.
				s, err = open(small, d, lockless())
				require.NoError(t, err, "seed %d", seed)
				got, err := dump(t, s)
				require.NoError(t, err)
				match := slices.IndexFunc(prefixes(doubt), func(p []store.Batch) bool { return maps.Equal(changed(want, p), got) })
				require.GreaterOrEqual(t, match, 0, "seed %d", seed)
				require.NoError(t, s.Close())
			}
		})
	}
}

// sample returns a tray with a store that has runs, logs and a table, and its content.
func sample(t *testing.T, mark int) (*tray, map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7)) // For the batches alone: everWritten draws the same.
	d := newTray(rand.New(rand.NewPCG(7, 8)))
	s, err := open(small, d, lockless())
	require.NoError(t, err)
	want := map[string]string{}
	for i := range 60 {
		batches := sampleBatches(rng)
		require.NoError(t, s.Apply(t.Context(), batches))
		want = changed(want, batches)
		if i < 45 {
			work(t, s)
		}
		if i == mark {
			require.NoError(t, s.Close())
			s, err = open(small, d, lockless())
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, s.runs)
	require.NotNil(t, s.frozen)
	require.NotEmpty(t, s.active)
	return d, want // The process has died: nothing is closed.
}

// verdict opens a damaged store: either all is there, or there is an error that says which
// file and what to do.
func verdict(t *testing.T, d *tray, want map[string]string, what string) (noticed bool) {
	t.Helper()
	s, err := open(small, d, lockless())
	if err == nil {
		var got map[string]string
		if got, err = dump(t, s); err == nil {
			require.Equal(t, want, got, "%s: silently changed", what)
			return false
		}
	}
	fault := new(store.Error)
	require.ErrorAs(t, err, &fault, what)
	require.NotEmpty(t, fault.File, what)
	require.NotEmpty(t, fault.Remedy, what)
	require.True(t, errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrVersion) || errors.Is(err, store.ErrCluster), "%s: %v", what, err)
	return true
}

func TestEveryFlippedByteIsNoticedOrHarmless(t *testing.T) {
	d, want := sample(t, -1)
	noticed, total := 0, 0
	for _, name := range slices.Sorted(maps.Keys(d.Names)) {
		for at, b := range d.Names[name].Data {
			if at%flipEach > 0 || b == 0 && at%64 > 0 {
				continue // Nearly all zeros are the empty rest of the head of a log.
			}
			damaged := d.clone()
			damaged.Names[name].Data[at] ^= 1 << (at % 8)
			total++
			if verdict(t, damaged, want, fmt.Sprintf("%s, byte %d", name, at)) {
				noticed++
			}
		}
	}
	t.Logf("%d of %d flips were noticed, the others changed nothing", noticed, total)
}

func TestEveryTruncationIsNoticedOrHarmless(t *testing.T) {
	d, want := sample(t, 50)
	for _, name := range slices.Sorted(maps.Keys(d.Names)) {
		if isAside(name) {
			continue
		}
		for size := 0; size < len(d.Names[name].Data); size += 1 + size%13 {
			damaged := d.clone()
			damaged.Names[name].Data = damaged.Names[name].Data[:size]
			noticed := verdict(t, damaged, want, fmt.Sprintf("%s, cut to %d", name, size))
			require.True(t, noticed, "%s, cut to %d of %d", name, size, len(d.Names[name].Data))
		}
		damaged := d.clone()
		delete(damaged.Names, name)
		require.True(t, verdict(t, damaged, want, name+" removed"))
	}
}
