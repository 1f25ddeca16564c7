// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package notes

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/transport"
)

const (
	// ForgeryGather is how long after the first forgery of a run a line is logged: more
	// forgeries may come, or a map which shows that the message was in order.
	ForgeryGather = 5 * time.Second
	// forgeryEvery is the time between log lines about forgeries that go on.
	forgeryEvery = time.Minute
	// maxForgeries bounds the runs that are told apart. Forgeries of further runs are
	// counted and not logged.
	maxForgeries = 256
)

// Forgeries counts and logs forgeries.
type Forgeries struct {
	log    *slog.Logger
	source func(gossip.NodeID) transport.Source // Where a node speaks from.

	mu    sync.Mutex          // Guards all fields below; held for bookkeeping only.
	total [cell.Faults]uint64 // All forgeries, by fault.
	runs  map[forgeryKey]*forgeryRun
	ended bool // Nothing is logged any more.
}

// forgeryKey names a run of forgeries: each run has log lines of its own.
type forgeryKey struct {
	from  gossip.NodeID
	fault cell.Fault
	kind  string
}

// forgeryRun holds the forgeries of a key since the last log line about them.
type forgeryRun struct {
	count    uint64
	shard    protocol.ShardID // The shard of the last forgery.
	innocent func() bool      // Reports whether the last forgery was in order, by what is known at the time of the call.
	timer    *time.Timer
}

// NewForgeries returns what counts and logs forgeries, with the source of the node that they come from.
func NewForgeries(log *slog.Logger, source func(gossip.NodeID) transport.Source) *Forgeries {
	return &Forgeries{log: log, source: source, runs: make(map[forgeryKey]*forgeryRun)}
}

// Note counts a forgery. Before a line is written Innocent is asked whether the frame was
// in order after all, which this node did not know when the frame came.
func (f *Forgeries) Note(x runtime.Forgery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total[x.Fault]++
	key := forgeryKey{x.From, x.Fault, x.Kind}
	run := f.runs[key]
	if f.ended || run == nil && len(f.runs) >= maxForgeries {
		return
	}
	if run == nil {
		run = new(forgeryRun)
		f.runs[key] = run
		// The timer's function runs on a goroutine of the Go runtime for the time of one line.
		run.timer = time.AfterFunc(ForgeryGather, func() { f.tell(key, run) })
	}
	run.count++
	run.shard, run.innocent = x.Shard, x.Innocent
}

// tell logs the forgeries of a run since its last line, and sees to the next line; a run
// without any ends.
func (f *Forgeries) tell(key forgeryKey, run *forgeryRun) {
	f.mu.Lock()
	count, shard, innocent := run.count, run.shard, run.innocent
	f.mu.Unlock()
	guilty := count > 0 && !innocent() // Asked without the lock: innocent takes that of a slot.
	f.mu.Lock()
	switch run.count -= count; {
	case guilty && !f.ended:
		run.timer.Reset(forgeryEvery)
	case run.count > 0 && !f.ended:
		run.timer.Reset(ForgeryGather)
	default:
		delete(f.runs, key)
	}
	f.mu.Unlock()
	if guilty {
		source := f.source(key.from)
		f.log.Warn("a member speaks in a name that is not its own; dropped", "peer", key.from.String(), "address", source.Address,
			"certificate", source.Certificate, "fault", key.fault.String(), "kind", key.kind, "shard", uint32(shard), "count", count)
	}
}

// Counts returns the sums, by fault.
func (f *Forgeries) Counts() [cell.Faults]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// End forgets the forgeries that were not logged yet. Nothing is logged afterwards.
func (f *Forgeries) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, run := range f.runs {
		run.timer.Stop()
	}
}
