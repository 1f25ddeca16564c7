// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

// eventType is what an event of the world does.
type eventType uint8

const (
	eventTimer  eventType = iota // ref is a timer slot of the node.
	eventPacket                  // ref is a packet.
	eventInput                   // ref is an input that waits for the node.
	eventThaw                    // A frozen node continues.
	eventFunc                    // ref is a function of the script.
	eventSecond                  // Checkers examine the whole world.
)

// event is an entry of the world's heap: small, without pointers, moved by value.
// Incarnation tells whether the node that the event is for has been replaced since.
type event struct {
	at          int64
	seq         uint64
	ref         int32
	place       int32
	incarnation int32
	typ         eventType
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// eventHeap is a heap with four children an entry: half the depth of a binary heap,
// and the children lie in one or two cache lines.
type eventHeap []event

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	*h = s
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
}

func (h *eventHeap) pop() event {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= len(s) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(s)); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(&last) {
			break
		}
		s[i] = s[least]
		i = least
	}
	s[i] = last
	return top
}
