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

// The core comes first, with the standing that was published and the phases of a node.
// What any part may do follows: change the state, end the node, refuse, tell a node that
// it is no member. The times that follow from the configuration are last.

// core is what the parts of a [Machine] share. Each part holds a pointer to the same
// core, and everything else that it needs in fields of its own.
type core struct {
	cfg  Config
	deps Dependencies

	// self is the identity of this node, me the member that it describes itself as when
	// it joins.
	self gossip.NodeID
	me   gossip.Member

	// settings are the settings that a join compares, except the seed nodes and the
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

	// settled is the last state whose consequences all parts were told.
	settled *gossip.State

	// kept is the record on the disk, or in the process if there is no disk. Only the
	// part memory writes it.
	kept Record

	surveyed survey
	hosting  hosting

	counts Counts

	// calls is the number of the last call, so that each gets another one.
	calls machine.CallID
}

// hosting is the standing of this node as it was published.
type hosting struct {
	// until is the moment up to which this node may host; zero: it may not.
	until machine.Instant

	// moved says that until must be computed again: something that it follows from has
	// changed.
	moved bool

	// dropped says that this node will never host anything again.
	dropped bool
}

type phase uint8

const (
	phaseIdle    phase = iota // Not asked to join yet.
	phaseJoining              // Looking for a cluster.
	phaseMember               // In a cluster, from joining to exiting.
	phaseStopped              // Said Stopping; nothing happens any more.
)

// newCore returns the core of a node that is in no cluster. The part strategies sets the
// digest of the loaded strategies.
func newCore(cfg Config, self gossip.Member, deps Dependencies) *core {
	c := &core{cfg: cfg, deps: deps, self: self.Node, me: self, kept: deps.Record, state: gossip.New(gossip.ClusterID{})}
	c.settled = c.state
	c.settings = sortedSettings(slices.Concat(cfg.settings(), downingSettings(deps.Downing), deps.Settings))
	c.me.Status, c.me.UpNumber, c.me.Data = gossip.Joining, 0, deps.Record.Data
	c.me.Settings = settingsDigest(c.settings)
	return c
}

// edit changes the state in the name of this node.
func (c *core) edit(change func(*gossip.Edit)) {
	c.state = c.markSeen(c.state.Edit(c.self, change))
}

// markSeen marks a state that this node has adopted as seen by it, once the state's
// voters are in its record: other members rely on this node to remember, even after a
// restart, the voters that it has seen. Until then the mark is taken off.
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

// moveStanding says that the moment up to which this node may host must be computed
// again.
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

// refuseSilently counts a refusal that is part of normal operation, without an event.
func (c *core) refuseSilently(r Refusal) { c.counts.Refused[r]++ }

func (c *core) refuseSettings(peer gossip.NodeID, what string, r Refusal, reason string, differences []Difference) {
	c.counts.Refused[min(r, RefusalLast)]++
	c.out.Publish(Refused{Peer: peer, What: what, Refusal: r, Reason: reason, Differences: differences})
}

// dismiss tells a node that it was downed or removed, and reports whether it was.
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

// nextCall returns the number of the next call.
func (c *core) nextCall() machine.CallID {
	c.calls++
	return c.calls
}

// margin is how long, where a side without a majority may survive, a node may host
// without word of some voter that is not down; and how long the work of a node on the
// losing side waits for a new home after the first voter of the other side cut the node
// off. A node of the losing side may be in contact with a majority, so that the fence
// does not stop it; the margin does, since the node has not heard the winning side for so
// long. In this time either side comes to a decision, unless its strategy is slow: such a
// side hosts nothing until the decision.
//
// It takes the spread of news among as many members as one node monitors, or among any
// number: never the number that this node knows, since the two sides may know different
// numbers.
func (c *core) margin() time.Duration {
	return c.marginAmong(c.cfg.FailureDetector.MonitoredByNrOfMembers + 1)
}

// marginOfMany is the margin in a cluster in which proofs are lent. Who has another's word
// for having heard all voters gets it up to an interval later.
func (c *core) marginOfMany() time.Duration {
	return c.marginAmong(gossip.MaxMembers) + c.cfg.FailureDetector.HeartbeatInterval
}

func (c *core) marginAmong(members int) time.Duration {
	bounds := c.cfg.FailureDetector.Bounds()
	return bounds.MaxSilence - bounds.MinSilence + downing.Spread(members) + c.deps.Downing.Limit + c.cfg.Fence
}

// undecidedMargin is the margin by what this node knows of the voters.
func (c *core) undecidedMargin() time.Duration {
	if c.hasManyVoters() {
		return c.marginOfMany()
	}
	return c.margin()
}

func (c *core) stableAfter() time.Duration {
	bounds := c.cfg.FailureDetector.Bounds()
	return c.deps.Downing.Config.Stable(len(c.state.Members()), bounds.MinSilence, bounds.MaxSilence, c.cfg.Fence)
}

// foundingLimit is how long a founded cluster may lack a winning set of the voters upon
// which it was founded. After that its nodes end: they lost a race, or voters died.
func (c *core) foundingLimit() time.Duration {
	return c.cfg.FailureDetector.Bounds().MaxSilence + c.stableAfter() + c.cfg.Fence
}
