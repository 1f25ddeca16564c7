// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package queuefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/queuefile"
	"github.com/quorate/quorate/simulation/files"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// A queue over a disk that loses what was not synced, tears writes, is full and fails: what Append has confirmed is
// there after every crash, in order, until Remove was called for it.

// disk is a simulated directory as the queue sees it.
type disk struct{ *files.Directory }

func (d disk) Create(name string) (queuefile.File, error) { return opened(d.Directory.Create(name)) }

func (d disk) OpenToWrite(name string) (queuefile.File, error) { return opened(d.Open(name)) }

func opened(f *files.File, err error) (queuefile.File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// salts draws salts from a source.
func salts(rng *rand.Rand) func() queuefile.Salt {
	return func() (s queuefile.Salt) {
		for i := range s {
			s[i] = byte(rng.Uint32())
		}
		return s
	}
}

// model is what the queue must have, may have, and must not have.
type model struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	d       disk
	q       *queuefile.Queue
	must    []delivery.Entry          // Confirmed by Append, and not removed, in order.
	may     map[delivery.EntryID]bool // Append has failed, or the removal may have been lost.
	last    uint64
	crashes int
}

// fails reports whether the error is one of those of the disk, or of a queue that cannot be used after one.
func (m *model) fails(err error) {
	disk := errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC)
	require.True(m.t, disk || errors.Is(err, queuefile.ErrClosed), "seed %d: %v", m.seed, err)
}

// append appends an entry, often a large one, of which a crash leaves some sectors.
func (m *model) append() {
	m.last++
	e := delivery.Entry{EntryID: delivery.EntryID{Session: delivery.Session{byte(m.last % 3)}, Number: m.last}, To: fmt.Sprint("e", m.last)}
	e.Message = bytes.Repeat([]byte{byte(m.last)}, m.rng.IntN([]int{50, 3000, 100_000}[m.rng.IntN(3)]))
	if err := m.q.Append(m.t.Context(), e); err != nil {
		m.fails(err)
		m.may[e.EntryID] = true
		return
	}
	m.must = append(m.must, e)
}

// remove removes some entries.
func (m *model) remove() {
	var ids []delivery.EntryID
	for range min(m.rng.IntN(40), len(m.must)) {
		ids = append(ids, m.must[0].EntryID)
		m.must = m.must[1:]
	}
	for _, id := range ids {
		m.may[id] = true // Until it is known to be gone, which a crash takes back.
	}
	if err := m.q.Remove(m.t.Context(), ids); err != nil {
		m.fails(err)
	}
}

// restart ends the process, or the machine with it, and opens the queue anew.
func (m *model) restart(crash bool) {
	m.d.FailAt = 0
	if crash {
		m.crashes++
		m.d.Crash()
	} else {
		require.NoError(m.t, m.q.Close())
		m.d.Die()
	}
	var err error
	m.q, err = queuefile.Open(m.d, salts(m.rng))
	require.NoError(m.t, err, "seed %d: whatever a crash leaves is no damage", m.seed)
	m.look()
}

// look compares what the queue has with what it must have.
func (m *model) look() {
	all, err := m.q.Load(m.t.Context())
	require.NoError(m.t, err)
	want := m.must
	for _, e := range all {
		if len(want) > 0 && e.EntryID == want[0].EntryID {
			require.Equal(m.t, want[0].To, e.To)
			require.True(m.t, bytes.Equal(want[0].Message, e.Message), "seed %d: message %d", m.seed, e.Number)
			want = want[1:]
			continue
		}
		require.True(m.t, m.may[e.EntryID], "seed %d: entry %d is there, though it was removed, or comes too early", m.seed, e.Number)
	}
	require.Empty(m.t, want, "seed %d: confirmed, and not there any more", m.seed)
}

// fault lets the disk be full, or fail, from some operation on.
func (m *model) fault() {
	m.d.FailAt, m.d.Err, m.d.Fails = m.d.Operations+1+m.rng.IntN(6), syscall.EIO, nil
	switch m.rng.IntN(3) {
	case 0:
		m.d.Err, m.d.Fails = syscall.ENOSPC, func(op string) bool { return op == "write" || op == "create" }
	case 1:
		m.d.Fails = func(op string) bool { return op == "sync" }
	}
}

func TestWhatWasConfirmedIsThereAfterACrash(t *testing.T) {
	b := simulationtest.Within(t, 20, 0)
	crashes := 0
	for seed := range b.Seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &model{t: t, seed: seed, rng: rng, d: disk{files.New(rng)}, may: map[delivery.EntryID]bool{}}
		m.restart(true)
		for range 60 {
			switch rng.IntN(10) {
			case 0:
				m.restart(true)
			case 1:
				m.restart(false)
			case 2:
				m.fault()
			case 3:
				m.d.FailAt = 0
			case 4, 5:
				m.remove()
			default:
				m.append()
			}
		}
		m.restart(true)
		crashes += m.crashes
	}
	t.Logf("%d seeds, %d crashes", b.Ran(), crashes)
}

// Whichever operation of writing the file anew fails, what is confirmed later is there after a crash.
func TestWritingAnewMayFailAnywhere(t *testing.T) {
	for nth := range 12 {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 2))
			m := &model{t: t, seed: seed, rng: rng, d: disk{files.New(rng)}, may: map[delivery.EntryID]bool{}}
			m.restart(true)
			var old []delivery.EntryID
			for range 5 {
				m.append()
			}
			for n := range uint64(3) {
				e := delivery.Entry{EntryID: delivery.EntryID{Session: delivery.Session{9}, Number: n}, To: "e", Message: make([]byte, 1<<20)}
				require.NoError(t, m.q.Append(t.Context(), e))
				old, m.may[e.EntryID] = append(old, e.EntryID), true
			}
			m.d.FailAt, m.d.Err = m.d.Operations+1+nth, syscall.EIO
			first := true
			m.d.Fails = func(string) bool {
				failed := first
				first = false
				return failed
			}
			if err := m.q.Remove(t.Context(), old); err != nil {
				m.fails(err)
			}
			m.d.FailAt = 0
			if seed%2 == 0 {
				m.append()
			}
			m.restart(true)
		}
	}
}

// A disk that is put back to an earlier copy has the queue of then.
func TestADiskThatIsPutBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := &model{t: t, rng: rng, d: disk{files.New(rng)}, may: map[delivery.EntryID]bool{}}
	m.restart(true)
	for range 20 {
		m.append()
	}
	copied, must := m.d.Clone(), append([]delivery.Entry(nil), m.must...)
	for range 5 {
		m.append()
		m.remove()
	}
	m.d, m.must = disk{copied}, must
	m.restart(true)
	require.Len(t, m.must, 20)
}

// What was synced before something behind it was written, and is not as it was, is damage, and nothing is changed.
func TestDamageIsToldFromWhatACrashLeaves(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	m := &model{t: t, rng: rng, d: disk{files.New(rng)}, may: map[delivery.EntryID]bool{}}
	m.restart(true)
	for range 4 {
		m.append()
	}
	end := len(m.d.Names["queue"].Data)
	m.append()
	require.NoError(t, m.q.Close())
	for at := 0; at < end; at += 1 + at/200 {
		damaged := disk{m.d.Clone()}
		damaged.Names["queue"].Data[at] ^= 0x10
		before := bytes.Clone(damaged.Names["queue"].Data)
		_, err := queuefile.Open(damaged, salts(rng))
		require.ErrorIs(t, err, queuefile.ErrDamaged, "byte %d", at)
		require.Equal(t, before, damaged.Names["queue"].Data)
	}
	_, err := m.d.Open("queue.new")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A file that is written anew takes over nothing that has been damaged since it was read.
func TestDamageIsNotSealedAnew(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	m := &model{t: t, rng: rng, d: disk{files.New(rng)}, may: map[delivery.EntryID]bool{}}
	m.restart(true)
	m.append()
	damaged := len(m.d.Names["queue"].Data) - 1 // The end of its message.
	large := delivery.Entry{EntryID: delivery.EntryID{Session: delivery.Session{9}}, To: "e", Message: make([]byte, 2<<20)}
	require.NoError(t, m.q.Append(t.Context(), large))
	m.d.Names["queue"].Data[damaged] ^= 1
	require.ErrorIs(t, m.q.Remove(t.Context(), []delivery.EntryID{large.EntryID}), queuefile.ErrDamaged)
	_, err := m.q.Load(t.Context())
	require.ErrorIs(t, err, queuefile.ErrDamaged)
}
