// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import "github.com/quorate/quorate/sharding/internal/cell"

// freeListMost bounds the empty messages that a slot keeps until the next
// sweep, and freeListPayload the memory that each has for a payload.
const (
	freeListMost    = 512
	freeListPayload = 256
)

// freeList holds empty messages of a slot, for reuse by its next messages. The shared pool
// would hand most of them from one processor to another.
type freeList struct{ packed []*cell.Message }

// keep takes back a list of finished messages. The caller holds the slot.
func (k *freeList) keep(pool *messagePool, list *cell.Message) {
	for m := list; m != nil; {
		next := m.Next()
		switch size := cap(m.Payload); {
		case size > 0 && size <= freeListPayload && len(k.packed) < freeListMost:
			m.Reset()
			k.packed = append(k.packed, m)
		default:
			pool.free(m)
		}
		m = next
	}
}

// take removes and returns the last message of a list of a [freeList], nil if there is
// none.
func take(list *[]*cell.Message) *cell.Message {
	n := len(*list) - 1
	if n < 0 {
		return nil
	}
	m := (*list)[n]
	*list = (*list)[:n]
	return m
}
