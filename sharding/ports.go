// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/explain"
	"github.com/quorate/quorate/sharding/internal/leases"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/storecalls"
)

// What the runtime has in a process: lanes of the transport, timers and goroutines of Go, the
// log and the counters. Ports are called with the lock of a slot held, so that what takes
// longer is left to other goroutines.

// ports returns the ports of the system's runtime.
func (s *System) ports() runtime.Ports {
	return runtime.Ports{
		Self: s.self, Clock: s.clock, Standing: s.standing, Members: s.node,
		Lane:      func(to gossip.NodeID) runtime.Lane { return s.node.Transport().Lane(to, machine.LaneMessage) },
		AwaitRoom: s.awaitRoom,
		AcksDue:   s.dispatcher.AcksDue,
		// The function runs on a goroutine of the Go runtime for the time of one step.
		AfterFunc: func(after time.Duration, f func()) runtime.Timer { return time.AfterFunc(after, f) },
		Waiter:    func(*cell.Message) runtime.Waiter { return make(room) },
		Crowded:   s.pool.Crowded,
		Report: func(kind string, shard protocol.ShardID, e protocol.CellEvent) {
			s.dispatcher.Report(control.FromShard{Kind: kind, Shard: shard, Event: e})
		},
		Notes: runtime.Notes{
			Malformed: func(from gossip.NodeID, err error) {
				s.counters.Malformed.Add(1)
				s.log.Warn("message dropped", "from", from.String(), "error", err)
			},
			Misdirected: func() { s.counters.Misdirected.Add(1) },
			Forged:      s.forgeries.Note,
			Dropped:     func(why cell.Drop) { s.counters.Dropped[why].Add(1) },
			Lost:        s.losses.Note,
			Forgotten: func(kind string, f protocol.Forgotten) {
				s.memories.Note(kind, f.Loss.String(), f.Entity, explain.Loss(f.Loss))
			},
			Unsent:   func(frames int) { s.counters.Unsent.Add(uint64(frames)) },
			Stuck:    s.stuck,
			Returned: func() { s.counters.Stuck.Add(-1) },
		},
	}
}

// leasePorts returns what the leases of shards use of the system.
func (s *System) leasePorts() leases.Config {
	return leases.Config{
		Store: s.leasing.store, Times: s.leasing.times, Cluster: s.node.ClusterName(), Owner: s.self.String(), Log: s.log,
		Under: func(kind string, shard protocol.ShardID, held func() bool) {
			if r := s.router(kind); r != nil {
				r.region.Under(shard, held)
			}
		},
		Tell: func(ctx context.Context, in machine.Input) { _ = s.control.PostWait(ctx, in) },
	}
}

// storePorts returns what the calls of stores of remembered entities use of the system.
func (s *System) storePorts() storecalls.Node {
	return storecalls.Node{
		Context: s.ctx, Go: s.goes,
		Post:     func(in machine.Input) { _ = s.control.Post(in) },
		PostWait: func(in machine.Input) { _ = s.control.PostWait(s.ctx, in) }, // Else the node has ended.
	}
}

// censusPorts returns what questions to all nodes use of the system.
func (s *System) censusPorts() census.Config {
	return census.Config{
		Context: s.ctx, Ended: s.ended, Go: s.workers.Go, Standing: s.standing.Held, Drained: s.Drained,
		Kind: func(name string) *census.Kind {
			if r := s.router(name); r != nil {
				return &r.census
			}
			return nil
		},
	}
}

// stuck counts an entity that does not return, and reports it.
func (s *System) stuck(sl *runtime.Slot, e *cell.Entity) {
	s.counters.Stuck.Add(1)
	info := e.Info()
	since := s.clock.Instant().Sub(info.Since)
	// The goroutine is owned by the system and ends when the line is written, which is
	// not done with the slot in hand.
	s.workers.Go(func() {
		s.log.Error("entity does not return", "kind", sl.Kind(), "shard", uint32(sl.Shard()), "entity", info.ID,
			"state", info.State, "for", since, "left behind", info.Released)
	})
}

// awaitRoom flushes towards a node when its lane has room again. One goroutine
// waits for each lane that is full.
func (s *System) awaitRoom(to gossip.NodeID) {
	if _, waiting := s.lanes.LoadOrStore(to, struct{}{}); waiting {
		return
	}
	// The goroutine is owned by the system: it ends when the lane has room, or with the
	// system.
	s.workers.Go(func() {
		err := s.node.Transport().Lane(to, machine.LaneMessage).Room(s.ctx)
		s.lanes.Delete(to)
		if err == nil {
			s.runtime.Flush(to)
		}
	})
}
