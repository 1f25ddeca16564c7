// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/fd"
)

// compareSettings returns the differences between the settings of a member and those of a
// node that wants to join, by class, sorted by key. A setting that only one side has
// differs from the absent value: a node of another version must not join with a rule that
// the others do not follow. If the two sides class a setting differently, the stricter
// class counts.
func compareSettings(member, joiner []Setting) (must, should []Difference) {
	note := func(class SettingClass, d Difference) {
		if class == MustEqual {
			must = append(must, d)
		} else {
			should = append(should, d)
		}
	}
	member, joiner = sortedSettings(member), sortedSettings(joiner)
	for len(member) > 0 || len(joiner) > 0 {
		switch {
		case len(joiner) == 0 || len(member) > 0 && member[0].Key < joiner[0].Key:
			note(member[0].Class, Difference{Key: member[0].Key, Member: member[0].Value})
			member = member[1:]
		case len(member) == 0 || joiner[0].Key < member[0].Key:
			note(joiner[0].Class, Difference{Key: joiner[0].Key, Joiner: joiner[0].Value})
			joiner = joiner[1:]
		default:
			if member[0].Value != joiner[0].Value {
				note(stricter(member[0].Class, joiner[0].Class), Difference{member[0].Key, member[0].Value, joiner[0].Value})
			}
			member, joiner = member[1:], joiner[1:]
		}
	}
	return must, should
}

func stricter(a, b SettingClass) SettingClass {
	if a == MustEqual || b == MustEqual {
		return MustEqual
	}
	return ShouldEqual
}

func sortedSettings(settings []Setting) []Setting {
	return slices.SortedStableFunc(slices.Values(settings), func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
}

// settings returns the settings of this configuration that a join compares.
func (c Config) settings() []Setting {
	must := func(key string, value time.Duration) Setting { return Setting{key, value.String(), MustEqual} }
	should := func(key string, value time.Duration) Setting { return Setting{key, value.String(), ShouldEqual} }
	f := c.FailureDetector
	settings := []Setting{
		must("membership.fence", c.Fence),
		must("membership.failure-detector.acceptable-heartbeat-pause", f.AcceptableHeartbeatPause),
		must("membership.failure-detector.max-silence", f.MaxSilence),
		must("membership.failure-detector.heartbeat-interval", f.HeartbeatInterval),
		{"membership.failure-detector.strategy", f.Strategy, ShouldEqual},
		should("membership.gossip-interval", c.GossipInterval),
		should("membership.allow-weakly-up-members", c.AllowWeaklyUpMembers),
		should("membership.prune-gossip-tombstones-after", c.PruneTombstonesAfter),
	}
	if c.Voters.Role != "" { // A node without the setting differs from a node with it.
		settings = append(settings, Setting{"membership.voters.role", c.Voters.Role, MustEqual})
	}
	if n := f.MonitoredByNrOfMembers; n != fd.Default().MonitoredByNrOfMembers { // It says when proofs are lent, and who is denied.
		settings = append(settings, Setting{"membership.failure-detector.monitored-by-nr-of-members", strconv.Itoa(n), MustEqual})
	}
	return settings
}
