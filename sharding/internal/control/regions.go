// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Who may host shards: queryNew and query ask the nodes, answered and admit record what they say,
// open tells when all have answered, forget strikes a fenced node out. Then come the questions
// about the regions, and last what a strategy is told of them.

// regions is the part of a coordinator that knows which nodes may host shards, and which of them have answered.
// Invariants, between steps:
//
//	R1  peers holds every node that may host a shard: the members that run sharding, and
//	    removed nodes until they are fenced;
//	R2  allocation opens once no peer is silent any more, and stays open;
//	R3  every region has the settings of the kind, and the number of its registration only
//	    grows.
type regions struct {
	env
	peers         map[gossip.NodeID]bool         // The nodes to which the query goes, and whether each has answered.
	followers     map[gossip.NodeID]bool         // The peers without a region that know of layouts.
	held          map[gossip.NodeID]uint64       // Which version of the map of this coordinator each region holds; 0: none.
	opened        bool                           // All peers have answered or are fenced: the coordinator may allocate.
	registrations map[gossip.NodeID]Registration // The last registration of each region.
	hosting       string                         // Under which rule the regions host, as the first of them has said.
	slowStart     slowStart
	loads         loads
	cameAt        machine.Instant // When the last region that can host came.
	settleAt      machine.Instant // When the first allocation waits for further regions no longer.
}

// queryNew sends the query to nodes that may host shards and were not asked before: also nodes that are
// removed and not fenced, which cannot answer and are waited for. Nodes that this node never
// knew as members are fenced by the time a coordinator starts: the singleton rule waits for
// that.
func (r *regions) queryNew() {
	for _, node := range sortedNodes(r.control().serving) {
		if _, known := r.peers[node]; !known {
			r.peers[node] = false
			r.ask(node)
		}
	}
}

// query asks the peers that have not answered once more.
func (r *regions) query() {
	for _, node := range r.silent() {
		r.ask(node)
	}
}

// ask sends the query to a node, unless the node was removed and cannot answer: then the
// coordinator waits for its fence.
func (r *regions) ask(node gossip.NodeID) {
	if r.control().state.Member(node) != nil {
		r.kind.send(node, Query{Kind: r.kind.name, Term: r.term})
	}
}

// silent returns the peers that have not answered, sorted.
func (r *regions) silent() []gossip.NodeID {
	var nodes []gossip.NodeID
	for node, answered := range r.peers { //quorate:unordered sorted below
		if !answered {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, gossip.NodeID.Compare)
	return nodes
}

// isPeer reports whether the query goes to a node, and awaits whether its answer is missing.
func (r *regions) isPeer(node gossip.NodeID) bool {
	_, asked := r.peers[node]
	return asked
}

func (r *regions) awaits(node gossip.NodeID) bool { return r.isPeer(node) && !r.peers[node] }

// answered notes that a peer has answered the query.
func (r *regions) answered(node gossip.NodeID) { r.peers[node] = true }

// open opens allocation once all peers have answered or are fenced, and reports whether that is now.
func (r *regions) open() (now bool) {
	if !r.opened && len(r.silent()) == 0 {
		r.opened, now = true, true
		r.control().out.Decide("coordinator", r.kind.name, "opened", fmt.Sprintf("all %d members have answered or are fenced", len(r.peers)))
	}
	return now
}

func (r *regions) isOpen() bool { return r.opened }

// admit registers a region, or refuses it by the settings that count for it.
func (r *regions) admit(from gossip.NodeID, reg Registration, settings Settings) bool {
	mine := r.kind.settings
	mine.Hosting = cmp.Or(r.hosting, mine.Hosting)
	if refusal, differ := mine.Difference(r.kind.name, settings); differ {
		r.kind.send(from, refusal)
		return false
	}
	r.hosting = cmp.Or(mine.Hosting, settings.Hosting)
	if !reg.Proxy {
		r.slowStart.noted(from, reg.Age)
	}
	if last, known := r.registrations[from]; known {
		if reg.Number >= last.Number { // Otherwise a later registration has overtaken this one.
			r.registrations[from] = reg
		}
		return true
	}
	r.registrations[from] = reg
	if !reg.Proxy {
		r.cameAt = r.now()
		r.settleAt = r.now().Add(r.kind.timings.Settle)
		r.control().out.Arm(settleTimer{r.kind.name}, r.settleAt)
		if slowly := r.slowStart.starting(from); slowly != "" {
			r.control().out.Decide("allocation", r.kind.name, "slow start", slowly)
		}
	}
	return true
}

// forget removes a node that can host no shard any more.
func (r *regions) forget(node gossip.NodeID) {
	delete(r.peers, node)
	delete(r.followers, node)
	delete(r.held, node)
	delete(r.registrations, node)
	r.slowStart.forget(node)
}

// hasRegion reports whether the region of a node is registered, and nodes returns the nodes
// of all regions, sorted.
func (r *regions) hasRegion(node gossip.NodeID) bool {
	_, known := r.registrations[node]
	return known
}

func (r *regions) nodes() []gossip.NodeID { return sortedNodes(r.registrations) }

// isEmpty reports whether no region is registered, and all nodes have answered.
func (r *regions) isEmpty() bool { return r.opened && len(r.registrations) == 0 }

// suffices reports whether there are regions to allocate to. Only the first allocation waits
// for further regions, so that the first region does not get all shards.
func (r *regions) suffices(first bool) bool {
	hosts := 0
	for _, reg := range r.registrations { //quorate:unordered a count
		if !reg.Proxy {
			hosts++
		}
	}
	enough := r.kind.cfg.MinRegions > 1 && hosts >= r.kind.cfg.MinRegions
	return hosts > 0 && (!first || enough || r.isSettled())
}

// settles returns when the first allocation waits for further regions no longer, and
// isSettled reports whether that time has come.
func (r *regions) settles() machine.Instant { return r.settleAt }

func (r *regions) isSettled() bool { return r.now() >= r.settleAt }

// departing returns the nodes of the regions that are to hand back their shards, each with the reason: the member
// leaves, or it is drained and there is another that can take them. None does when all leave together.
func (r *regions) departing() map[gossip.NodeID]string {
	parting := map[gossip.NodeID]string{}
	spared := r.sparesDrained()
	for node, reg := range r.registrations { //quorate:unordered each entry by itself
		switch m := r.control().state.Member(node); {
		case m == nil || r.control().together:
		case m.Status == gossip.Leaving || m.Status == gossip.Exiting:
			parting[node] = "is leaving"
		case reg.Drained && spared && !r.control().stays():
			parting[node] = "is drained"
		}
	}
	return parting
}

// eligible returns the regions that may be given shards, sorted: those of drained nodes only while
// there is no other.
func (r *regions) eligible() []gossip.NodeID {
	if nodes := r.able(false); len(nodes) > 0 {
		return nodes
	}
	return r.able(true)
}

// sparesDrained reports whether the regions of drained nodes need not host.
func (r *regions) sparesDrained() bool { return len(r.able(false)) > 0 }

// isDrained reports whether a node is drained, as far as its region has said.
func (r *regions) isDrained(node gossip.NodeID) bool { return r.registrations[node].Drained }

// able returns the regions that can host, of drained nodes or of the others, sorted.
func (r *regions) able(drained bool) []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, node := range r.nodes() {
		m := r.control().state.Member(node)
		if reg := r.registrations[node]; m != nil && !reg.Proxy && !reg.Suspended && reg.Drained == drained &&
			r.kind.couldTake(m) && r.control().state.Reachable(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// digest adds the regions that may be given shards to a digest.
func (r *regions) digest(h uint64) uint64 {
	for _, node := range r.eligible() {
		h = mix(h, node.String())
	}
	return h
}

// mix adds a text to a digest (FNV-1a).
func mix(h uint64, text string) uint64 {
	for _, b := range []byte(text) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// fitness says whether this is a good time to move shards. A joining member that is
// unreachable is left out: it hosts nothing, and may stay unreachable for long.
func (r *regions) fitness() allocation.Fitness {
	f := allocation.Fitness{OneVersion: true, NoneJoining: true, NoneUnreachable: true}
	st := r.control().state
	version, first := "", true
	for _, m := range st.Members() {
		newcomer, reached := m.Status < gossip.Up, st.Reachable(m.Node)
		f.NoneUnreachable = f.NoneUnreachable && (newcomer || reached)
		if newcomer && reached && m.HasService(uint16(protocol.Service)) && m.HasRole(r.kind.settings.Role) {
			f.NoneJoining = false // The joining member is about to run a region.
		}
		if !r.hasRegion(m.Node) {
			continue
		}
		f.OneVersion = f.OneVersion && (first || gossip.CompareVersions(version, m.AppVersion) == 0)
		version, first = m.AppVersion, false
	}
	return f
}

// fitnessDigest returns a number that differs between any two values of f.
func fitnessDigest(f allocation.Fitness) uint64 {
	var h uint64 = 1
	for _, is := range [...]bool{f.OneVersion, f.NoneUnreachable, f.NoneJoining} {
		h <<= 1
		if is {
			h |= 1
		}
	}
	return h
}

// regionID returns the name of a node's region that strategies use, none for no node.
func regionID(n gossip.NodeID) allocation.Region {
	if n.IsZero() {
		return ""
	}
	return allocation.Region(n.String())
}

// nodesByRegion returns the nodes of the regions by the names that strategies use.
func (r *regions) nodesByRegion() map[allocation.Region]gossip.NodeID {
	nodes := map[allocation.Region]gossip.NodeID{}
	for node := range r.registrations { //quorate:unordered each entry by itself
		nodes[regionID(node)] = node
	}
	return nodes
}

// listed reports whether the region of a node is among those that a request describes.
func (r *regions) listed(node gossip.NodeID) bool {
	reg, known := r.registrations[node]
	return known && !reg.Proxy && r.control().state.Member(node) != nil
}

// states describes the regions to a strategy, each with its shards.
func (r *regions) states(shards map[gossip.NodeID][]allocation.Shard) []allocation.RegionState {
	st := r.control().state
	spared := r.sparesDrained()
	var all []allocation.RegionState
	var nodes []gossip.NodeID
	var regs []Registration
	for _, node := range r.nodes() {
		if !r.listed(node) {
			continue
		}
		m, reg := st.Member(node), r.registrations[node]
		all = append(all, allocation.RegionState{
			ID: regionID(node), Zone: m.Zone, Roles: m.Roles, Version: m.AppVersion,
			Leaving: !r.kind.couldTake(m) || reg.Drained && spared, Suspended: reg.Suspended, Unreachable: !st.Reachable(node),
			Capacity: reg.Capacity, Shards: shards[node],
		})
		nodes, regs = append(nodes, node), append(regs, reg)
	}
	r.loads.expect(all, regs)
	r.slowStart.scale(all, nodes)
	slices.SortFunc(all, func(a, b allocation.RegionState) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return all
}

// String describes the regions in a part of a line.
func (r *regions) String() string {
	return fmt.Sprintf("opened %t peers %d silent %d regions %d", r.opened, len(r.peers), len(r.silent()), len(r.registrations))
}
