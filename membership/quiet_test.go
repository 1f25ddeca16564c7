// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node of a quiet cluster sends each peer one frame a second, its heartbeat, and answers
// that of the peer with the receipt. Beside these there is a round of gossip a second.
func TestAQuietNodeSendsOneFrameASecondToEachPeer(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		const peers, seconds = 2, 20
		n := p.cluster(peers + 1)[0]
		<-time.After(5 * time.Second) // Until all that joining led to has been said.
		before := n.Stats().Transport
		<-time.After(seconds * time.Second)
		after := n.Stats().Transport
		require.InDelta(t, peers*seconds, after.Answers-before.Answers, peers)
		require.LessOrEqual(t, after.FramesSent-before.FramesSent, uint64((peers+1)*(seconds+1)))
	})
}
