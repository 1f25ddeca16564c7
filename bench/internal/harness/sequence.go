// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// verdict is the finding about a number.
type verdict uint8

const (
	inOrder    verdict = iota // The next number.
	ahead                     // Some numbers before this one are missing so far.
	late                      // The number was missing, and comes out of order.
	duplicated                // The number was received before.
)

// sequence checks the numbers of one sender, which begin at 1. The zero value has
// received none. It belongs to the receiver's goroutine.
type sequence struct {
	highest uint64
	missing []span // In rising order; empty in the normal case.
}

// span is a run of numbers, both ends included.
type span struct{ first, last uint64 }

// check classifies a received number.
func (s *sequence) check(n uint64) verdict {
	switch {
	case n == s.highest+1:
		s.highest = n
		return inOrder
	case n > s.highest:
		s.missing = append(s.missing, span{s.highest + 1, n - 1})
		s.highest = n
		return ahead
	}
	return s.fill(n)
}

// fill classifies a number that is not above the highest.
func (s *sequence) fill(n uint64) verdict {
	i := slices.IndexFunc(s.missing, func(m span) bool { return m.first <= n && n <= m.last })
	if i < 0 {
		return duplicated
	}
	was := s.missing[i]
	var left []span
	if was.first < n {
		left = append(left, span{was.first, n - 1})
	}
	if n < was.last {
		left = append(left, span{n + 1, was.last})
	}
	s.missing = slices.Replace(s.missing, i, i+1, left...)
	return late
}

// Totals are the findings of all receivers of a process.
type Totals struct {
	Received   uint64 `json:"received"` // Checked messages, each counted once.
	OutOfOrder uint64 `json:"out_of_order"`
	Duplicated uint64 `json:"duplicated"`
	Damaged    uint64 `json:"damaged"` // Messages of another sender or length than was sent.
}

// Err returns an error if messages were damaged.
func (t Totals) Err() error {
	if t.Damaged > 0 {
		return fmt.Errorf("bench: %d messages had another sender or length than was sent", t.Damaged)
	}
	return nil
}

// Tally adds up what the receivers of a process find. It is safe for
// concurrent use.
type Tally struct {
	OutOfOrder, Duplicated, damaged atomic.Uint64

	mu     sync.Mutex // Guards counts.
	counts []*count
}

// count is the number of messages of one receiver. Only that receiver writes it; it has a
// cache line of its own, so that receivers do not slow each other.
type count struct {
	n atomic.Uint64
	_ [56]byte
}

// Receiver checks the messages of several senders. It belongs to one goroutine.
type Receiver struct {
	tally   *Tally
	count   *count
	size    int // Size that messages must have.
	senders []sequence
}

// Receiver returns a receiver of messages of a size.
func (t *Tally) Receiver(senders, size int) *Receiver {
	c := new(count)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts = append(t.counts, c)
	return &Receiver{tally: t, count: c, size: size, senders: make([]sequence, senders)}
}

// Take checks a message and counts it.
func (r *Receiver) Take(sender uint32, seq uint64, size int) {
	if int(sender) >= len(r.senders) || size != r.size {
		r.tally.damaged.Add(1)
		return
	}
	switch r.senders[sender].check(seq) {
	case inOrder, ahead:
	case late:
		r.tally.OutOfOrder.Add(1)
	case duplicated:
		r.tally.Duplicated.Add(1)
		return
	}
	r.count.n.Add(1)
}

// Totals adds up the receivers. Missing numbers are not included: the sender knows how
// many it has sent.
func (t *Tally) Totals() Totals {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := Totals{OutOfOrder: t.OutOfOrder.Load(), Duplicated: t.Duplicated.Load(), Damaged: t.damaged.Load()}
	for _, c := range t.counts {
		sum.Received += c.n.Load()
	}
	return sum
}
