// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "github.com/quorate/quorate/sharding/internal/protocol"

// spareMost bounds the empty messages of each sort that a cell keeps until the next
// sweep, and sparePayload the memory that each has for a payload.
const (
	spareMost    = 512
	sparePayload = 256
)

// spares are empty messages of a cell, for its next ones. The shared pool would hand
// most of them from one processor to another.
type spares struct{ bare, packed []*protocol.Message }

// keep takes back messages that are over. The caller holds the cell.
func (k *spares) keep(pool *messagePool, list *protocol.Message) {
	for m := list; m != nil; {
		next := m.Next()
		switch size := cap(m.Payload); {
		case m.Bare() && len(k.bare) < spareMost:
			k.bare = append(k.bare, m)
		case size > 0 && size <= sparePayload && len(k.packed) < spareMost:
			m.Reset()
			k.packed = append(k.packed, m)
		default:
			pool.free(m)
		}
		m = next
	}
}

// take takes the last one of a list of spares, nil if there is none.
func take(list *[]*protocol.Message) *protocol.Message {
	n := len(*list) - 1
	if n < 0 {
		return nil
	}
	m := (*list)[n]
	*list = (*list)[:n]
	return m
}

// join puts a message into the mailbox of an entity of this node that is at work, as
// most messages of a busy sender find it. It reports false when the message must take
// the long way.
func (r *region) join(c *cell, id string, message any, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.shard.Busy(id)
	if e == nil {
		return false
	}
	m := take(&c.spare.bare)
	if m == nil {
		m = r.system.messages.plain()
	}
	m.Kind, m.Shard, m.Entity, m.Value, m.Size = r.name, c.id, id, message, size+len(id)
	c.shard.Join(e, m)
	return true
}
