// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

func TestBuiltInSettingsAreValid(t *testing.T) {
	require.NoError(t, protocol.Default().Validate())
	require.NoError(t, protocol.Fast().Validate())
}

// covers B54: each fault names its field, and all are reported together.
func TestFaultsOfTheConfigurationNameTheirFields(t *testing.T) {
	for field, spoil := range map[string]func(*protocol.Config){
		"failure-detector.threshold":  func(c *protocol.Config) { c.FailureDetector.Threshold = 0 },
		"fence":                       func(c *protocol.Config) { c.Fence = 2249 * time.Millisecond },
		"gossip-interval":             func(c *protocol.Config) { c.GossipInterval = -time.Second },
		"gossip-interval-unconverged": func(c *protocol.Config) { c.GossipIntervalUnconverged = 2 * time.Second },
		"push-delay":                  func(c *protocol.Config) { c.PushDelay = 200 * time.Millisecond },
		"push-interval":               func(c *protocol.Config) { c.PushInterval = 2 * time.Second },
		"push-fanout":                 func(c *protocol.Config) { c.PushFanout = 17 },
		"join-interval-max":           func(c *protocol.Config) { c.JoinIntervalMax = time.Millisecond },
		"shutdown-after-unsuccessful-join-seed-nodes": func(c *protocol.Config) { c.ShutdownAfterUnsuccessfulJoin = -1 },
		"min-nr-of-members":                           func(c *protocol.Config) { c.MinNrOfMembers = 0 },
		"min-nr-of-members-of-role.web":               func(c *protocol.Config) { c.MinNrOfMembersOfRole = map[string]int{"web": 0} },
		"leave-timeout":                               func(c *protocol.Config) { c.LeaveTimeout = 10000 * time.Hour },
		"prune-gossip-tombstones-after":               func(c *protocol.Config) { c.PruneTombstonesAfter = time.Minute },
	} {
		c := protocol.Default()
		spoil(&c)
		err := c.Validate()
		require.Error(t, err, field)
		var named interface{ Field() string }
		require.ErrorAs(t, err, &named, field)
		require.Contains(t, err.Error(), field+": ")
	}
	c := protocol.Default()
	c.PushFanout, c.MinNrOfMembers = 0, 0
	require.ErrorContains(t, c.Validate(), "push-fanout")
	require.ErrorContains(t, c.Validate(), "min-nr-of-members")

	c = protocol.Default()
	c.Fence = 2250 * time.Millisecond
	require.NoError(t, c.Validate())
	c.Fence--
	require.ErrorContains(t, c.Validate(), "fence: 2.249999999s is below 2.25s, 2.25 times failure-detector.heartbeat-interval: "+
		"a node would lose its standing by one lost message; use at least 2.25s, or a shorter heartbeat interval")
}

// A fence longer than stable-after would let a side be replaced while it hosts.
func TestFenceMustNotBeLongerThanStableAfter(t *testing.T) {
	cfg := protocol.Default()
	factory, err := fd.NewFactory(cfg.FailureDetector)
	require.NoError(t, err)
	deps := protocol.Dependencies{Rand: rand.New(rand.NewPCG(1, 1)), Detector: factory, Downing: protocol.Downing{Config: downing.Default()}}
	self := gossip.Member{Node: gossip.NodeID{Address: address(1), UID: 1}}
	_, err = protocol.New(cfg, self, deps)
	require.NoError(t, err)
	deps.Downing.Config.StableAfter = downing.AutoDuration(2 * time.Second)
	_, err = protocol.New(cfg, self, deps)
	require.ErrorContains(t, err, "stable-after")
	_, err = protocol.New(cfg, gossip.Member{}, protocol.Dependencies{Downing: protocol.Downing{Config: downing.Default()}})
	require.ErrorContains(t, err, "no identity")
	require.ErrorContains(t, err, "Rand and Detector")
}
