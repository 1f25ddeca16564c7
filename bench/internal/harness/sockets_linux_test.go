// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small message each way is a packet each, whose headers have 40 bytes or, with
// timestamps, 52; acknowledgements may add packets without payload.
func TestPacketsAreCountedWithTheirHeaders(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	dialled, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, dialled.Close()) }()
	accepted, err := listener.Accept()
	require.NoError(t, err)
	defer func() { require.NoError(t, accepted.Close()) }()

	before, err := SocketsNow()
	require.NoError(t, err)
	for _, way := range [][2]net.Conn{{dialled, accepted}, {accepted, dialled}} {
		_, err = way[0].Write(make([]byte, 100))
		require.NoError(t, err)
		_, err = io.ReadFull(way[1], make([]byte, 100))
		require.NoError(t, err)
	}
	after, err := SocketsNow()
	require.NoError(t, err)

	sent := after.Since(before)
	require.EqualValues(t, 200, sent.Payload)
	require.EqualValues(t, 2, sent.Data)
	require.GreaterOrEqual(t, sent.Packets, sent.Data)
	header := (sent.Bytes - sent.Payload) / sent.Packets
	require.Contains(t, []uint64{40, 52}, header)
	require.Equal(t, sent.Payload+header*sent.Packets, sent.Bytes)
	out, in, ok := Exchanged(dialled)
	require.True(t, ok)
	require.EqualValues(t, 100, out.Payload)
	require.EqualValues(t, 100, in.Payload)
	require.Equal(t, in.Payload+header*in.Packets, in.Bytes)
}

// A connection that is not of TCP has not exchanged anything that is known.
func TestOtherConnectionsAreNotCounted(t *testing.T) {
	one, other := net.Pipe()
	defer func() { require.NoError(t, one.Close()) }()
	defer func() { require.NoError(t, other.Close()) }()
	_, _, ok := Exchanged(one)
	require.False(t, ok)
}

// A connection that was closed takes nothing away from the others.
func TestAClosedConnectionIsLeftOut(t *testing.T) {
	before := Snapshot{1: {Bytes: 1000, Packets: 10}, 2: {Bytes: 100, Packets: 1}}
	after := Snapshot{2: {Bytes: 160, Packets: 2}, 3: {Bytes: 70, Packets: 1}}
	require.Equal(t, Traffic{Bytes: 130, Packets: 2}, after.Since(before))
}
