// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Each change is one line at level info that names the member by its full identity, with
// the reason if this node has decided it, which stays on the line whatever it contains.
func TestEachChangeIsOneLine(t *testing.T) {
	id := visitor(9)
	member := func(s gossip.Status) *gossip.Member { return &gossip.Member{Node: id, Status: s, UpNumber: 7} }
	changed := func(from, to gossip.Status) Event { return MemberChanged{Member: member(to), Previous: from} }
	const who = "10.0.0.9:7946"
	for _, c := range []struct {
		event   Event
		verdict string // With which this node has decided it.
		want    string
	}{
		{changed(gossip.StatusNone, gossip.Joining), "admitted", `"member ` + who + ` joins" member=` + who + `#9 roles=[] zone="" app-version="" reason="one; two"`},
		{changed(gossip.Joining, gossip.WeaklyUp), "weakly-up", `"member ` + who + ` is weakly up" member=` + who + `#9 reason="one; two"`},
		{changed(gossip.Joining, gossip.Up), "up", `"member ` + who + ` is up" member=` + who + `#9 up-number=7 reason="one; two"`},
		{changed(gossip.Up, gossip.Leaving), "leaving", `"member ` + who + ` leaves" member=` + who + `#9 reason="one; two"`},
		{changed(gossip.Up, gossip.Down), "down", `"member ` + who + ` is declared down" member=` + who + `#9 reason="one; two"`},
		{MemberRemoved{Member: member(gossip.Down), Previous: gossip.Down}, "removed", `"member ` + who + ` was removed after it had been declared down" member=` + who + `#9 previous=down reason="one; two"`},
		{MemberRemoved{Member: member(gossip.Exiting), Previous: gossip.Exiting}, "removed", `"member ` + who + ` was removed after it had left" member=` + who + `#9 previous=exiting reason="one; two"`},
		{ReachabilityChanged{Member: member(gossip.Up)}, "unreachable", `"member ` + who + ` is unreachable" member=` + who + `#9 reason="one; two"`},
		{ReachabilityChanged{Member: member(gossip.Up), Reachable: true}, "reachable", `"member ` + who + ` is reachable again" member=` + who + `#9 reason="one; two"`},
		{LeaderChanged{Leader: id}, "", `"` + who + ` leads the cluster now" member=` + who + `#9`},
		{LeaderChanged{}, "", `"nobody leads the cluster now"`},
	} {
		var log bytes.Buffer
		j := journal{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))}
		if c.verdict != "" {
			j.kept = []machine.Decide{{Topic: "leader", Subject: id.String(), Verdict: c.verdict, Reason: "one\ntwo"}}
		}
		j.event(c.event)
		require.Equal(t, "level=INFO msg="+c.want+"\n", log.String())
		require.Empty(t, j.kept, "it is not said a second time")
	}
}

// Decisions that follow from the answers of a strategy come at its pace, and the log does not: it has each reason once
// a minute, a few of many, and none of them waits for an event.
func TestDecisionsThatAreTakenOftenAreLoggedOnceAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		reasons func(i int) string
		most    int
	}{
		"one reason":   {func(int) string { return "the answer is a string" }, 1},
		"two in turn":  {func(i int) string { return [...]string{"this", "that"}[i%2] }, 2},
		"always other": {func(i int) string { return strconv.Itoa(i) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				j := journal{limited: machine.LimitLog(slog.New(slog.NewTextHandler(&log, nil)))}
				for i := range 600 {
					j.decision(ComponentName, machine.Decide{Topic: "reachability", Subject: "judge", Verdict: "away", Reason: c.reasons(i), Often: true})
					require.Empty(t, j.kept)
					pass(time.Second)
				}
				require.Equal(t, 10*c.most, strings.Count(log.String(), "level=INFO"))
			})
		})
	}
}
