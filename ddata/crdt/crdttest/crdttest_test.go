// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdttest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
)

// fault is what is wrong with a tally.
type fault string

// The faults, each named by what the suite says of the law that it breaks.
const (
	none           fault = ""
	notCommutative fault = "Merge is not commutative"
	notIdempotent  fault = "Merge is not idempotent"
	notInflating   fault = "a mutator returns no more than its argument"
	wrongDelta     fault = "the value merged with the delta is not the changed value"
	noDelta        fault = "the value has changed, but there is no delta"
	stillPending   fault = "Settled has a delta"
	changesOperand fault = "Merge has changed an operand"
	losesOnRetire  fault = "retirement makes"
	badCode        fault = "decoding"
	notCanonical   fault = "canonical"
)

// wrong is the fault of the test that runs; tests of this package do not run side by side.
var wrong fault

// tally is a counter for each origin, in the plainest form.
type tally struct{ n, pending map[crdt.Origin]int64 }

func (a tally) copied() tally {
	b := tally{map[crdt.Origin]int64{}, map[crdt.Origin]int64{}}
	maps.Copy(b.n, a.n)
	maps.Copy(b.pending, a.pending)
	return b
}

func (a tally) add(at crdt.Origin) tally {
	b := a.copied()
	b.n[at]++
	if wrong == notInflating && b.n[at] == 3 {
		b.n[at] = 1
	}
	b.pending[at] = b.n[at]
	if wrong == wrongDelta && b.n[at] > 1 {
		b.pending[at]--
	}
	if wrong == noDelta {
		b.pending = nil
	}
	return b
}

func (a tally) sum() int64 {
	sum := int64(0)
	for _, n := range a.n {
		sum += n
	}
	return sum
}

func (a tally) TypeName() string { return "tally" }

func (a tally) Merge(o tally) tally {
	b := a.copied()
	if wrong == changesOperand && len(a.n) > 0 {
		b.n = a.n
	}
	for at, n := range o.n {
		switch wrong {
		case notCommutative:
			b.n[at] = n
		case notIdempotent:
			b.n[at] += n
		default:
			b.n[at] = max(b.n[at], n)
		}
	}
	b.pending = nil
	return b
}

func (a tally) Delta() (tally, bool) { return tally{n: a.pending}, len(a.pending) > 0 }

func (a tally) Settled() tally {
	if wrong == stillPending {
		return a
	}
	return tally{n: a.n}
}

func (a tally) Retire(gone func(crdt.Origin) bool) tally {
	b := tally{n: map[crdt.Origin]int64{}}
	for at, n := range a.n {
		switch {
		case !gone(at) && at != 0:
			b.n[at] = n
		case wrong != losesOnRetire:
			b.n[0] += n
		}
	}
	return b
}

func (a tally) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, byte(len(a.n)))
	origins := make([]crdt.Origin, 0, len(a.n))
	for at := range a.n {
		origins = append(origins, at)
	}
	slices.Sort(origins)
	for _, at := range origins {
		dst = binary.BigEndian.AppendUint64(append(dst, byte(at)), uint64(a.n[at]))
	}
	return dst, nil
}

func (a *tally) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || len(b) != 1+9*int(b[0]) && wrong != badCode || len(b) < 1+9*int(b[0]) {
		return fmt.Errorf("%w: %d bytes", crdt.ErrMalformed, len(b))
	}
	a.n = map[crdt.Origin]int64{}
	last := -1
	for b = b[1:]; len(b) >= 9; b = b[9:] {
		if int(b[0]) <= last && wrong != notCanonical {
			return fmt.Errorf("%w: out of order", crdt.ErrMalformed)
		}
		last = int(b[0])
		a.n[crdt.Origin(b[0])] = int64(binary.BigEndian.Uint64(b[1:]))
	}
	return nil
}

// witness keeps the message of a failure instead of reporting it.
type witness struct{ said string }

func (w *witness) Helper() {}

func (w *witness) Fatalf(format string, args ...any) {
	w.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// verdict returns what the suite says of tallies with a fault.
func verdict(f fault) string {
	wrong = f
	defer func() { wrong = none }()
	for seed := range uint64(histories) {
		w, done := &witness{}, make(chan struct{})
		// The goroutine ends with the history, or with its Goexit; this function waits.
		go func() {
			defer close(done)
			Check[tally](w, rand.New(rand.NewPCG(seed, 1)), Subject[tally]{
				Mutate:  func(_ Source, at crdt.Origin, v tally) tally { return v.add(at) },
				Observe: func(v tally) any { return v.sum() },
			})
		}()
		if <-done; w.said != "" {
			return w.said
		}
	}
	return ""
}

// Each fault is found, and the suite says by which law; the first three are seen when a
// mutator is called, before any other merge.
func TestEachFaultIsFound(t *testing.T) {
	require.Empty(t, verdict(none))
	for f, law := range map[fault]fault{
		notCommutative: notInflating, notIdempotent: notInflating, notInflating: notInflating, wrongDelta: wrongDelta,
		noDelta: noDelta, stillPending: stillPending, changesOperand: changesOperand, losesOnRetire: losesOnRetire,
		badCode: badCode, notCanonical: notCanonical,
	} {
		require.Contains(t, verdict(f), string(law), "%s", f)
	}
}
