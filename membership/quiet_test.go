// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node of a quiet cluster sends each peer one frame a second at most, its heartbeat, and
// answers that of the peer with the receipt.
func TestAQuietNodeSendsOneFrameASecondToEachPeer(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		const peers, seconds = 2, 20
		n := p.cluster(peers + 1)[0]
		<-time.After(5 * time.Second) // Until all that joining led to has been said.
		before := n.Stats().Transport
		<-time.After(seconds * time.Second)
		after := n.Stats().Transport
		require.InDelta(t, peers*seconds, after.Answers-before.Answers, peers)
		require.LessOrEqual(t, after.FramesSent-before.FramesSent, uint64(peers*(seconds+1)))
	})
}

// In a cluster of more voters than one node monitors, two relays ask all members each second: what
// answers them goes with receipts, and no node sends a frame for it.
func TestRelaysAreAnsweredWithReceipts(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		const size, monitored, relays, seconds = 12, 9, 2, 10
		nodes := p.cluster(size)
		<-time.After(5 * time.Second) // Until all that joining led to has been said.
		count := func() (frames, answers uint64) {
			for _, n := range nodes {
				stats := n.Stats().Transport
				frames, answers = frames+stats.FramesSent, answers+stats.Answers
			}
			return frames, answers
		}
		framesBefore, answersBefore := count()
		<-time.After(seconds * time.Second)
		frames, answers := count()
		const beats, asks = size * monitored * seconds, relays * (size - 1) * seconds
		require.LessOrEqual(t, frames-framesBefore, uint64(beats+asks+size))
		require.InDelta(t, beats+2*asks, answers-answersBefore, size*(monitored+relays))
	})
}
