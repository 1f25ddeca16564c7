// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// afterCrash crashes nodes of a cluster at once and returns how long it takes until all of
// them are fenced at all others.
func afterCrash(t *testing.T, size int, moment time.Duration, crash ...int) time.Duration {
	t.Helper()
	l := newLoop(t)
	nodes := l.together(size)
	l.until(20*time.Second, func() bool { return l.allUp(size) })
	l.run(4*time.Second + moment)
	var gone []gossip.NodeID
	for _, i := range crash {
		nodes[i].dead = true
		gone = append(gone, nodes[i].id)
	}
	var took time.Duration
	began := l.now
	for _, id := range gone {
		l.untilFenced(30*time.Second, id, gone...)
		took = max(took, l.now-began)
	}
	return took
}

// From the crash of one node until everybody knows that nothing of it can be hosting takes
// less than 9.6 seconds, which leaves 0.4 for new homes, also where proofs are lent, and
// of a relay as of any other. covers I9.
func TestCrashAmongManyIsFencedWithinTenSeconds(t *testing.T) {
	for _, size := range []int{11, 14, 30} {
		worst := time.Duration(0)
		for i := range 3 {
			worst = max(worst, afterCrash(t, size, time.Duration(i)*137*time.Millisecond, []int{0, size - 1, 5}[i]))
		}
		t.Logf("%d nodes: at most %v", size, worst)
		require.Less(t, worst, 9600*time.Millisecond)
	}
}

// Of several nodes that crash at once, relays among them, the last is fenced within 12
// seconds less the time for new homes. covers I9.
func TestSeveralCrashesAmongManyAreFencedWithinTwelveSeconds(t *testing.T) {
	for _, c := range []struct{ several, size int }{{2, 14}, {5, 14}, {3, 30}, {5, 30}} {
		worst := time.Duration(0)
		for k := range 2 {
			var crash []int
			for i := range c.several {
				crash = append(crash, (k*3+i)%c.size)
			}
			worst = max(worst, afterCrash(t, c.size, time.Duration(k)*211*time.Millisecond, crash...))
		}
		t.Logf("%d of %d nodes: at most %v", c.several, c.size, worst)
		require.Less(t, worst, 11600*time.Millisecond)
	}
}

// Two relays are at work. Each sends each member two short messages a second, and everybody
// else what it sends without relays and an answer to each of the two. covers I28.
func TestRelaysSendLittle(t *testing.T) {
	l := newLoop(t)
	l.together(40)
	l.until(20*time.Second, func() bool { return l.allUp(40) })
	l.run(4 * time.Second)
	sent := map[string]map[gossip.NodeID]int{}
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		kind := ""
		switch message.(type) {
		case protocol.AskStanding:
			kind = "ask"
		case protocol.GiveStanding:
			kind = "give"
		case protocol.LendStanding:
			kind = "lend"
		default:
			return false
		}
		if sent[kind] == nil {
			sent[kind] = map[gossip.NodeID]int{}
		}
		sent[kind][from]++
		return false
	}
	l.run(10 * time.Second)
	require.Len(t, sent["ask"], 2)
	require.Len(t, sent["lend"], 2)
	for _, kind := range []string{"ask", "lend"} {
		for _, n := range sent[kind] {
			require.InDelta(t, 390, n, 39, kind)
		}
	}
	for _, n := range sent["give"] {
		require.LessOrEqual(t, n, 20)
	}
	var hosts []bool
	for _, n := range l.nodes {
		hosts = append(hosts, n.hosts())
	}
	require.False(t, slices.Contains(hosts, false))
}
