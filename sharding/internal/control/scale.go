// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// How many of the shards of a kind are in use, and how that number is changed. The number lives where
// homes do: every region keeps the latest that it was told and says so with each registration, a
// coordinator takes the highest revision that the regions report, and so it survives as long as one
// region does that knows it. A change, by set, has all shards stop; then the next revision is told to
// all regions; when the last of them has confirmed it, the shards in use get homes.

// Scale is how many of the shards of a kind are in use: the first ones. The zero value says that
// all are, and that nobody changes that.
type Scale struct {
	// Revision grows by one with each change. 0: no coordinator has said anything yet, and Count is that of
	// the configuration.
	Revision uint64
	// Count is the number of shards in use, 1 to [Settings.Shards].
	Count uint32
}

// SetScale asks the coordinator of a kind to have another number of shards in use. As an input of
// [Control] it is answered by a [ScaleAnswered] that is published, always and once.
type SetScale struct {
	Kind string
	ID   uint64
	// Base is the revision upon which the change follows; on any other nothing changes.
	Base uint64
	// Count is the new number. 0: nothing is to change, and the present state is asked for.
	Count uint32
}

// KindName returns the name of the kind.
func (m SetScale) KindName() string { return m.Kind }

// ScaleRefusal says why a number does not change. Values are those of the wire.
type ScaleRefusal uint8

// The refusals.
const (
	ScaleAccepted    ScaleRefusal = iota // The change is under way, or done, or there is nothing to change.
	ScaleUnavailable                     // The coordinator does not answer, or does not decide at present.
	ScaleFixed                           // The number of the kind cannot be changed, or a node knows nothing of that.
	ScaleOutOfRange                      // The number is above that of the shards.
	ScaleBusy                            // Another change is under way.
	ScaleStale                           // Another change came first: the revision is not Base.
)

// ScaleAnswered answers a [SetScale].
type ScaleAnswered struct {
	Kind    string
	ID      uint64
	Refusal ScaleRefusal
	// Detail says the reason of a refusal, or why the last change was called off; may be empty.
	Detail string
	// Current is what counts, and Next what a change is under way to; zero: none is.
	Current, Next Scale
	// Told says that every region has confirmed Current.
	Told bool
	// CalledOff is the revision of the last change that was called off; 0: none was, by this coordinator.
	CalledOff uint64
}

// KindName returns the name of the kind.
func (m ScaleAnswered) KindName() string { return m.Kind }

// TellScale tells a region how many shards are in use. It is repeated until the region's registration
// has the revision.
type TellScale struct {
	Kind  string
	Term  protocol.Term
	Scale Scale
}

// KindName returns the name of the kind.
func (m TellScale) KindName() string { return m.Kind }

// ScaleChanged is an effect: this node has learnt how many shards of the kind are in use. It comes before any
// order to host a shard under that revision, and when no shard is hosted here under an earlier one.
type ScaleChanged struct {
	Kind  string
	Scale Scale
}

// learnScale takes over a higher revision. No shard has a home meanwhile, so that what has stopped here and is not in
// use any more is nobody's to ask for.
func (h *host) learnScale(told Scale) {
	if told.Count == 0 || h.scale.Count == 0 || told.Revision <= h.scale.Revision {
		return
	}
	h.scale = told
	h.kind.control.out.Add(ScaleChanged{Kind: h.cfg.Name, Scale: told})
	for s, entry := range h.hosted { //quorate:unordered each entry by itself
		if s.Index() >= told.Count && entry.state == Halted {
			delete(h.hosted, s)
			h.gates.release(s)
			h.snapshots.drop(s)
		}
	}
	for s := range h.wanted { //quorate:unordered each entry by itself
		if s.Index() >= told.Count {
			delete(h.wanted, s)
		}
	}
	h.register()
	h.checkClosed()
}

// scaling is the part of a coordinator that knows how many shards are in use. Invariants, between steps:
//
//	S1  a revision is told to regions only when no shard has a home under the one before: every
//	    instance has stopped, or its node is fenced;
//	S2  no shard gets a home before every region has confirmed the present revision, so that a
//	    coordinator that dies takes no revision with it under which anything ran;
//	S3  revisions only grow, and one revision is one number of shards wherever something runs.
type scaling struct {
	env
	current   Scale
	heard     bool  // Some region has a number of shards in use.
	next      Scale // The change for which all shards stop; zero: none.
	telling   bool  // Some region has not confirmed the present revision.
	calledOff uint64
	why       string // Why that change was called off.
}

// isScaled reports whether the number of shards in use is known, and may change.
func (s *scaling) isScaled() bool { return s.current.Count > 0 }

// stops reports whether all shards are being stopped.
func (s *scaling) stops() bool { return s.next.Count > 0 }

// isBusy reports whether no shard may get a home at present.
func (s *scaling) isBusy() bool { return s.stops() || s.telling }

// noteReported notes that a region may have a number of shards in use.
func (s *scaling) noteReported(told Scale) { s.heard = s.heard || told.Count > 0 }

// learn takes what a region knows: of two revisions the higher one counts. The number that the first region was
// configured with is the first revision.
func (s *scaling) learn(told Scale) {
	switch {
	case told.Count == 0 || told.Revision <= s.current.Revision && s.current.Count > 0:
	case told.Revision == 0:
		s.current, s.telling = Scale{Revision: 1, Count: told.Count}, true
	default:
		s.current, s.telling = told, true
	}
}

// begin begins a change.
func (s *scaling) begin(count uint32) {
	s.next = Scale{Revision: s.current.Revision + 1, Count: count}
	s.calledOff, s.why = 0, ""
}

// callOff gives up the change under way.
func (s *scaling) callOff(why string) {
	s.control().out.Decide("rescale", s.kind.name, "called off", why)
	s.calledOff, s.why, s.next = s.next.Revision, clip(why), Scale{}
}

// drop gives up the change under way, as the coordinator ends: the next one is asked for it again.
func (s *scaling) drop() { s.next = Scale{} }

// commit has the change count: nothing runs under the present revision.
func (s *scaling) commit() {
	s.current, s.next, s.telling = s.next, Scale{}, true
}

// state says how far the number has come.
func (s *scaling) state(id uint64) ScaleAnswered {
	return ScaleAnswered{
		Kind: s.kind.name, ID: id, Current: s.current, Next: s.next, Told: !s.telling, CalledOff: s.calledOff, Detail: s.why,
	}
}

// behind returns the regions that have not confirmed a revision, sorted. Those of a version that does not
// know of revisions are left out.
func (r *regions) behind(of Scale) []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, node := range r.nodes() {
		if reg := r.registrations[node]; reg.Scale.Count > 0 && reg.Scale.Revision < of.Revision {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// unscaled returns a region that hosts and does not know of revisions; zero: none.
func (r *regions) unscaled() gossip.NodeID {
	for _, node := range r.nodes() {
		if reg := r.registrations[node]; !reg.Proxy && reg.Scale.Count == 0 {
			return node
		}
	}
	return gossip.NodeID{}
}

// scaleChange takes changes of the number further, for a coordinator.
type scaleChange struct{ *coordinator }

// learn takes what all regions say of the number, before anything is decided.
func (c scaleChange) learn() {
	if !c.scaling.heard {
		return
	}
	for _, node := range c.regions.nodes() {
		if told := c.regions.registrations[node].Scale; told.Revision > 0 {
			c.scaling.learn(told)
		}
	}
	for _, node := range c.regions.nodes() {
		c.scaling.learn(c.regions.registrations[node].Scale)
	}
	if c.scaling.isScaled() {
		c.table.setUsed(c.scaling.current.Count)
	}
}

// advance takes a change of the number further, and reports whether that is a reason to give no shard a
// home. Allocation is open.
func (c scaleChange) advance() (busy bool) {
	c.learn()
	if c.scaling.stops() && !c.stopAll() {
		return true
	}
	if !c.scaling.telling {
		return false
	}
	behind := c.regions.behind(c.scaling.current)
	if len(behind) > 0 {
		return true
	}
	c.scaling.telling = false
	c.control().out.Decide("rescale", c.kind.name, "counts",
		fmt.Sprintf("every region knows revision %d, of which %d shards are in use", c.scaling.current.Revision, c.scaling.current.Count))
	return false
}

// stopAll has all shards stop, and reports whether the next revision counts: nothing runs any more.
func (c scaleChange) stopAll() (done bool) {
	o, done := newCommands(), true
	for id, s := range c.table.shards.all() {
		home := s.home
		if home.IsZero() {
			continue
		}
		done = false
		if c.table.serves(home, id) {
			c.moves.drop(id)
			c.beginMove(id, move{from: home, reason: fmt.Sprintf("%d shards are to be in use instead of %d", c.scaling.next.Count, c.scaling.current.Count), handBack: true})
			c.table.addCommand(id, o)
		}
	}
	o.send(c.env)
	if !done {
		return false
	}
	c.scaling.commit()
	c.moves.dropAll()
	c.forgetStops()
	c.table.setUsed(c.scaling.current.Count)
	c.tell()
	return true
}

// forgetStops forgets the moves of shards that have stopped for a change: it was no move from one home to another.
func (c scaleChange) forgetStops() {
	for _, id := range c.moves.inFlight() {
		if c.table.isHomeless(id) {
			c.moves.cancel(id)
		}
	}
}

// tell tells the regions that have not confirmed the present revision.
func (c scaleChange) tell() {
	if !c.scaling.isScaled() || !c.decides() {
		return
	}
	for _, node := range c.regions.behind(c.scaling.current) {
		c.kind.send(node, TellScale{Kind: c.kind.name, Term: c.term, Scale: c.scaling.current})
	}
}

// set begins a change, unless something speaks against it, and says how things are.
func (c scaleChange) set(m SetScale) ScaleAnswered {
	if c.decides() {
		c.learn()
	}
	why, detail := c.refusal(m)
	if why == ScaleAccepted && m.Count > 0 && m.Base == c.scaling.current.Revision && !c.scaling.isBusy() && m.Count != c.scaling.current.Count {
		c.scaling.begin(m.Count)
		c.control().out.Decide("rescale", c.kind.name, "begins", fmt.Sprintf("%d shards are to be in use instead of %d", m.Count, c.scaling.current.Count))
		if c.strategy.isAsked() {
			c.strategy.forget()
		}
		c.evaluate()
	}
	a := c.scaling.state(m.ID)
	if a.Refusal = why; detail != "" {
		a.Detail = detail
	}
	return a
}

// refusal says what speaks against a change. What asks for the change under way, or for one that
// has been made, is accepted: the question may have been repeated.
func (c scaleChange) refusal(m SetScale) (ScaleRefusal, string) {
	s := &c.scaling
	switch {
	case !c.decides() || c.ending:
		return ScaleUnavailable, "the coordinator does not decide yet, or not any more"
	case !s.isScaled():
		return ScaleFixed, "no region has said that the number can change"
	case m.Count == 0:
		return ScaleAccepted, ""
	case m.Count > c.table.present().Shards:
		return ScaleOutOfRange, fmt.Sprintf("%d is above %d", m.Count, c.table.present().Shards)
	case s.stops() && s.next == Scale{m.Base + 1, m.Count}, s.current == Scale{m.Base + 1, m.Count}:
		return ScaleAccepted, ""
	case s.stops():
		return ScaleBusy, fmt.Sprintf("the change to %d is under way", s.next.Count)
	case m.Base != s.current.Revision:
		return ScaleStale, fmt.Sprintf("the revision is %d, with %d in use", s.current.Revision, s.current.Count)
	case s.telling: // Whoever asks waits: that is over soon, and nobody has changed the number meanwhile.
		return ScaleUnavailable, fmt.Sprintf("revision %d is being told to all nodes", s.current.Revision)
	case !c.regions.unscaled().IsZero():
		return ScaleFixed, c.regions.unscaled().String() + " runs a version in which the number cannot change"
	default:
		return ScaleAccepted, ""
	}
}
