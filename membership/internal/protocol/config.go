// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/fd"

	"github.com/quorate/quorate/config/field"
)

// The settings of an operator come first, then their defaults, then their validation.

// Config holds the settings of membership that an operator may change. The zero
// value is not valid; start from [Default] or [Fast]. Durations are so bounded that sums of instants never overflow.
type Config struct {
	// FailureDetector says how silence is judged. Its acceptable pause is the
	// shortest and its max-silence the longest silence at which a node is marked
	// unreachable.
	FailureDetector fd.Config `koanf:"failure-detector"`

	// Fence is the longest time for which a node hosts without an answer from a
	// winning set of voters, at least 2.25 times the heartbeat interval and at most
	// the stable-after of downing. All nodes must have the same value. Shorter, a
	// short disturbance suspends entities, and with less than the lowest value each
	// lost message does; longer, failover takes longer.
	Fence time.Duration `koanf:"fence" range:"1ms..8760h"`

	// GossipInterval is the time between two rounds of gossip, which repair what pushed
	// news missed, above 0.
	GossipInterval time.Duration `koanf:"gossip-interval" range:"1ms..8760h"`

	// GossipIntervalUnconverged is the time between two rounds of gossip while not every
	// member is known to have seen the state, above 0 and at most GossipInterval.
	GossipIntervalUnconverged time.Duration `koanf:"gossip-interval-unconverged" range:"1ms..8760h"`

	// PushDelay is the time for which news is held back so that further news travels with
	// it, above 0 and at most PushInterval. It is spent at each hop.
	PushDelay time.Duration `koanf:"push-delay" range:"1ms..8760h"`

	// PushInterval is the least time between two pushes of one node, at most
	// GossipInterval. It bounds the traffic of a large change.
	PushInterval time.Duration `koanf:"push-interval" range:"1ms..8760h"`

	// PushFanout is the number of random members to which news is pushed, from 1
	// to 16. More is faster at large sizes and costs traffic.
	PushFanout int `koanf:"push-fanout" unit:"members" range:"1..16"`

	// JoinInterval is the time after which an unanswered question of a joining
	// node is asked again for the first time, above 0. It doubles from question
	// to question, up to JoinIntervalMax.
	JoinInterval time.Duration `koanf:"join-interval" range:"1ms..8760h"`

	// JoinIntervalMax is the longest time between two questions of a joining node, at
	// least JoinInterval.
	JoinIntervalMax time.Duration `koanf:"join-interval-max" range:"1ms..8760h"`

	// RetryUnsuccessfulJoinAfter is the time after which a node that asked one
	// member to let it join asks the seed nodes again, above 0.
	RetryUnsuccessfulJoinAfter time.Duration `koanf:"retry-unsuccessful-join-after" range:"1ms..8760h"`

	// ShutdownAfterUnsuccessfulJoin is the time after which a node that could
	// not join gives up and stops. Zero means never.
	ShutdownAfterUnsuccessfulJoin time.Duration `koanf:"shutdown-after-unsuccessful-join-seed-nodes" range:"0s..8760h"`

	// ProbeTimeout is the time within which a joining node must be dialled back,
	// above 0.
	ProbeTimeout time.Duration `koanf:"probe-timeout" range:"1ms..8760h"`

	// MinNrOfMembers is how many members, of any status, there must be before joining
	// members become up, at least 1. It delays the start of a cluster; it stops nothing
	// when members are lost.
	MinNrOfMembers int `koanf:"min-nr-of-members" unit:"members" range:"1.."`

	// MinNrOfMembersOfRole is how many members with a role there must be before joining
	// members become up, for each role that it names.
	MinNrOfMembersOfRole map[string]int `koanf:"min-nr-of-members-of-role" unit:"members" range:"1.."`

	// Voters says which members vote on the side that survives a partition.
	Voters Voters `koanf:"voters"`

	// AllowWeaklyUpMembers is the time without convergence after which joining
	// members become weakly up. Zero means never.
	AllowWeaklyUpMembers time.Duration `koanf:"allow-weakly-up-members" range:"0s..8760h"`

	// LeaveTimeout is the time that components have to hand their work over when this
	// node leaves, above 0. After that the node stops hosting all the same.
	LeaveTimeout time.Duration `koanf:"leave-timeout" range:"1ms..8760h"`

	// ExitTimeout is how long a leaving node that hosts nothing any more waits to be
	// removed, above 0. After that the node ends, and the others find it gone.
	ExitTimeout time.Duration `koanf:"exit-timeout" range:"1ms..8760h"`

	// DownWhenUnstableAfter is the time after which a provider that lets only majorities
	// survive is asked although the view has not been stable. Time for which the node stood
	// still does not count. Zero means never; otherwise it must be above the stable-after of
	// downing.
	DownWhenUnstableAfter time.Duration `koanf:"down-when-unstable-after" range:"0s..8760h"`

	// PruneTombstonesAfter is the time for which a removed member is remembered, at least
	// an hour. A member that was cut off for longer and comes back with an old state
	// could bring removed members back.
	PruneTombstonesAfter time.Duration `koanf:"prune-gossip-tombstones-after" range:"1h..8760h"`
}

// Default returns the settings for machines in one data center: a node that died
// is replaced within 10 seconds.
func Default() Config {
	return Config{
		FailureDetector:            fd.Default(),
		Fence:                      3 * time.Second,
		GossipInterval:             time.Second,
		GossipIntervalUnconverged:  200 * time.Millisecond,
		PushDelay:                  20 * time.Millisecond,
		PushInterval:               100 * time.Millisecond,
		PushFanout:                 4,
		JoinInterval:               time.Second,
		JoinIntervalMax:            5 * time.Second,
		RetryUnsuccessfulJoinAfter: 10 * time.Second,
		ProbeTimeout:               3 * time.Second,
		MinNrOfMembers:             1,
		AllowWeaklyUpMembers:       7 * time.Second,
		LeaveTimeout:               30 * time.Second,
		ExitTimeout:                10 * time.Second,
		DownWhenUnstableAfter:      20 * time.Second,
		PruneTombstonesAfter:       24 * time.Hour,
	}
}

// Fast returns settings with which a node that died is replaced within about 3
// seconds, for machines and networks without pauses near a second.
func Fast() Config {
	c := Default()
	c.FailureDetector.HeartbeatInterval = 250 * time.Millisecond
	c.FailureDetector.AcceptableHeartbeatPause = 750 * time.Millisecond
	c.FailureDetector.MaxSilence = 1250 * time.Millisecond
	c.FailureDetector.ExpectedResponseAfter = 250 * time.Millisecond
	c.Fence = time.Second
	return c
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Within("failure-detector", c.FailureDetector.Validate()))
	faults.Add(field.Ranges(c))
	least := c.questionGapMax()
	faults.Relate(c.Fence < least, "fence", "failure-detector.heartbeat-interval",
		"%v is below %v, 2.25 times failure-detector.heartbeat-interval: a node would lose its standing by one lost message; use at least %v, or a shorter heartbeat interval",
		c.Fence, least, least)
	faults.Relate(c.GossipIntervalUnconverged > c.GossipInterval, "gossip-interval-unconverged", "gossip-interval",
		"%v is above gossip-interval %v", c.GossipIntervalUnconverged, c.GossipInterval)
	faults.Relate(c.PushDelay > c.PushInterval, "push-delay", "push-interval", "%v is above push-interval %v", c.PushDelay, c.PushInterval)
	faults.Relate(c.PushInterval > c.GossipInterval, "push-interval", "gossip-interval", "%v is above gossip-interval %v", c.PushInterval, c.GossipInterval)
	faults.Relate(c.JoinIntervalMax < c.JoinInterval, "join-interval-max", "join-interval", "%v is below join-interval %v", c.JoinIntervalMax, c.JoinInterval)
	faults.Add(field.Within("voters.role", c.Voters.Validate()))
	return faults.Err()
}

// questionGapMax is the longest time between two questions to a node of which one message is
// lost: a round, one more, and by how much a shared exchange may be late, see [sharedSlack].
func (c Config) questionGapMax() time.Duration {
	return 2*c.FailureDetector.HeartbeatInterval + c.FailureDetector.HeartbeatInterval/sharedSlack
}

func (c Config) rolesWithMinimum() []string {
	roles := make([]string, 0, len(c.MinNrOfMembersOfRole))
	for role := range c.MinNrOfMembersOfRole { //quorate:unordered sorted below
		roles = append(roles, role)
	}
	slices.Sort(roles)
	return roles
}
