// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/protocol"
)

// A node that waits tells of each voter since when it has answered what it answers, not
// since when the node itself has been waiting: that is how an operator sees who has
// just come back, and who was there just before.
func TestWhoWaitsTellsSinceWhenAVoterAnswersSo(t *testing.T) {
	w := newTown(t, 5)
	for _, n := range w.settle(5) {
		n.dead = true
	}
	n := w.boot(1)
	said := func(i int) protocol.VoterAnswer {
		t.Helper()
		w.run(6 * time.Second) // The longest time between two lines, and a little.
		for _, v := range lastWaiting(n).Voters {
			if v.Voter.Node.Address == address(i) {
				return v
			}
		}
		require.Fail(t, "no voter", "%d of %v", i, lastWaiting(n).Voters)
		return protocol.VoterAnswer{}
	}
	has := func(i int, answer protocol.VoterSaid, since time.Duration) {
		t.Helper()
		v := said(i)
		require.Equal(t, answer, v.Said)
		require.InDelta(t, w.now-since, v.For, float64(7*time.Second), "the line may be 6 s old, and an answer is heard after 1 s")
	}
	began := w.now
	w.run(time.Minute)
	has(2, protocol.SaidNothing, began)
	delete(w.disks, address(3))
	came := w.now
	back := w.boot(2)
	w.boot(3)
	w.run(time.Minute)
	has(1, protocol.SaidFree, began)
	has(2, protocol.SaidFree, came)
	has(3, protocol.SaidLost, came)
	has(4, protocol.SaidNothing, began)

	went := w.now
	back.dead = true
	w.run(time.Minute)
	has(2, protocol.SaidNothing, went)
	again := w.now
	w.boot(2)
	w.run(time.Minute)
	has(2, protocol.SaidFree, again)
}

// The nodes of a new cluster are not started in one moment. Who is asked for its vote
// before it may give one gives it when it may; else the one that asked would let
// others go first for seconds, at every start.
func TestNodesThatStartOneAfterTheOtherFoundAsSoonAsTheyMay(t *testing.T) {
	for _, apart := range []time.Duration{200 * time.Millisecond, time.Second} {
		w := newTown(t, 3)
		for i := range 3 {
			w.boot(i + 1)
			w.run(apart)
		}
		second := w.now - 2*apart // When the second of two that are needed was started.
		w.until(20*time.Second, func() bool { return w.allUp(3) })
		require.Less(t, w.now-second, w.cfg.Fence+2*time.Second, "%v apart\n%s", apart, w.describe())
		w.requireOneCluster()
	}
}
