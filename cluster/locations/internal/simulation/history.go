// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/allocation"
)

// write is what an operator has said of one shard.
type write struct {
	address      string
	began, ended time.Duration // Ended is never while it is under way.
	acknowledged bool
}

// never is later than the end of every run.
const never = time.Duration(1 << 62)

// history is all that was said of shards, and what may follow from it. It stands apart from what it checks.
type history struct {
	writes map[allocation.Shard][]*write
	// ordered says that the clocks of the nodes agree: what was written later wins, whether its writer
	// has seen the earlier write or not (cluster/locations/doc.go, "What was not confirmed may come through later, but by
	// those clocks wins over no later call.").
	ordered bool
}

func newHistory(ordered bool) *history {
	return &history{writes: map[allocation.Shard][]*write{}, ordered: ordered}
}

// begin notes the begin of a write.
func (h *history) begin(shard allocation.Shard, address string, now time.Duration) *write {
	w := &write{address: address, began: now, ended: never}
	h.writes[shard] = append(h.writes[shard], w)
	return w
}

// replaced reports whether a write can be read no more by a read that begins at a time.
func (h *history) replaced(shard allocation.Shard, w *write, at time.Duration) bool {
	for _, later := range h.writes[shard] {
		if later.acknowledged && later.ended < at && w.ended < later.began && (w.acknowledged || h.ordered) {
			return true
		}
	}
	return false
}

// check returns an error if nobody can find a shard at an address by a read that begins at a time.
func (h *history) check(shard allocation.Shard, address string, at time.Duration) error {
	nobody := &write{acknowledged: true, began: -1, ended: -1}
	if address == "" && !h.replaced(shard, nobody, at) {
		return nil
	}
	for _, w := range h.writes[shard] {
		if w.address == address && !h.replaced(shard, w, at) {
			return nil
		}
	}
	var text strings.Builder
	for _, w := range h.writes[shard] {
		fmt.Fprintf(&text, "\n%q from %v to %v, acknowledged: %t", w.address, w.began, w.ended, w.acknowledged)
	}
	return fmt.Errorf("L1: shard %d is said to be at %q by a read of %v, after:%s", shard, address, at, &text)
}

// confirmed returns where a shard was last said to be by a write that was acknowledged.
func (h *history) confirmed(shard allocation.Shard) string {
	last := &write{}
	for _, w := range h.writes[shard] {
		if w.acknowledged && w.ended > last.ended {
			last = w
		}
	}
	return last.address
}
