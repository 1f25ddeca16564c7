// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "github.com/quorate/quorate/sharding/internal/protocol"

// freeListMost bounds the empty messages of each sort that a slot keeps until the next
// sweep, and freeListPayload the memory that each has for a payload.
const (
	freeListMost    = 512
	freeListPayload = 256
)

// freeList holds empty messages of a slot, for its next ones. The shared pool would hand
// most of them from one processor to another.
type freeList struct{ bare, packed []*protocol.Message }

// keep takes back messages that are over. The caller holds the slot.
func (k *freeList) keep(pool *messagePool, list *protocol.Message) {
	for m := list; m != nil; {
		next := m.Next()
		switch size := cap(m.Payload); {
		case m.Bare() && len(k.bare) < freeListMost:
			k.bare = append(k.bare, m)
		case size > 0 && size <= freeListPayload && len(k.packed) < freeListMost:
			m.Reset()
			k.packed = append(k.packed, m)
		default:
			pool.free(m)
		}
		m = next
	}
}

// take takes the last message of such a list, nil if there is none.
func take(list *[]*protocol.Message) *protocol.Message {
	n := len(*list) - 1
	if n < 0 {
		return nil
	}
	m := (*list)[n]
	*list = (*list)[:n]
	return m
}
