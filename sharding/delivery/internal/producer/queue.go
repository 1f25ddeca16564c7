// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"fmt"
	"time"
)

// stage says what an entity waits for.
type stage uint8

const (
	idle     stage = iota // For messages.
	ready                 // For its turn.
	underWay              // For the answer to its frame.
	paused                // For the next attempt.
)

// queue has the messages to one entity.
type queue[V any] struct {
	to       string       // The id of the entity.
	messages []Message[V] // Not confirmed, in their order.
	reserved int          // Messages that will come, or not.
	stage    stage
	size     int           // Messages in the frame under way.
	credit   int           // How many messages the next frame may have.
	pauses   int           // In a row, without progress between them.
	due      time.Duration // When paused: the time of the next attempt.
}

// frame returns what is sent next: messages of one session from the first on, within the credit and the
// bounds of a frame.
func (q *queue[V]) frame(cfg Config) Frame[V] {
	f := Frame[V]{To: q.to, Session: q.messages[0].Session}
	bytes := 0
	for i, m := range q.messages[:min(len(q.messages), q.credit)] {
		bytes += m.Bytes
		if m.Session != f.Session || i > 0 && bytes > cfg.FrameBytes {
			break
		}
		f.Messages = append(f.Messages, m)
	}
	q.size = len(f.Messages)
	return f
}

// covered returns how many messages an answer confirms: those of the frame under way up to the one that the
// answer names. For a number that the frame does not have it returns [ErrNonsense].
func (q *queue[V]) covered(a Answer) (int, error) {
	if a.Session != q.messages[0].Session {
		return 0, fmt.Errorf("%w: the answer is for another session", ErrNonsense)
	}
	if a.Confirmed == 0 {
		return 0, nil
	}
	for i, m := range q.messages[:q.size] {
		if m.Number == a.Confirmed {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("%w: the frame has no message %d", ErrNonsense, a.Confirmed)
}

// schedule is a heap of paused queues, the one with the next attempt first.
type schedule[V any] []*queue[V]

func (p schedule[V]) Len() int           { return len(p) }
func (p schedule[V]) Less(i, j int) bool { return p[i].due < p[j].due }
func (p schedule[V]) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push implements [container/heap.Interface].
func (p *schedule[V]) Push(d any) { *p = append(*p, d.(*queue[V])) }

// Pop implements [container/heap.Interface].
func (p *schedule[V]) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*p = old[:len(old)-1]
	return last
}
