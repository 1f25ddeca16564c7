// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/ddata/store/storetest"
)

func config(dir string) durable.Config {
	c := durable.Default()
	c.Dir, c.Cluster = dir, "bank"
	return c
}

func TestTheStoreKeepsTheContract(t *testing.T) {
	storetest.TestStore(t, func(tb testing.TB) storetest.Open {
		c := config(tb.TempDir())
		return func(cluster string) (store.Store, error) {
			c.Cluster = cluster
			s, err := durable.Open(tb.Context(), c)
			if err != nil {
				return nil, err
			}
			return s, nil
		}
	})
}

// Whoever cannot have the directory is told which one, why, and what to do.
func TestADirectoryThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := durable.Open(t.Context(), config(file))
	require.ErrorContains(t, err, file+": it is no directory")
	_, err = durable.Open(t.Context(), config(filepath.Join(file, "below")))
	require.ErrorContains(t, err, "not a directory")

	c := config(filepath.Join(dir, "new", "data"))
	s, err := durable.Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: "k"}}}}))
	_, err = durable.Open(t.Context(), c)
	require.ErrorIs(t, err, store.ErrInUse)
	require.ErrorContains(t, err, c.Dir)
	_, err = durable.Check(t.Context(), c.Dir, nil)
	require.ErrorIs(t, err, store.ErrInUse)
	_, err = durable.Repair(t.Context(), c.Dir, nil)
	require.ErrorIs(t, err, store.ErrInUse)
	require.NoError(t, s.Close())

	foreign := c
	foreign.Cluster = "shop"
	_, err = durable.Open(t.Context(), foreign)
	require.ErrorIs(t, err, store.ErrCluster)
	require.ErrorContains(t, err, `it is of cluster "bank", this node is of cluster "shop"`)

	manifest := filepath.Join(c.Dir, "manifest")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	body, _, _ := strings.Cut(strings.Replace(string(text), "quorate-ddata 1", "quorate-ddata 7", 1), "sum ")
	sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	require.NoError(t, os.WriteFile(manifest, fmt.Appendf(nil, "%ssum %08x\n", body, sum), 0o600))
	_, err = durable.Open(t.Context(), c)
	require.ErrorIs(t, err, store.ErrVersion)
	_, err = durable.Repair(t.Context(), c.Dir, nil)
	require.ErrorIs(t, err, store.ErrVersion, "nothing is repaired that is not understood")
	require.NoError(t, os.WriteFile(manifest, text, 0o600))
	s, err = durable.Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	_, err = durable.Check(t.Context(), filepath.Join(dir, "nowhere"), nil)
	require.ErrorContains(t, err, "nowhere")
	_, err = durable.Check(t.Context(), t.TempDir(), nil)
	require.ErrorContains(t, err, "there is no store in it")
	_, err = durable.Export(t.Context(), t.TempDir(), io.Discard, nil)
	require.ErrorContains(t, err, "there is no store in it")
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Rights are those of the directory above.
	}
	c := config(filepath.Join(t.TempDir(), "data"))
	s, err := durable.Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: "k"}}}, {Group: "g", Wipe: true, Aside: true}}))
	require.NoError(t, s.Close())
	s, err = durable.Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	info, err := os.Stat(c.Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	entries, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Greater(t, len(entries), 3)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
	}
}

// A million small batches leave neither many files nor much more than what is in them.
func TestRoomComesBack(t *testing.T) {
	c := config(t.TempDir())
	c.LogBytes = 64 << 10
	s, err := durable.Open(t.Context(), c)
	require.NoError(t, err)
	value := make([]byte, 200)
	for i := range 300 {
		batch := store.Batch{Group: "g"}
		for j := range 50 {
			batch.Put = append(batch.Put, store.Record{Key: fmt.Sprint((i*50 + j) % 500), Value: value})
		}
		require.NoError(t, s.Apply(t.Context(), []store.Batch{batch}))
	}
	require.NoError(t, s.Close())
	s, err = durable.Open(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	r, err := durable.Check(t.Context(), c.Dir, nil)
	require.NoError(t, err)
	require.Empty(t, r.Fault)
	require.Equal(t, int64(500), r.Keys)
	var bytes int64
	for _, f := range r.Files {
		bytes += f.Bytes
	}
	require.Less(t, bytes, 4*r.Bytes+overLogs*c.LogBytes, "3 MB were written")
	require.Less(t, len(r.Files), 16)
}

// overLogs is how many full logs there may be when the disk keeps up badly.
const overLogs = 5

func TestConfigNamesEveryFault(t *testing.T) {
	require.NoError(t, config("data").Validate())
	err := durable.Config{LogBytes: 1}.Validate()
	for _, want := range []string{"dir: none given", "cluster: the name has 0 bytes", "log-bytes: 1 is not from 65536 to 1073741824"} {
		require.ErrorContains(t, err, want)
	}
	_, err = durable.Open(t.Context(), durable.Default())
	require.ErrorContains(t, err, "dir: none given")
	c := durable.Default()
	*c.Paths()[0] = "relative"
	require.Equal(t, "relative", c.Dir)
}

func TestABatchThatIsTooLargeIsRefused(t *testing.T) {
	s, err := durable.Open(t.Context(), config(t.TempDir()))
	require.NoError(t, err)
	value := make([]byte, 256<<20)
	err = s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: "a", Value: value}, {Key: "b", Value: value}}}})
	require.ErrorIs(t, err, store.ErrTooLarge)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{{Group: "g", Put: []store.Record{{Key: "a"}}}}))
	require.NoError(t, s.Close())
}
