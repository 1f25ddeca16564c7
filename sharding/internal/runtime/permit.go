// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync/atomic"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// permit is what a shard needs besides the standing of its node, such as a lease. The zero value is that of a shard
// that needs nothing.
type permit struct{ held atomic.Pointer[func() bool] }

// Under has entities of a shard begin messages and send replies only while held says so: a process that stood still
// hears late that it has lost a lease. It is called before the cell hosts. Held is called right before each message, on
// any goroutine, and must not block.
func (r *Region) Under(shard protocol.ShardID, held func() bool) {
	if sl := r.Slot(shard); sl != nil {
		sl.lease.held.Store(&held)
	}
}

// Permits reports whether a shard has what it needs besides the standing of the node. It may be called on any
// goroutine, and does not block.
func (*Region) Permits(sl *Slot) bool { return sl.lease.holds() }

// holds reports whether entities may begin messages.
func (p *permit) holds() bool {
	held := p.held.Load()
	return held == nil || (*held)()
}
