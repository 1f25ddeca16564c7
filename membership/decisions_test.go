// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
)

// TestTheDecisionLogKeepsTheLastOfEachKind shows its bound and its order.
func TestTheDecisionLogKeepsTheLastOfEachKind(t *testing.T) {
	var l Decisions
	at := time.Unix(1, 0)
	l.add("membership", at, machine.Decide{Topic: "downing", Subject: "a", Verdict: "down", Reason: "minority"})
	for i := range maxDecisions + 3 {
		l.add("sharding", at, machine.Decide{Topic: "allocation", Subject: strconv.Itoa(i)})
	}
	got := l.Of("allocation")
	require.Len(t, got, maxDecisions)
	require.Equal(t, "3", got[0].Subject)
	require.Equal(t, strconv.Itoa(maxDecisions+2), got[maxDecisions-1].Subject)
	require.Equal(t, []Decision{{At: at, Component: "membership", Topic: "downing", Subject: "a", Verdict: "down", Reason: "minority"}}, l.Of("downing"))
	require.Empty(t, l.Of("none"))
	require.Equal(t, []string{"allocation", "downing"}, l.Topics())
}

// TestWatchersHearOfEachDecision until they stop.
func TestWatchersHearOfEachDecision(t *testing.T) {
	var l Decisions
	var first, second []string
	stop := l.Watch(func(d Decision) { first = append(first, d.Subject) })
	l.add("membership", time.Unix(1, 0), machine.Decide{Topic: "downing", Subject: "a"})
	defer l.Watch(func(d Decision) { second = append(second, d.Subject) })()
	l.add("sharding", time.Unix(1, 0), machine.Decide{Topic: "allocation", Subject: "b"})
	stop()
	stop()
	l.add("membership", time.Unix(1, 0), machine.Decide{Topic: "downing", Subject: "c"})
	require.Equal(t, []string{"a", "b"}, first)
	require.Equal(t, []string{"b", "c"}, second)
}
