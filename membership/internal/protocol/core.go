// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// The core comes first, with what was published of the standing and the phases of a node;
// then what any part may do: change the state, end the node, refuse, tell a node that it is
// no member; and last the times that follow from the configuration.

// core is what the parts of a [Machine] share. Each part holds a pointer to the same
// core, and everything else that it needs in fields of its own.
type core struct {
	cfg  Config
	deps Deps

	// self is the identity of this node, me the member as which it joins.
	self gossip.NodeID
	me   gossip.Member

	// settings are those that a join compares, but for the seed nodes and for the
	// downing strategy, which may change.
	settings []Setting

	// now and out are the time of the present step and where its effects go.
	now machine.Now
	out *machine.Outbox

	// last is the time of the step before.
	last machine.Now

	phase phase

	// joinedAt is when this node became a member.
	joinedAt machine.Instant

	// state is what this node knows of its cluster. It changes by [core.edit], and
	// where gossip is merged into it.
	state *gossip.State

	// settled is the state of which all parts were told the consequences.
	settled *gossip.State

	// kept is the record on the disk, or in the process if there is no disk. Only
	// the memory writes it.
	kept Record

	surveyed survey
	hosting  hosting

	counts Counts

	// calls is the number of the last call.
	calls machine.CallID
}

// hosting is what was published of this node's standing.
type hosting struct {
	// until is the moment up to which this node may host; zero: it may not.
	until machine.Instant

	// moved says that something from which until follows has changed since until
	// was computed.
	moved bool

	// dropped says that this node hosts nothing any more, for good.
	dropped bool
}

type phase uint8

const (
	phaseIdle    phase = iota // Not asked to join yet.
	phaseJoining              // Looking for a cluster.
	phaseMember               // In a cluster, from joining to exiting.
	phaseStopped              // Said Stopping; nothing happens any more.
)

// newCore returns the core of a node that is in no cluster. The digest of the loaded
// strategies is left to those.
func newCore(cfg Config, self gossip.Member, deps Deps) *core {
	c := &core{cfg: cfg, deps: deps, self: self.Node, me: self, kept: deps.Record, state: gossip.New(gossip.ClusterID{})}
	c.settled = c.state
	c.settings = sortedSettings(slices.Concat(cfg.settings(), downingSettings(deps.Downing), deps.Settings))
	c.me.Status, c.me.UpNumber, c.me.Data = gossip.Joining, 0, deps.Record.Data
	c.me.Settings = settingsDigest(c.settings)
	return c
}

// edit makes an edit of this node.
func (c *core) edit(change func(*gossip.Edit)) {
	c.state = c.markSeen(c.state.Edit(c.self, change))
}

// markSeen marks a state that this node has made its own as seen by it, once the state's
// voters are in its record: others count on it that a node remembers, after a restart
// too, the voters that it has seen. Until then the mark is taken off.
func (c *core) markSeen(s *gossip.State) *gossip.State {
	if c.kept.holds(s) {
		return s.See(c.self)
	}
	return s.Unsee(c.self)
}

// stop ends the machine.
func (c *core) stop(reason component.StopReason, detail string) {
	if c.phase == phaseStopped {
		return
	}
	c.phase = phaseStopped
	c.publishStanding(0)
	c.out.Decide("stop", c.self.String(), reason.String(), detail)
	c.out.Publish(component.Stopping{Reason: reason, Detail: detail})
}

func (c *core) publishStanding(until machine.Instant) {
	if until != c.hosting.until {
		c.hosting.until = until
		c.out.Publish(component.Standing{Until: until, Dropped: c.hosting.dropped})
	}
}

// moveStanding says that something has changed from which the moment follows up to which
// this node may host.
func (c *core) moveStanding() { c.hosting.moved = true }

// dropStanding ends hosting on this node for good.
func (c *core) dropStanding() {
	c.hosting.dropped = true
	c.publishStanding(0)
}

// refuse counts and publishes a refusal.
func (c *core) refuse(peer gossip.NodeID, what string, r Refusal, reason string) {
	c.refuseSettings(peer, what, r, reason, nil)
}

// refuseSilently counts a refusal that is expected in the normal course of things, so that
// no event tells of it.
func (c *core) refuseSilently(r Refusal) { c.counts.Refused[r]++ }

func (c *core) refuseSettings(peer gossip.NodeID, what string, r Refusal, reason string, differences []Difference) {
	c.counts.Refused[min(r, RefusalLast)]++
	c.out.Publish(Refused{Peer: peer, What: what, Refusal: r, Reason: reason, Differences: differences})
}

// dismiss tells a node that was downed or removed so, and reports whether it was.
func (c *core) dismiss(from gossip.NodeID) bool {
	status := gossip.StatusNone
	if _, removed := c.state.Removed(from); removed {
		status = gossip.Removed
	} else if member := c.state.Member(from); member != nil && member.Status == gossip.Down {
		status = gossip.Down
	}
	if status == gossip.StatusNone {
		return false
	}
	c.refuseSilently(RefusedNotMember)
	c.out.Send(from, NotMember{Node: from, Status: status, Downed: causeOf(c.state, from)})
	return true
}

// nextCall numbers a call.
func (c *core) nextCall() machine.CallID {
	c.calls++
	return c.calls
}

// margin is for how long a node may host without word of some voter that is not
// down, and for how long after the first voter of the other side cut it off its
// work waits for a new home, where a side without a majority may survive. A node of
// the side that loses may then have contact to a majority, so that the fence does
// not stop it; that it has not heard of the others for so long does. The time is
// that in which either side has come to a decision, unless its strategy is slow:
// until the decision such a side hosts nothing.
//
// The number of members counts only where a node monitors some of them, so that
// the margin is the same on both sides, which may have different numbers.
func (c *core) margin() time.Duration {
	bounds := c.cfg.FailureDetector.Bounds()
	n := max(len(c.state.Members()), c.cfg.FailureDetector.MonitoredByNrOfMembers+1)
	return bounds.MaxSilence - bounds.MinSilence + downing.Spread(n) + c.deps.Downing.Limit + c.cfg.Fence
}

func (c *core) stableAfter() time.Duration {
	bounds := c.cfg.FailureDetector.Bounds()
	return c.deps.Downing.Config.Stable(len(c.state.Members()), bounds.MinSilence, bounds.MaxSilence, c.cfg.Fence)
}

// foundingLimit is how long a founded cluster may lack a winning set of the voters that
// it was founded upon before its nodes end: a race was lost, or voters died.
func (c *core) foundingLimit() time.Duration {
	return c.cfg.FailureDetector.Bounds().MaxSilence + c.stableAfter() + c.cfg.Fence
}
