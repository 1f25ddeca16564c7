// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package courier

import (
	"fmt"
	"time"
)

// stage says what an entity waits for.
type stage uint8

const (
	idle     stage = iota // For letters.
	ready                 // For its turn.
	underWay              // For the answer to its frame.
	paused                // For the next attempt.
)

// destination is what belongs to one entity.
type destination[V any] struct {
	to       string
	letters  []Letter[V] // Not confirmed, in their order.
	reserved int         // Letters that will come, or not.
	stage    stage
	size     int // Letters in the frame under way.
	credit   int // What the next frame may have at most.
	pauses   int // In a row, without progress between them.
	due      time.Duration
}

// frame returns what is sent next: letters of one session from the first on, within the credit and the
// bounds of a frame.
func (d *destination[V]) frame(cfg Config) Frame[V] {
	f := Frame[V]{To: d.to, Session: d.letters[0].Session}
	bytes := 0
	for i, l := range d.letters[:min(len(d.letters), d.credit)] {
		bytes += l.Bytes
		if l.Session != f.Session || i > 0 && bytes > cfg.FrameBytes {
			break
		}
		f.Letters = append(f.Letters, l)
	}
	d.size = len(f.Letters)
	return f
}

// covered returns how many letters an answer confirms: those of the frame under way up to the one that the
// answer names. A number that is none of the frame's is nonsense.
func (d *destination[V]) covered(a Answer) (int, error) {
	if a.Session != d.letters[0].Session {
		return 0, fmt.Errorf("%w: the answer is for another session", ErrNonsense)
	}
	if a.Confirmed == 0 {
		return 0, nil
	}
	for i, l := range d.letters[:d.size] {
		if l.Number == a.Confirmed {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("%w: the frame has no message %d", ErrNonsense, a.Confirmed)
}

// schedule is a heap of entities, that with the next attempt first.
type schedule[V any] []*destination[V]

func (p schedule[V]) Len() int           { return len(p) }
func (p schedule[V]) Less(i, j int) bool { return p[i].due < p[j].due }
func (p schedule[V]) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push implements [container/heap.Interface].
func (p *schedule[V]) Push(d any) { *p = append(*p, d.(*destination[V])) }

// Pop implements [container/heap.Interface].
func (p *schedule[V]) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*p = old[:len(old)-1]
	return last
}
