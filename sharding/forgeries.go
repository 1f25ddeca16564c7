// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

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
	// forgeryGather is how long after the first forgery of a run a line is logged: more
	// forgeries may come, or a map which shows that the message was in order.
	forgeryGather = 5 * time.Second
	// forgeryEvery is the time between log lines about forgeries that go on.
	forgeryEvery = time.Minute
	// forgeriesMax bounds the runs that are told apart. Forgeries of further runs are
	// counted and not logged.
	forgeriesMax = 256
)

// Forgeries counts frames that members sent in a name that is not their own, by fault.
// The frames were dropped. Some are counted in good health too, when the map of a kind is
// late; their senders then repeat them.
type Forgeries struct {
	Origin uint64 // Messages that neither their origin sent, nor a member that passes them on.
	Home   uint64 // Acknowledgements, requests to transmit again, and flow controls, of nodes that are not the home.
	Reply  uint64 // Replies of nodes to which no such message went.
}

// forgeriesOf gives the sums of all faults their names.
func forgeriesOf(total [cell.Faults]uint64) Forgeries {
	return Forgeries{Origin: total[cell.FaultOrigin], Home: total[cell.FaultHome], Reply: total[cell.FaultReply]}
}

// Total is the sum of all fields.
func (f Forgeries) Total() uint64 { return f.Origin + f.Home + f.Reply }

// forgeries counts and logs forgeries. A holder of a slot's lock may call note: log lines
// are written on another goroutine.
type forgeries struct {
	log    *slog.Logger
	source func(gossip.NodeID) transport.Source

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

// note counts a forgery. Before a line is written Innocent is asked whether the frame was
// in order after all, which this node did not know when the frame came.
func (f *forgeries) note(x runtime.Forgery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total[x.Fault]++
	key := forgeryKey{x.From, x.Fault, x.Kind}
	run := f.runs[key]
	if f.ended || run == nil && len(f.runs) >= forgeriesMax {
		return
	}
	if run == nil {
		if f.runs == nil {
			f.runs = make(map[forgeryKey]*forgeryRun)
		}
		run = new(forgeryRun)
		f.runs[key] = run
		// The timer's function runs on a goroutine of the Go runtime for the time of one line.
		run.timer = time.AfterFunc(forgeryGather, func() { f.tell(key, run) })
	}
	run.count++
	run.shard, run.innocent = x.Shard, x.Innocent
}

// tell logs the forgeries of a run since its last line, and sees to the next line; a run
// without any ends.
func (f *forgeries) tell(key forgeryKey, run *forgeryRun) {
	f.mu.Lock()
	count, shard, innocent := run.count, run.shard, run.innocent
	f.mu.Unlock()
	guilty := count > 0 && !innocent() // Asked without the lock: innocent takes that of a slot.
	f.mu.Lock()
	switch run.count -= count; {
	case guilty && !f.ended:
		run.timer.Reset(forgeryEvery)
	case run.count > 0 && !f.ended:
		run.timer.Reset(forgeryGather)
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

// counts returns the sums, by fault.
func (f *forgeries) counts() [cell.Faults]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// end forgets the forgeries that were not logged yet. Nothing is logged afterwards.
func (f *forgeries) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, run := range f.runs {
		run.timer.Stop()
	}
}
