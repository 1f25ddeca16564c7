// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// maxHeldSnapshots bounds the snapshots that a coordinator has on their way, in bytes as
// [protocol.SizeOf] counts them. What comes beyond it goes on without its memory.
const maxHeldSnapshots = 64 << 20

// heldSnapshotsTimeout is how long snapshots may be on their way to a coordinator, and from there to a home,
// and no longer than a shard may take to stop. Meanwhile the messages to the shard wait.
const heldSnapshotsTimeout = 5 * time.Second

// snapshotsUntil returns until when snapshots that arrive now are held.
func (k *perKind) snapshotsUntil() machine.Instant {
	return k.control.now.Mono.Add(min(k.timings.Handoff, heldSnapshotsTimeout))
}

// heldSnapshots holds the snapshots of shards between two homes: at a coordinator, of the shards whose positions are
// travelling; at a region, of the shards that have stopped there. Invariants, between calls:
//
//	L1  bytes is what all of them count together, at most maxHeldSnapshots;
//	L2  what was taken in is given out until its time is over, unchanged, and after that without the
//	    memory: a home that cannot be told of the memory is told of the shard.
type heldSnapshots struct {
	shards map[protocol.ShardID]shardSnapshots
	bytes  int
}

// shardSnapshots are the snapshots of a shard, held until a moment.
type shardSnapshots struct {
	snapshots []protocol.Snapshot
	until     machine.Instant
}

// put holds the snapshots of a shard until a moment, and drops those held before.
func (l *heldSnapshots) put(id protocol.ShardID, all []protocol.Snapshot, until machine.Instant) {
	l.drop(id)
	if len(all) == 0 {
		return
	}
	if l.bytes+protocol.SizeOf(all) > maxHeldSnapshots {
		all = protocol.Lose(all, protocol.LossOnTheWay)
	}
	if l.bytes+protocol.SizeOf(all) > maxHeldSnapshots {
		return // Not even the names have room.
	}
	if l.shards == nil {
		l.shards = make(map[protocol.ShardID]shardSnapshots)
	}
	l.shards[id] = shardSnapshots{all, until}
	l.bytes += protocol.SizeOf(all)
}

// of returns the snapshots of a shard to be sent now.
func (l *heldSnapshots) of(id protocol.ShardID) []protocol.Snapshot { return l.shards[id].snapshots }

// drop forgets the snapshots of a shard.
func (l *heldSnapshots) drop(id protocol.ShardID) {
	if p, there := l.shards[id]; there {
		l.bytes -= protocol.SizeOf(p.snapshots)
		delete(l.shards, id)
	}
}

// expire replaces the snapshots that have been on their way for too long by losses, and returns the number of shards
// concerned.
func (l *heldSnapshots) expire(now machine.Instant) (late int) {
	for id := range l.shards { //quorate:unordered each entry by itself
		if l.expires(id, now) {
			late++
		}
	}
	return late
}

// expires is expire for one shard.
func (l *heldSnapshots) expires(id protocol.ShardID, now machine.Instant) bool {
	p := l.shards[id]
	if now < p.until || !holdsMemory(p.snapshots) {
		return false
	}
	l.put(id, protocol.Lose(p.snapshots, protocol.LossOnTheWay), p.until)
	return true
}

// len returns the number of shards with snapshots or losses.
func (l *heldSnapshots) len() int { return len(l.shards) }

// holdsMemory reports whether there is a memory among snapshots, and not losses alone.
func holdsMemory(all []protocol.Snapshot) bool {
	return slices.ContainsFunc(all, func(s protocol.Snapshot) bool { return s.Loss == protocol.LossNone })
}

// sendStopped tells a coordinator of shards that have stopped, if there are any. Those with a memory
// have a message each on the lane of large values, so that none of them delays another, nor the rest.
func (k *perKind) sendStopped(to gossip.NodeID, term protocol.Term, done []StoppedShard) {
	bulk, rest := apart(done, func(s StoppedShard) bool { return holdsMemory(s.Snapshots) })
	for _, s := range bulk {
		k.sendBulk(to, ShardsStopped{Kind: k.name, Term: term, Shards: []StoppedShard{s}})
	}
	if len(rest) > 0 {
		k.send(to, ShardsStopped{Kind: k.name, Term: term, Shards: rest})
	}
}

// sendHosts is sendStopped for the order to host shards.
func (k *perKind) sendHosts(to gossip.NodeID, term protocol.Term, scale Scale, shards []HostShard) {
	bulk, rest := apart(shards, func(s HostShard) bool { return holdsMemory(s.Snapshots) })
	for _, s := range bulk {
		k.sendBulk(to, Host{Kind: k.name, Term: term, Scale: scale, Shards: []HostShard{s}})
	}
	if len(rest) > 0 {
		k.send(to, Host{Kind: k.name, Term: term, Scale: scale, Shards: rest})
	}
}

// apart returns the elements for which f holds, and the others.
func apart[E any](all []E, f func(E) bool) (yes, no []E) {
	for _, e := range all {
		if f(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}
