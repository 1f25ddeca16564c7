// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The time for which an address is kept out doubles up to the most. Twice the most after
// the end of that time the address starts again from the shortest.
func TestBackOffsDoubleUpToTheMost(t *testing.T) {
	b, now, address := backoffs{}, machine.Instant(time.Minute), nodeAt(1).Address
	_, kept := b.keeps(address, now)
	require.False(t, kept)
	for want := linkBackoffFirst; ; want *= 2 {
		want = min(want, MaxLinkBackoff)
		b.note(address, now)
		wait, kept := b.keeps(address, now+machine.Instant(want)-1)
		require.True(t, kept)
		require.Equal(t, want, wait)
		now += machine.Instant(want)
		_, kept = b.keeps(address, now)
		require.False(t, kept, "the time is over")
		if want == MaxLinkBackoff {
			break
		}
	}
	now += machine.Instant(2 * MaxLinkBackoff)
	b.note(address, now)
	wait, _ := b.keeps(address, now)
	require.Equal(t, MaxLinkBackoff, wait, "it is remembered so long")
	now += machine.Instant(3*MaxLinkBackoff) + 1
	b.note(address, now)
	wait, _ = b.keeps(address, now)
	require.Equal(t, linkBackoffFirst, wait)
}

// However many addresses are downed for their links, a bounded number is remembered: those
// beyond are let in, and those that are known go on to wait longer.
func TestBackOffsAreBounded(t *testing.T) {
	b := backoffs{}
	for i := range maxLinkBackoffs + 1 {
		b.note(nodeAt(i).Address, 0)
	}
	require.Len(t, b, maxLinkBackoffs)
	_, kept := b.keeps(nodeAt(maxLinkBackoffs).Address, 0)
	require.False(t, kept)
	b.note(nodeAt(0).Address, 0)
	wait, kept := b.keeps(nodeAt(0).Address, 0)
	require.True(t, kept)
	require.Equal(t, 2*linkBackoffFirst, wait)
}

// A member refuses a node that was downed for its links, says for how long, and that it may
// ask again; after that time it lets it in. A node that was downed while all reach it, by
// command, is let in at once.
func TestWhoWasDownedForItsLinksIsRefusedForATime(t *testing.T) {
	for name, broken := range map[string]bool{"broken link": true, "command": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4)
			a := newTestAdmission(b)
			before := b.state
			if broken {
				b.by(2, func(e *gossip.Edit) { e.Mark(nodeAt(4), gossip.Unreachable) })
			}
			b.edit(func(e *gossip.Edit) { e.SetStatus(nodeAt(4), gossip.Down, 4) })
			a.noteDowned(before, b.state)
			b.edit(func(e *gossip.Edit) { require.True(t, e.Remove(nodeAt(4), b.now.Wall)) })
			b.allSee()

			again := memberAt(4)
			again.Node.UID = 44
			ask := func(at time.Duration) (refused JoinRefused, dialled int) {
				b.at(at)
				b.answeredBy(at, 2, 3)
				a.receiveJoinRequest(again.Node, JoinRequest{Attempt: 1, Member: again, Settings: a.inquiry.compared(), Claim: a.inquiry.claim()})
				return sentTo[JoinRefused](b)[4], len(effects[Probe](b))
			}
			refused, dialled := ask(time.Minute + linkBackoffFirst - 1)
			if broken {
				require.Equal(t, RefusedLinks, refused.Refusal)
				require.True(t, refused.Retry, "it may ask again")
				require.Contains(t, refused.Reason, "let in again "+linkBackoffFirst.String()+" after that")
				require.Zero(t, dialled)
				refused, dialled = ask(time.Minute + linkBackoffFirst)
			}
			require.Empty(t, refused)
			require.Equal(t, 1, dialled, "it is let in if it answers")
		})
	}
}

// A member whose welcome was lost asks again, and is answered, although others at its address
// were downed for their links meanwhile. A newcomer that was never up is not kept out: nobody's
// work has stopped with it.
func TestMembersAndNewcomersAreNotKeptOut(t *testing.T) {
	b := newBench(t, 3)
	b.answeredBy(time.Minute, 2, 3)
	a := newTestAdmission(b)
	b.joinFourth()
	before := b.state
	b.by(2, func(e *gossip.Edit) { e.Mark(nodeAt(4), gossip.Unreachable) })
	b.edit(func(e *gossip.Edit) { e.SetStatus(nodeAt(4), gossip.Down, 0) })
	a.noteDowned(before, b.state)
	require.Empty(t, a.backoffs)

	a.backoffs.note(nodeAt(3).Address, b.now.Mono)
	request := JoinRequest{Attempt: 1, Member: memberAt(3), Settings: a.inquiry.compared()}
	require.Nil(t, a.keptOut(nodeAt(3), request))
	again := nodeAt(3)
	again.UID = 33
	require.NotNil(t, a.keptOut(again, request))
}
