// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// A writer waits for what others are about to append only when there is little to write
// and several senders have been at work lately: one that sends a message and waits for the
// answer is not held up.
func TestOneSenderIsNotHeldUpForOthers(t *testing.T) {
	var q queue
	q.init(&Endpoint{cfg: transport.Default()}, machine.LaneMessage)
	send := func(messages, size int) {
		for range messages {
			_, err := q.append(7, func(b []byte) []byte { return append(b, make([]byte, size)...) })
			require.NoError(t, err)
		}
	}
	write := func() { q.take().Free() }
	for range 3 {
		send(1, 8)
		require.False(t, q.scanty())
		write()
	}
	require.False(t, q.scanty(), "there is nothing to write")
	send(2, 8)
	write()
	for range severalFrames {
		send(1, 8)
		require.True(t, q.scanty())
		write()
	}
	send(1, 8)
	require.False(t, q.scanty(), "the others have gone")
	send(1, 8)
	write()
	require.False(t, q.scanty(), "there is nothing to write")
	send(1, scantBytes)
	require.False(t, q.scanty(), "there is enough to write")
}
