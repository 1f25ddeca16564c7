// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package filequeue_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/filequeue"
)

// What is in the queue after it was opened again, also after a crash in the middle of a write, and what of a file
// that is damaged.

func open(tb testing.TB, dir string) *filequeue.Queue {
	tb.Helper()
	q, err := filequeue.Open(dir)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = q.Close() })
	return q
}

func entry(session byte, number uint64, size int) delivery.Entry {
	e := delivery.Entry{EntryID: delivery.EntryID{Session: delivery.Session{session}, Number: number}, To: fmt.Sprint("e", number), Message: make([]byte, size)}
	for i := range e.Message {
		e.Message[i] = byte(number)
	}
	return e
}

func load(tb testing.TB, q *filequeue.Queue) []delivery.Entry {
	tb.Helper()
	all, err := q.Load(context.Background())
	require.NoError(tb, err)
	return all
}

// The queue has what a list has, over every end of its process.
func TestTheQueueIsItsModel(t *testing.T) {
	for seed := range uint64(2) {
		r, dir := rand.New(rand.NewPCG(seed, 1)), t.TempDir()
		q := open(t, dir)
		var model []delivery.Entry
		for number := range uint64(40) {
			switch r.IntN(4) {
			case 0:
				n := r.IntN(len(model) + 1)
				ids := []delivery.EntryID{{Number: 1 << 60}} // It is not there, which is no error.
				for _, e := range model[:n] {
					ids = append(ids, e.EntryID)
				}
				model = model[n:]
				require.NoError(t, q.Remove(t.Context(), ids))
			case 1:
				require.NoError(t, q.Close())
				q = open(t, dir)
			default:
				e := entry(byte(number%3+1), number+1, r.IntN(400_000))
				require.NoError(t, q.Append(t.Context(), e))
				model = append(model, e)
			}
			requireHas(t, dir, q, model)
		}
		require.NoError(t, q.Close())
	}
}

// requireHas looks at what a queue has, and how large its file is.
func requireHas(t *testing.T, dir string, q *filequeue.Queue, model []delivery.Entry) {
	t.Helper()
	all, live := load(t, q), int64(0)
	require.Len(t, all, len(model))
	for i := range model {
		require.Equal(t, model[i].EntryID, all[i].EntryID)
		require.Equal(t, model[i].To, all[i].To)
		require.True(t, bytes.Equal(model[i].Message, all[i].Message))
		live += int64(len(model[i].Message)) + 64
	}
	info, err := os.Stat(filepath.Join(dir, "queue"))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), 2*live+2<<20)
}

// Of a file that ends anywhere in its last record, all records before are there; and it goes on from there.
func TestAWriteThatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir)
	require.NoError(t, q.Append(t.Context(), entry(1, 1, 10)))
	require.NoError(t, q.Close())
	path := filepath.Join(dir, "queue")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	q = open(t, dir)
	require.NoError(t, q.Append(t.Context(), entry(1, 256, 100))) // Longer than what takes its place, and zeros, which are no length.
	require.NoError(t, q.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := 0; n < len(whole); n += 5 {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		q := open(t, dir)
		want := 0
		if n >= len(before) {
			want = 1
		}
		require.Len(t, load(t, q), want, "%d bytes", n)
		require.NoError(t, q.Append(t.Context(), entry(1, 3, 10)))
		require.NoError(t, q.Close())
		q = open(t, dir)
		require.Len(t, load(t, q), want+1)
		require.NoError(t, q.Close())
	}
}

// The blocks of the last write may have come to the disk in any order: a record at the end that is not whole, though it
// has its length, was never confirmed.
func TestALastWriteOfWhichABlockIsMissing(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir)
	require.NoError(t, q.Append(t.Context(), entry(1, 1, 10)))
	require.NoError(t, q.Append(t.Context(), entry(1, 2, 10)))
	require.NoError(t, q.Close())
	path := filepath.Join(dir, "queue")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(whole[len(whole)-10:])
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	q = open(t, dir)
	require.Len(t, load(t, q), 1)
	require.NoError(t, q.Append(t.Context(), entry(1, 3, 10)))
	require.NoError(t, q.Close())
	require.Len(t, load(t, open(t, dir)), 2)
}

// A byte that has changed before the last record is found, wherever it is, and nothing is changed.
func TestADamagedFile(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir)
	for n := range uint64(3) {
		require.NoError(t, q.Append(t.Context(), entry(1, n+1, 10)))
	}
	require.NoError(t, q.Close())
	path := filepath.Join(dir, "queue")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	const record = 16 + 33 + 1 + 2 + 10
	for at := range len(whole) - record {
		changed := append([]byte(nil), whole...)
		changed[at] ^= 0x40
		require.NoError(t, os.WriteFile(path, changed, 0o600))
		_, err := filequeue.Open(dir)
		require.ErrorIs(t, err, filequeue.ErrDamaged, "byte %d", at)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, changed, after)
	}
}

// A file in a form of another version is an error of its own, and is left as it is.
func TestAFileOfAnotherVersion(t *testing.T) {
	for _, content := range []string{"quorate deliveries 2\n", "quorate deliveries 2\nand its entries, of any length, behind that", "quorate deliveries 10\n"} {
		path := filepath.Join(t.TempDir(), "queue")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := filequeue.Open(filepath.Dir(path))
		require.ErrorIs(t, err, filequeue.ErrFormat)
		require.NotErrorIs(t, err, filequeue.ErrDamaged)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(after))
	}
}

// Each queue has a salt of its own, so that nobody can know that of another.
func TestNoTwoFilesHaveTheSameSalt(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		dir := t.TempDir()
		require.NoError(t, open(t, dir).Close())
		content, err := os.ReadFile(filepath.Join(dir, "queue"))
		require.NoError(t, err)
		require.False(t, seen[string(content)])
		seen[string(content)] = true
	}
}

func TestQueuesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir)
	_, err := filequeue.Open(dir)
	require.ErrorIs(t, err, filequeue.ErrInUse)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, q.Append(over, entry(1, 1, 1)), context.Canceled)
	require.ErrorContains(t, q.Append(t.Context(), entry(1, 1, 1<<26)), "has no room")
	require.NoError(t, q.Close())
	require.NoError(t, q.Close())
	require.ErrorIs(t, q.Append(t.Context(), entry(1, 1, 1)), filequeue.ErrClosed)
	require.ErrorIs(t, q.Remove(t.Context(), nil), filequeue.ErrClosed)
	_, err = q.Load(t.Context())
	require.ErrorIs(t, err, filequeue.ErrClosed)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "queue"), []byte("something else, of another program"), 0o600))
	_, err = filequeue.Open(dir)
	require.ErrorIs(t, err, filequeue.ErrDamaged)
}

// What a producer has put into the queue is there for the next one.
func Example() {
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	queue, err := filequeue.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = queue.Close() }()
	cfg := delivery.Default()
	cfg.Queue = queue // For delivery.NewProducer, or delivery.NewPool.
	all, err := cfg.Queue.Load(context.Background())
	fmt.Println(len(all), err)
	// Output: 0 <nil>
}
