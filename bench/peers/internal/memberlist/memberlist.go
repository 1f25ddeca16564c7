// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package memberlist measures the membership of github.com/hashicorp/memberlist.
package memberlist

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
)

// Members starts nodes with the defaults for a local network.
func Members(ctx context.Context, s harness.Spec) (nodes actors.Nodes, err error) {
	w := new(wire)
	var all []*memberlist.Memberlist
	nodes.Sent = func() (uint64, error) { return w.sent.Load(), nil }
	nodes.Close = func() {
		for _, n := range all {
			_ = n.Shutdown() // Its cluster ends with the run.
		}
	}
	for i := range s.Nodes {
		n, err := start(w, actors.Name(i))
		if err != nil {
			return nodes, err
		}
		all = append(all, n)
		if _, err := n.Join([]string{all[0].LocalNode().Address()}); err != nil {
			return nodes, err
		}
	}
	_, err = harness.Poll(ctx, 10*time.Millisecond, func(waited time.Duration) (bool, error) {
		if waited > actors.KnownWithin {
			return false, fmt.Errorf("bench: after %v the nodes do not know each other", waited)
		}
		for _, n := range all {
			if n.NumMembers() != len(all) {
				return false, nil
			}
		}
		return true, nil
	})
	return nodes, err
}

// start starts a node on a free port, whose bytes are counted.
func start(w *wire, name string) (*memberlist.Memberlist, error) {
	quiet := log.New(io.Discard, "", 0)
	t, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{"127.0.0.1"}, Logger: quiet})
	if err != nil {
		return nil, err
	}
	cfg := memberlist.DefaultLANConfig()
	cfg.Name, cfg.Logger, cfg.Transport = name, quiet, transport{t, w}
	cfg.BindAddr, cfg.AdvertiseAddr = "127.0.0.1", "127.0.0.1"
	cfg.BindPort, cfg.AdvertisePort = t.GetAutoBindPort(), t.GetAutoBindPort()
	return memberlist.Create(cfg)
}

// The sizes of headers, and what a connection costs besides its data.
const (
	headersUDP = 20 + 8       // Of IPv4 and UDP.
	headersTCP = 20 + 20 + 12 // Of IPv4 and TCP, with the time stamps that Linux adds.
	tearDown   = 4 * headersTCP
)

// wire counts the bytes of all nodes of this process: of each packet when it is sent, and of each connection, both
// ways, at the side that has dialled.
type wire struct{ sent atomic.Uint64 }

// transport is one whose bytes are counted.
type transport struct {
	memberlist.Transport
	wire *wire
}

// WriteTo sends a packet.
func (t transport) WriteTo(b []byte, address string) (time.Time, error) {
	t.wire.sent.Add(uint64(len(b)) + headersUDP)
	return t.Transport.WriteTo(b, address)
}

// DialTimeout opens a connection.
func (t transport) DialTimeout(address string, timeout time.Duration) (net.Conn, error) {
	conn, err := t.Transport.DialTimeout(address, timeout)
	if err != nil {
		return nil, err
	}
	return &dialled{Conn: conn, wire: t.wire}, nil
}

// dialled is a connection that is counted when it is closed.
type dialled struct {
	net.Conn
	wire   *wire
	closed sync.Once
}

// Close closes the connection. What the kernel has sent and received until then is counted, whatever size the writes
// had.
func (d *dialled) Close() error {
	d.closed.Do(func() {
		if sent, received, ok := harness.Exchanged(d.Conn); ok {
			d.wire.sent.Add(sent.Bytes + received.Bytes + tearDown)
		}
	})
	return d.Conn.Close()
}
