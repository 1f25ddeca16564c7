// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// commands holds the commands to homes, by home and sort.
type commands struct {
	hosts                    map[gossip.NodeID][]HostShard
	stops, resumes, releases map[gossip.NodeID][]ShardEpoch
}

func newCommands() commands {
	return commands{
		hosts: map[gossip.NodeID][]HostShard{}, stops: map[gossip.NodeID][]ShardEpoch{},
		resumes: map[gossip.NodeID][]ShardEpoch{}, releases: map[gossip.NodeID][]ShardEpoch{},
	}
}

// add adds the command that belongs to the shard's phase. A new home is given the memory of the
// entities.
func (o commands) add(id protocol.ShardID, s *shard, memory []protocol.Snapshot) {
	se := ShardEpoch{Shard: id, Epoch: s.epoch}
	switch s.phase {
	case PhaseStarting:
		o.hosts[s.home] = append(o.hosts[s.home], HostShard{Shard: id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Snapshots: memory})
	case PhaseStopping:
		o.stops[s.home] = append(o.stops[s.home], se)
	case PhaseResuming:
		o.resumes[s.home] = append(o.resumes[s.home], se)
	case PhaseReleasing:
		o.releases[s.home] = append(o.releases[s.home], se)
	}
}

// send sends the commands in the name of a coordinator, the nodes of each sort in order.
func (o commands) send(by env) {
	name := by.kind.name
	for _, to := range sortedNodes(o.hosts) {
		by.kind.sendHosts(to, by.term, by.kind.coord.scaling.current, o.hosts[to])
	}
	for _, to := range sortedNodes(o.stops) {
		by.kind.send(to, Stop{Kind: name, Term: by.term, Shards: o.stops[to]})
	}
	for _, to := range sortedNodes(o.resumes) {
		by.kind.send(to, Resume{Kind: name, Term: by.term, Shards: o.resumes[to]})
	}
	for _, to := range sortedNodes(o.releases) {
		by.kind.send(to, Release{Kind: name, Term: by.term, Shards: o.releases[to]})
	}
}
