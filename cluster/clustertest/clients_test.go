// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"context"
	"io"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster/clustertest"
)

// A gateway listens in memory, and no more when its node has ended. What clients do with it is a part of the worlds of
// whole nodes.
func TestGatewaysListenInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const address = "127.0.0.1:7947"
		c := clustertest.Start(t, 1)
		_, err := c.DialClient(context.Background(), address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		n := c.Add(clustertest.WithConfig("gateway: {address: " + address + ", kinds: [echo]}"))
		c.AwaitConverged()
		conn, err := c.DialClient(context.Background(), address)
		require.NoError(t, err)
		require.Equal(t, address, conn.RemoteAddr().String())
		_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		require.NoError(t, err)
		head := make([]byte, 9)
		_, err = io.ReadFull(conn, head)
		require.NoError(t, err)
		require.EqualValues(t, 4, head[3], "its settings")
		require.NoError(t, conn.Close()) // Of who does not go when the gateway ends, its end waits for gRPC, on a mutex.
		c.Kill(n)
		_, err = c.DialClient(context.Background(), address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}
