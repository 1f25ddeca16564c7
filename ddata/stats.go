// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"sync/atomic"

	"github.com/quorate/quorate/ddata/internal/wire"
)

// counters are the counters of a replicator that neither its machine nor its tables keep.
type counters struct {
	malformed    atomic.Uint64
	parcels      wire.Drops
	unsent       atomic.Uint64
	storeFailing atomic.Bool
}

// Stats are numbers of a [Replicator]. Malformed, Broken and Unsent only grow, from 0 when the
// replicator was made.
type Stats struct {
	// Keys is the number of keys with a value that this node holds, Tombstones that of
	// keys that were deleted or have expired and are not forgotten yet.
	Keys, Tombstones int
	// Bytes is about how much memory they take.
	Bytes int64
	// Unspread is the number of keys with local updates that were not sent yet.
	Unspread int
	// Waiting is the number of operations of this node that wait for replicas.
	Waiting int
	// Subscribers is the number of subscriptions.
	Subscribers int
	// Malformed counts messages of other nodes that could not be decoded and were dropped.
	Malformed uint64
	// Broken counts large messages of other nodes of which a part did not come.
	Broken uint64
	// Unsent counts messages that no connection took; the replicas repeat what matters.
	Unsent uint64
	// StoreFailing says that the store of durable keys has not taken the last batch.
	StoreFailing bool
}

// Stats returns the numbers, over all groups of keys.
func (r *Replicator) Stats() Stats {
	stats := Stats{
		Subscribers: int(r.hub.count.Load()), Malformed: r.counters.malformed.Load(), Broken: r.counters.parcels.Total(), Unsent: r.counters.unsent.Load(),
		StoreFailing: r.counters.storeFailing.Load(), Waiting: r.calls.waiting(),
	}
	for _, g := range r.groups {
		t := g.table.Stats()
		stats.Keys += t.Entries - t.Tombstones
		stats.Tombstones += t.Tombstones
		stats.Bytes += t.Bytes
		stats.Unspread += t.Pending
	}
	return stats
}

// waiting returns how many operations wait.
func (s *calls) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
