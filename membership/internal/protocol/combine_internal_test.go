// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// Two strategies that need no majority decide beside each other while one replaces the other.
// Each keeps a side of nine, and may part with another end of a broken link in it:
// none of them has judged what is left then, and another such rest could exist elsewhere.
//
// covers F14, I1, I2.
func TestWhatTwoStrategiesLeaveNeedsAMajority(t *testing.T) {
	members := downingtest.Members(9)
	voters := downingtest.IDs(members)
	on := func(n int) func(gossip.NodeID) bool {
		return func(id gossip.NodeID) bool { return id.UID < downingtest.Node(n).UID }
	}
	keep := func(n int, and ...gossip.NodeID) downing.Decision {
		var down []gossip.NodeID
		for _, id := range voters {
			if !on(n)(id) {
				down = append(down, id)
			}
		}
		return downing.Decision{Verdict: downing.KeepSide, Down: slices.Concat(and, down), Reason: "kept"}
	}
	for name, c := range map[string]struct {
		side  int
		first []gossip.NodeID
		then  []gossip.NodeID
		want  downing.Verdict
	}{
		"a minority, with one rest":       {4, voters[1:2], voters[1:2], downing.KeepSide},
		"a minority, with another rest":   {4, voters[1:2], voters[2:3], downing.DownSide},
		"one parts with one, one not":     {4, voters[1:2], nil, downing.DownSide},
		"a majority, with another rest":   {8, voters[1:2], voters[2:3], downing.KeepSide},
		"no majority of it, too few left": {6, voters[1:2], voters[2:3], downing.DownSide},
	} {
		t.Run(name, func(t *testing.T) {
			v := downingtest.SplitView(members, on(c.side), gossip.Base{voters})
			d := new(resolver).combine(v, []downing.Decision{keep(c.side, c.first...), keep(c.side, c.then...)})
			require.Equal(t, c.want, d.Verdict, d.Reason)
		})
	}
}
