// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "github.com/quorate/quorate/sharding/protocol"

// spareMost bounds the empty messages that a cell keeps, until the next sweep.
const spareMost = 1024

// keep takes back messages that are over, for the next ones of the cell. A shared
// pool would hand most of them from one processor to another. The caller holds the
// cell.
func (c *cell) keep(s *System, list *protocol.Message) {
	for m := list; m != nil; {
		next := m.Next()
		if m.Bare() && len(c.spare) < spareMost {
			c.spare = append(c.spare, m)
		} else {
			s.messages.free(m)
		}
		m = next
	}
}

// blank returns a message for [cell.join]. The caller holds the cell.
func (c *cell) blank(s *System) *protocol.Message {
	if n := len(c.spare) - 1; n >= 0 {
		m := c.spare[n]
		c.spare = c.spare[:n]
		return m
	}
	return s.messages.plain()
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
	m := c.blank(r.system)
	m.Kind, m.Shard, m.Entity, m.Value, m.Size = r.name, c.id, id, message, size+len(id)
	c.shard.Join(e, m)
	return true
}
