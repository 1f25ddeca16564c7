// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
)

// strangersBytes is what all strangers together may cost a node, at all of its doors.
const strangersBytes = 64 << 20

// doorway is where strangers knock: how many connections they make, and what they say on each.
type doorway struct {
	address     string
	connections int
	says        string
}

// beginning is a frame of HTTP/2 of which the last bytes do not come, behind the preface.
func beginning() string {
	const size, settings, data = 16 << 10, 4, 0
	frame := func(n int, kind byte, stream uint32) []byte {
		head := append([]byte{byte(n >> 16), byte(n >> 8), byte(n)}, kind, 0)
		return binary.BigEndian.AppendUint32(head, stream)
	}
	return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + string(frame(0, settings, 0)) + string(frame(size, data, 1)) + strings.Repeat("x", size-8)
}

// knock makes the connections of a door, from four addresses, and says on each what it says; then it makes them anew,
// until the context ends. It tells how often each has said it, and lets go of the connections of a round when those of
// the next one are open. One goroutine does all that, so that little of the memory is its own.
func (d doorway) knock(ctx context.Context, rounds *atomic.Int64) {
	open := make([]net.Conn, d.connections)
	for ctx.Err() == nil {
		for i := range open {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%4))}}
			c, err := dialer.DialContext(ctx, "tcp", d.address)
			if err != nil {
				continue
			}
			_, _ = io.WriteString(c, d.says)
			if open[i] != nil {
				_ = open[i].Close()
			}
			open[i] = c
		}
		rounds.Add(1)
	}
	for _, c := range open {
		if c != nil {
			_ = c.Close()
		}
	}
}

// heapNow is how many bytes of memory are in use.
func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// Strangers that fill all doors of a node at once, with as much as each takes, cost it no more than the page about
// security says. The count has their own ends of the connections in it.
func TestStrangersAtAllDoorsCostANodeLittle(t *testing.T) {
	gateway, management, health := free(t), free(t), free(t)
	path, self := lone(t, `gateway: {address: "`+gateway+`", kinds: ["*"]}`, `management: {address: "`+management+`", health: {address: "`+health+`"}}`)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	require.NoError(t, node.AwaitUp(patience.Context(t)))
	head := "GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 15<<10)
	doors := []doorway{
		{self, 600, beginning()},
		{gateway, 600, beginning()},
		{management, 800, head},
		{health, 800, head},
	}
	all := knocked(t, doors...)
	t.Logf("strangers at all doors cost %d MiB at most", all>>20)
	require.Less(t, all, int64(strangersBytes))
}

// knocked returns how much memory is in use at most while strangers are at some doors, until they have been there
// twice.
func knocked(t *testing.T, doors ...doorway) (most int64) {
	t.Helper()
	before := heapNow()
	ctx, cancel := context.WithCancel(t.Context())
	rounds := make([]atomic.Int64, len(doors))
	var all sync.WaitGroup
	for i, d := range doors {
		all.Go(func() { d.knock(ctx, &rounds[i]) })
	}
	over := func() bool {
		for i := range rounds {
			if rounds[i].Load() < 2 {
				return false
			}
		}
		return true
	}
	for !over() {
		most = max(most, heapNow()-before)
	}
	cancel()
	all.Wait()
	return most
}
