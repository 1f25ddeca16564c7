// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport"
)

const (
	// forgeryGather is how long after the first forgery a line about it is logged: more
	// may come, or a map by which it was none.
	forgeryGather = 5 * time.Second
	// forgeryEvery is the time between lines about forgeries that go on.
	forgeryEvery = time.Minute
	// forgeriesMax bounds the runs that are told apart. Forgeries beyond are counted and
	// not logged.
	forgeriesMax = 256
)

// Forgeries counts what came from members in a name that is not theirs, by what was
// wrong with it. It was dropped. The same is seen in good health
// when the map of a kind is late; whoever sent it repeats it then.
type Forgeries struct {
	Origin uint64 // Messages whose origin did not send them.
	Home   uint64 // Acknowledgements, requests to send again, and words on the flow, of nodes that are not the home.
	Reply  uint64 // Replies of nodes to which no such message went.
}

// forgeriesOf names the sums.
func forgeriesOf(total [protocol.Faults]uint64) Forgeries {
	return Forgeries{Origin: total[protocol.FaultOrigin], Home: total[protocol.FaultHome], Reply: total[protocol.FaultReply]}
}

// Total is the sum.
func (f Forgeries) Total() uint64 { return f.Origin + f.Home + f.Reply }

// forgeries counts and logs what is not taken. Its note may be called by a holder of a
// cell's lock: lines are written on another goroutine.
type forgeries struct {
	log    *slog.Logger
	source func(gossip.NodeID) transport.Source

	mu    sync.Mutex // Guards all below; held for bookkeeping only.
	total [protocol.Faults]uint64
	runs  map[forgeryKey]*forgeryRun
	ended bool
}

// forgeryKey names a run of forgeries: each has lines of its own.
type forgeryKey struct {
	from  gossip.NodeID
	fault protocol.Fault
	kind  string
}

// forgeryRun is the forgeries of a key since the last line about them.
type forgeryRun struct {
	count    uint64
	shard    protocol.ShardID // Of the last one.
	innocent func() bool      // Whether the last one was in order, by what is known when it is called.
	timer    *time.Timer
}

// note counts something that was not taken. Innocent is asked before a line is written
// whether it was in order, and this node did not know yet.
func (f *forgeries) note(from gossip.NodeID, fault protocol.Fault, kind string, shard protocol.ShardID, innocent func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total[fault]++
	key := forgeryKey{from, fault, kind}
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
		// Its function runs on a goroutine of the runtime for the time of one line.
		run.timer = time.AfterFunc(forgeryGather, func() { f.tell(key, run) })
	}
	run.count++
	run.shard, run.innocent = shard, innocent
}

// tell logs the forgeries of a run since its last line, and sees to the next line; a run
// without any ends.
func (f *forgeries) tell(key forgeryKey, run *forgeryRun) {
	f.mu.Lock()
	count, shard, innocent := run.count, run.shard, run.innocent
	f.mu.Unlock()
	guilty := count > 0 && !innocent() // Asked without the lock: it takes a cell.
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
func (f *forgeries) counts() [protocol.Faults]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// end forgets what was not logged yet.
func (f *forgeries) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, run := range f.runs {
		run.timer.Stop()
	}
}

// forged counts what a cell does not take. The caller holds the slot.
func (r *router) forged(sl *slot, from gossip.NodeID, fault protocol.Fault) {
	r.system.forgeries.note(from, fault, r.name, sl.id, func() bool {
		sl.mu.Lock()
		defer sl.mu.Unlock()
		return sl.cell.Went(from, 0)
	})
}
