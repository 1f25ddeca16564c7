// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Bounds are the times within which a cluster must have done something, worked out
// from its settings. Each is the sum of the steps that lead there, so that a setting
// that makes a step longer makes the bound longer, and of nothing else.
type Bounds struct {
	// Accuse is from the moment at which a node can have no answer of another any
	// more, and runs, to its accusation.
	Accuse time.Duration

	// Remove is from the accusation to the removal by a side that wins.
	Remove time.Duration

	// Join is from the start of a node to the moment at which it is up, where a
	// cluster lets it in.
	Join time.Duration

	// Settle is from the moment at which nothing is wrong any more to a cluster
	// of which all who live are members that are up, and of which all know that.
	Settle time.Duration

	// Waver is from an accusation of a node that is well, because a few packets were
	// lost in a row, to the moment at which all know that it was taken back.
	Waver time.Duration
}

// rateSlack is what clocks that run at different rates may add: 2 % and a tick.
func rateSlack(d time.Duration) time.Duration { return d + d/50 + 100*time.Millisecond }

// BoundsOf returns the bounds of a cluster of so many nodes of a configuration. Restart
// is the longest time after which a node that has ended is started again.
func BoundsOf(of Config, nodes int, restart time.Duration) Bounds {
	of = of.filled()
	c, d := of.Config, of.Downing
	silence := c.FailureDetector
	spread := downing.Spread(nodes) + c.GossipInterval + c.PushInterval
	limit := d.Limit
	if limit == 0 && d.Decide == nil {
		limit = protocol.CallLimitDefault
	}
	// A node that has just come waits for a first answer; one that has slept gives
	// the others a fresh chance; a verdict turns at most a heartbeat after its
	// moment.
	accuse := silence.ExpectedResponseAfter + silence.MaxSilence + silence.AcceptableHeartbeatPause + 2*silence.HeartbeatInterval
	// The view is stable, the strategy is asked, all see the verdict, and then the
	// fence passes. A view that is not stable is decided about in the end.
	stable := max(d.Config.Stable(nodes, silence.AcceptableHeartbeatPause, silence.MaxSilence, c.Fence), c.DownWhenUnstableAfter)
	remove := spread + stable + limit + 2*spread + c.Fence
	// Seeds are asked with a back-off, one lets the node in or is given up for
	// another, dials it back, and a leader makes it up when all know it.
	backOff := c.JoinIntervalMax + c.JoinIntervalMax/5
	// Who could found a cluster waits until its predecessor's answers are worth
	// nothing, others let the lowest go first, and a vote that was lost is held.
	found := 2*(c.Fence+limit) + 2*10*c.JoinInterval
	join := found + 2*backOff + 2*c.RetryUnsuccessfulJoinAfter + c.ProbeTimeout + 3*spread
	// Who was on a losing side ends, is started, and waits for its predecessor's
	// removal; who leaves has its time to.
	settle := accuse + remove + d.Config.DownOwnSideAfter + c.LeaveTimeout + c.ExitTimeout + restart + accuse + remove + join
	// The next heartbeat is answered, or the one after the next; then all have to see
	// the accusation, that it was taken back, and that all have seen that.
	waver := 2*silence.HeartbeatInterval + 3*spread
	return Bounds{
		Accuse: rateSlack(accuse), Remove: rateSlack(remove), Join: rateSlack(join), Settle: rateSlack(settle), Waver: rateSlack(waver),
	}
}
