// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Bounds are the times within which a cluster must have reacted, computed from its
// settings. Each is the sum of the steps that lead to the reaction, so that a setting
// that makes a step longer makes the bound longer by as much.
type Bounds struct {
	// Accuse is the time from the moment at which a running node can have no answer of
	// another node any more to its unreachable record about that node.
	Accuse time.Duration

	// Decide is the least time from an unreachable record to a decision about it, where
	// the strategy takes all the time that it has.
	Decide time.Duration

	// Remove is the time from an unreachable record to the removal by a side that wins.
	Remove time.Duration

	// Join is the time from the start of a node to the moment at which it is up, where a
	// cluster lets it in.
	Join time.Duration

	// Settle is the time from the end of all faults to a cluster in which every live node
	// is a member that is up, and all members know that.
	Settle time.Duration

	// Waver is the time from an unreachable record about a node that is well, made
	// because a few packets in a row were lost, to the moment at which all know that it
	// was taken back (docs/downing.md, "the next answer takes that back, and all of up to 50 members know that within
	// 7 s of the report").
	Waver time.Duration

	// Answered says that news reaches every member, and its answer all others, within the
	// stability margin. Else a newcomer with one broken link cannot show in time that it lives,
	// is downed for that link, and again each time it is started.
	Answered bool
}

// rateSlack returns the slack for clocks that run at different rates: 2 % and a tick.
func rateSlack(d time.Duration) time.Duration { return d + d/50 + 100*time.Millisecond }

// pushed returns how long news takes to reach every member of a number of nodes by the
// settings of a configuration.
func pushed(c protocol.Config, nodes int) time.Duration {
	return time.Duration(downing.Rounds(nodes, c.PushFanout)) * (c.PushInterval + c.PushDelay)
}

// BoundsOf returns the bounds of a cluster of a number of nodes with a configuration.
// Restart is the longest time until a node that has ended is started again.
func BoundsOf(of Config, nodes int, restart time.Duration) Bounds {
	of = of.filled()
	c, d := of.Config, of.Downing
	silence := c.FailureDetector
	spread := downing.Spread(nodes) + c.GossipInterval + c.PushInterval
	limit := d.Limit
	if limit == 0 && d.Decide == nil {
		limit = protocol.CallLimitDefault
	}
	// A node that has just started waits for a first answer; a node that has slept waits
	// for the others again; a node is marked unreachable at most a heartbeat after it is
	// due.
	accuse := silence.ExpectedResponseAfter + silence.MaxSilence + silence.AcceptableHeartbeatPause + 2*silence.HeartbeatInterval
	// The view becomes stable, the strategy is asked, all see the decision, and the fence
	// passes. A view that does not become stable is decided about in the end.
	stable := max(d.Config.Stable(nodes, silence.AcceptableHeartbeatPause, silence.MaxSilence, c.Fence), c.DownWhenUnstableAfter)
	remove := spread + stable + limit + 2*spread + c.Fence
	// Seed nodes are asked with a back-off; one of them lets the node in or is given up
	// for another, dials it back, and a leader makes it up when all members know it.
	backOff := c.JoinIntervalMax + c.JoinIntervalMax/5
	// A node that could found a cluster waits until its predecessor's answers count no
	// more; the other nodes let the lowest address go first; a lost vote is held.
	found := 2*(c.Fence+limit) + 2*10*c.JoinInterval
	join := found + 2*backOff + 2*c.RetryUnsuccessfulJoinAfter + c.ProbeTimeout + 3*spread
	// A node on a losing side ends, is started again, and waits for its predecessor's
	// removal. A node that leaves has its own time for that.
	settle := accuse + remove + d.Config.DownOwnSideAfter + c.LeaveTimeout + c.ExitTimeout + restart + accuse + remove + join
	// One of the next two heartbeats is answered; then all have to see the unreachable
	// record, that it was taken back, and that all have seen that.
	waver := 2*silence.HeartbeatInterval + 3*spread
	margin := d.Config.Stable(nodes, silence.AcceptableHeartbeatPause, silence.MaxSilence, c.Fence)
	return Bounds{
		Decide:   d.Config.Stable(1, silence.AcceptableHeartbeatPause, silence.MaxSilence, c.Fence) + limit,
		Answered: 2*pushed(c, nodes) <= margin,
		Accuse:   rateSlack(accuse), Remove: rateSlack(remove), Join: rateSlack(join), Settle: rateSlack(settle), Waver: rateSlack(waver),
	}
}
