// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

func lawNode(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "h", Port: uint16(i + 1)}, UID: gossip.UID(i + 1)}
}

func drawVoters(t *rapid.T, label string) []gossip.NodeID {
	var voters []gossip.NodeID
	for i := range 7 {
		if rapid.Bool().Draw(t, label) {
			voters = append(voters, lawNode(i))
		}
	}
	return voters
}

func drawMoments(t *rapid.T, label string) map[gossip.NodeID]machine.Instant {
	moments := map[gossip.NodeID]machine.Instant{}
	for i := range 7 {
		if at := rapid.IntRange(0, 9).Draw(t, label); at > 0 {
			moments[lawNode(i)] = machine.Instant(at)
		}
	}
	return moments
}

// The last win is the latest moment at which the node and those heard since win,
// and no later moment is one.
func TestLastWinIsTheLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := gossip.Base{drawVoters(t, "voters"), drawVoters(t, "previous")}
		contact, self := drawMoments(t, "contact"), lawNode(rapid.IntRange(0, 6).Draw(t, "self"))
		winsAt := func(at machine.Instant) bool {
			return base.Wins(func(n gossip.NodeID) bool {
				c, ok := contact[n]
				return n == self || ok && c >= at
			})
		}
		q, ok := lastWin(self, base, in(contact))
		for at := machine.Instant(1); at <= 10; at++ {
			require.Equal(t, ok && at <= q, winsAt(at), "at %d of %d", at, q)
		}
		require.Equal(t, ok && q == machine.Never, winsAt(machine.Never))
	})
}

// From the start of its end on, a node and those who had not cut it off win in
// no set; before it, in some, unless it is the moment of removal.
func TestStartOfTheEndIsTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := gossip.Base{drawVoters(t, "voters"), drawVoters(t, "previous")}
		cutAt, subject := drawMoments(t, "cut"), lawNode(rapid.IntRange(0, 6).Draw(t, "subject"))
		const now = machine.Instant(10)
		mayStand := func(at machine.Instant) bool {
			for _, voters := range base {
				if gossip.Wins(voters, func(n gossip.NodeID) bool {
					c, ok := cutAt[n]
					return n == subject || !ok || c > at
				}) {
					return true
				}
			}
			return false
		}
		t0 := lastStanding(subject, base, cutAt, now)
		require.LessOrEqual(t, t0, now)
		require.True(t, t0 == now || !mayStand(t0), "t0 %d", t0)
		for c := machine.Instant(1); c < t0; c++ {
			require.True(t, mayStand(c) || t0 == 10 && !mayStand(0), "%d is before %d", c, t0)
		}
	})
}

// Why the fence is safe: whoever wins now, by contacts of which none is with a
// voter that had cut it off before t0 for a heartbeat sent after, has its last
// win before t0.
func TestNoStandingRestsOnVotersThatCutTheNodeOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		voters := drawVoters(t, "voters")
		subject := lawNode(rapid.IntRange(0, 6).Draw(t, "subject"))
		cutAt := drawMoments(t, "cut")
		contact := drawMoments(t, "contact")
		for n, at := range cutAt {
			// A voter answers no heartbeat with standing that was sent after its cut.
			contact[n] = min(contact[n], at-1)
		}
		t0 := lastStanding(subject, gossip.Base{voters}, cutAt, 10)
		if q, ok := lastWin(subject, gossip.Base{voters}, in(contact)); ok && t0 < 10 {
			require.Less(t, q, t0)
		}
	})
}

// The comparison of settings is symmetric, and finds nothing in equal ones.
func TestSettingsAreComparedBothWays(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) []Setting {
		var all []Setting
		for _, key := range []string{"a", "b", "c", "d"} {
			if rapid.Bool().Draw(t, "present") {
				all = append(all, Setting{
					Key: key, Value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value"),
					Class: SettingClass(rapid.IntRange(0, 3).Draw(t, "class")),
				})
			}
		}
		return all
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		must, should := compareSettings(a, b)
		mustBack, shouldBack := compareSettings(b, a)
		require.Len(t, mustBack, len(must))
		require.Len(t, shouldBack, len(should))
		for i := range must {
			require.Equal(t, Difference{must[i].Key, must[i].Joiner, must[i].Member}, mustBack[i])
		}
		must, should = compareSettings(a, a)
		require.Empty(t, must)
		require.Empty(t, should)
	})
}

// in returns the look-up in what was heard.
func in(heard map[gossip.NodeID]machine.Instant) func(gossip.NodeID) (machine.Instant, bool) {
	return func(n gossip.NodeID) (machine.Instant, bool) {
		at, ok := heard[n]
		return at, ok
	}
}
