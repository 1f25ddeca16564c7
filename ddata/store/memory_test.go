// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
)

func ids() rand.Source { return rand.NewPCG(rand.Uint64(), 1) }

func TestTheDiskInMemoryKeepsTheContract(t *testing.T) {
	storetest.TestStore(t, func(testing.TB) storetest.Open { return store.NewMemory(ids()).Open })
}

func put(key string) store.Batch {
	return store.Batch{Group: "g", Put: []store.Record{{Key: key, Value: []byte("v")}}}
}

// keys loads the group g.
func keys(t *testing.T, s store.Store) (got []string) {
	t.Helper()
	require.NoError(t, s.Load(t.Context(), "g", func([]byte) error { return nil }, func(r store.Record) error {
		got = append(got, r.Key)
		return nil
	}))
	return got
}

func reopened(t *testing.T, disk *store.Memory) store.Store {
	t.Helper()
	s, err := disk.Open("c")
	require.NoError(t, err)
	return s
}

func TestAFullDiskStillForgets(t *testing.T) {
	disk := store.NewMemory(ids())
	s := reopened(t, disk)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{put("a"), put("b")}))
	disk.SetFaults(store.Faults{Full: true})
	require.ErrorIs(t, s.Apply(t.Context(), []store.Batch{put("c")}), store.ErrFull)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Drop: []string{"a"}}}))
	require.Equal(t, []string{"b"}, keys(t, s))
}

func TestATornApplyLeavesWholeBatchesAndADeadStore(t *testing.T) {
	disk := store.NewMemory(ids())
	for torn, want := range map[int][]string{-1: nil, 1: {"a"}, 2: {"a", "b"}} {
		disk.Restore(store.Image{})
		s := reopened(t, disk)
		disk.SetFaults(store.Faults{Torn: torn})
		require.Error(t, s.Apply(t.Context(), []store.Batch{put("a"), put("b"), put("c")}))
		require.ErrorIs(t, s.Apply(t.Context(), []store.Batch{put("d")}), store.ErrClosed)
		require.Equal(t, want, keys(t, reopened(t, disk)), "%d", torn)
	}
}

func TestAnOlderDiskHasFewerStarts(t *testing.T) {
	disk := store.NewMemory(ids())
	s := reopened(t, disk)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{put("a")}))
	backup := disk.Image()
	require.NoError(t, s.Apply(t.Context(), []store.Batch{put("b")}))
	disk.Crash()
	require.ErrorIs(t, s.Apply(t.Context(), []store.Batch{put("c")}), store.ErrClosed)
	s = reopened(t, disk)
	require.Equal(t, []string{"a", "b"}, keys(t, s))
	require.NoError(t, s.Close())
	require.Equal(t, uint64(3), reopened(t, disk).Starts())
	disk.Restore(backup)
	s = reopened(t, disk)
	require.Equal(t, uint64(2), s.Starts())
	require.Equal(t, []string{"a"}, keys(t, s))
}

func TestASlowDiskWaitsAsLongAsTheContextAllows(t *testing.T) {
	disk := store.NewMemory(ids())
	s := reopened(t, disk)
	var waited []string
	ctx, cancel := context.WithCancel(t.Context())
	disk.SetFaults(store.Faults{Wait: func(ctx context.Context, operation string) error {
		waited = append(waited, operation)
		cancel()
		return ctx.Err()
	}})
	require.ErrorIs(t, s.Apply(ctx, []store.Batch{put("a")}), context.Canceled)
	require.Contains(t, waited, "apply")
	disk.SetFaults(store.Faults{})
	require.Empty(t, keys(t, s))
}

func TestADamagedGroupIsNeverSilentlyLess(t *testing.T) {
	disk := store.NewMemory(ids())
	s := reopened(t, disk)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{put("a"), put("b"), {Group: "g", Wipe: true, Aside: true}, put("c"), put("d")}))
	require.Equal(t, 1, disk.Asides())
	disk.SetFaults(store.Faults{Corrupt: "g"})
	err := s.Load(t.Context(), "g", func([]byte) error { return nil }, func(store.Record) error { return nil })
	require.ErrorIs(t, err, store.ErrCorrupt)
}

func TestAnErrorSaysWhereAndWhatToDo(t *testing.T) {
	cause := errors.New("no space left on device")
	err := error(&store.Error{Kind: store.ErrFull, File: "/data/log-1", Problem: "at byte 7", Cause: cause, Remedy: "make room"})
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "/data/log-1: the disk is full: at byte 7: no space left on device: make room")
	require.EqualError(t, &store.Error{File: "/data"}, "/data")
}
