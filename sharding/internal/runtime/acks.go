// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"

	"github.com/quorate/quorate/sharding/internal/cell"
)

// acks are the slots whose cells have acknowledgements to send, each at most once. Under
// load one round acknowledges everything that came since the last round.
type acks struct {
	mu  sync.Mutex // Guards due.
	due []*Slot
}

// acknowledge notes that the cell of a slot has acknowledgements to send.
func (n *Node) acknowledge(sl *Slot) {
	if sl.due.Swap(true) {
		return
	}
	n.acks.mu.Lock()
	n.acks.due = append(n.acks.due, sl)
	first := len(n.acks.due) == 1
	n.acks.mu.Unlock()
	if first {
		n.Ports.AcksDue()
	}
}

// Acknowledge sends the acknowledgements of all cells that have any.
func (n *Node) Acknowledge() {
	n.acks.mu.Lock()
	due := n.acks.due
	n.acks.due = nil
	n.acks.mu.Unlock()
	for _, sl := range due {
		sl.due.Store(false)
		sl.Step(func(c *cell.Cell, out *cell.Actions) { c.Acks(out) })
	}
}
