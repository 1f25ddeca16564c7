// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rpc "google.golang.org/grpc"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/transporttest"
	"github.com/quorate/quorate/transport/transporttest/strangertest"
)

// Strangers at the door of a node, over real connections: bytes that mean nothing,
// compression, callers that are silent, too many connections of one host. Then a process
// runs out of descriptors, and faults of a configuration are reported.

// hostile is a stranger at an address of no node.
var hostile = strangertest.Stranger{ID: gossip.NodeID{Address: gossip.Address{Host: "127.0.0.9", Port: 9}, UID: 9}, Cluster: "bank"}

// untilEnd reads answers until the stream ends, and returns the refusal.
func untilEnd(t *testing.T, s strangertest.Stream) *transport.RefusedError {
	t.Helper()
	var refusal *transport.RefusedError
	for {
		var b []byte
		if err := s.RecvMsg(&b); err != nil {
			return refusal
		}
		answer, err := wire.ParseDownstream(b)
		require.NoError(t, err)
		if answer.Refusal != nil {
			refusal = answer.Refusal
		}
	}
}

// covers B1, B2, B3, B4, B5, B6, B7, B8, B10, B28, B29.
func TestBytesThatMeanNothingEndTheConnectionAndAreCounted(t *testing.T) {
	t.Parallel()
	strange(t, sayNothingThatHasAMeaning)
}

// strange runs a test with a function that opens a stranger's stream, once for each wire, both at the same time.
func strange(t *testing.T, f func(t *testing.T, open func(gossip.Address) strangertest.Stream)) {
	t.Helper()
	t.Run("gRPC", func(t *testing.T) {
		t.Parallel()
		f(t, func(to gossip.Address) strangertest.Stream { return strangertest.Open(t, to) })
	})
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		f(t, func(to gossip.Address) strangertest.Stream { return strangertest.OpenLane(t, to) })
	})
}

func sayNothingThatHasAMeaning(t *testing.T, open func(gossip.Address) strangertest.Stream) {
	t.Helper()
	number := func(n uint64, payload string) []byte {
		return strangertest.Frame(n, 7, []byte("12345678"+payload))
	}
	n := newNetwork(false)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil)
	hello := strangertest.Bytes(hostile.Hello(b.Self()))
	tests := map[string][][]byte{
		"an empty first message":    {{}},
		"a frame first":             {number(1, "")},
		"garbage":                   {{0xff, 0xff, 0xff}},
		"a truncated hello":         {hello[:len(hello)-3]},
		"an empty frame":            {hello, {}},
		"a frame with a tail":       {hello, append(number(1, ""), 0)},
		"a gap":                     {hello, number(2, "")},
		"a hello in between":        {hello, hello},
		"a message above the limit": {hello, number(1, string(make([]byte, transporttest.Config().MaxFrameBytes)))},
	}
	counted := uint64(0)
	for name, messages := range tests {
		s := open(b.Self().Address)
		if len(messages) > 1 { // What follows a hello follows its answer: before that the gate too ends a connection that says much.
			require.NoError(t, s.SendMsg(messages[0]), name)
			var answer []byte
			require.NoError(t, s.RecvMsg(&answer), name)
			messages = messages[1:]
		}
		sent := make(chan struct{})
		go func() { // Owner: the test, which waits below. A large message is not read to its end.
			defer close(sent)
			for _, m := range messages {
				_ = s.SendMsg(m)
			}
		}()
		refusal := untilEnd(t, s)
		<-sent
		counted++
		_, streamed := s.(rpc.ClientStream)
		if !streamed || len(messages[len(messages)-1]) < transporttest.Config().MaxFrameBytes { // gRPC itself ends the stream of a larger one.
			require.NotNil(t, refusal, name)
			require.Equal(t, transport.ReasonMalformed, refusal.Reason, name)
			require.NotEmpty(t, refusal.Detail, name)
		}
		b.Until(t, name+" is counted", func() bool {
			return b.Counters().RefusedInbound[transport.ReasonMalformed] == counted
		})
	}
	require.Zero(t, b.Counters().Received)

	// The node still serves others.
	a := transporttest.Start(t, n, transporttest.Spec{}, nil)
	transporttest.Send(t, a.Lane(b.Self(), machine.LaneControl), 0)
	b.UntilReceived(t, 1)
}

// covers B9, B10: a compressed message has no decompressor to go to.
func TestCompressionIsNotAccepted(t *testing.T) {
	b := transporttest.Start(t, newNetwork(false), transporttest.Spec{UID: 2}, nil)
	conn, err := net.Dial("tcp", b.Self().Address.String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	s := strangertest.Open(t, b.Self().Address, rpc.UseCompressor("identity"))
	require.NoError(t, s.SendMsg(strangertest.Bytes(hostile.Hello(b.Self()))))
	require.NoError(t, s.CloseSend())
	require.Nil(t, untilEnd(t, s))
}

// The connection of a caller that sends nothing is closed.
func TestASilentCallerIsClosed(t *testing.T) {
	t.Parallel()
	cfg := transporttest.Config()
	cfg.HandshakeTimeout = 200 * time.Millisecond
	b := transporttest.Start(t, newNetwork(false), transporttest.Spec{UID: 2, Config: cfg}, nil)
	s := strangertest.Open(t, b.Self().Address)
	require.Nil(t, untilEnd(t, s))
	require.Zero(t, b.Counters().Accepts)

	conn, err := net.Dial("tcp", b.Self().Address.String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	patience.Bound(t, conn)
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "closed in time")
}

// One host has a bounded number of connections, completed ones included. Connections
// above the bound are refused, counted and noticed; a connection that ends makes room.
//
// covers I36.
func TestOneHostHasABoundedNumberOfConnections(t *testing.T) {
	t.Parallel()
	strange(t, fillUp)
}

func fillUp(t *testing.T, opener func(gossip.Address) strangertest.Stream) {
	t.Helper()
	cfg := transporttest.Config()
	cfg.HostConnections = 3
	b := transporttest.Start(t, newNetwork(false), transporttest.Spec{UID: 2, Config: cfg}, nil)
	open := func(i int) (strangertest.Stream, error) {
		s := opener(b.Self().Address)
		hello := hostile.Hello(b.Self())
		hello.From.UID += gossip.UID(i)
		if err := s.SendMsg(strangertest.Bytes(hello)); err != nil {
			return s, err
		}
		var answer []byte
		return s, s.RecvMsg(&answer)
	}
	var streams []strangertest.Stream
	for i := range cfg.HostConnections {
		s, err := open(i)
		require.NoError(t, err)
		streams = append(streams, s)
	}
	b.Until(t, "all are complete", func() bool { return b.Counters().Accepts == uint64(cfg.HostConnections) })
	conn, err := net.Dial("tcp", b.Self().Address.String())
	require.NoError(t, err)
	patience.Bound(t, conn)
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "closed before a byte is read from it")
	require.NoError(t, conn.Close())
	refused := transporttest.UntilNotice(t, b, func(n transport.Refused) bool { return n.Inbound })
	require.Equal(t, transport.ReasonConnections, refused.Err.Reason)
	require.Contains(t, refused.Err.Detail, "transport.host-connections")
	require.Equal(t, uint64(1), b.Counters().RefusedInbound[transport.ReasonConnections])
	require.NoError(t, streams[0].SendMsg([]byte{0xff})) // These bytes end the connection of the stream.
	_ = untilEnd(t, streams[0])
	patience.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		patience.Bound(t, conn)
		_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		return err == nil
	}, "the place of the connection that ended is free")
}

// Strangers that say a little of a handshake, more than there are places for those, keep no node out: the oldest of
// them give way, and are counted.
func TestConnectionsThatSayLittleGiveWay(t *testing.T) {
	t.Parallel()
	cfg := transporttest.Config()
	cfg.PendingConnections, cfg.HandshakeTimeout = 8, time.Minute
	n := newNetwork(false)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: cfg}, nil)
	for range 20 {
		conn, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "q")
		require.NoError(t, err)
	}
	b.Until(t, "twelve have given way", func() bool { return b.Counters().RefusedInbound[transport.ReasonConnections] == 12 })
	a := transporttest.Start(t, n, transporttest.Spec{}, nil)
	transporttest.Send(t, a.Lane(b.Self(), machine.LaneControl), 0)
	b.UntilReceived(t, 1)
	require.Zero(t, a.Counters().RefusedOutbound[transport.ReasonConnections])
}

// Nor do 300 strangers of one address that say a byte and open again what is closed, and 10,000 that come and go: 99 of
// 100 honest ends shake hands.
func TestStrangersKeepNobodyOut(t *testing.T) {
	b := transporttest.Start(t, newNetwork(false), transporttest.Spec{UID: 2, Config: transport.Default()}, nil)
	to := b.Self().Address
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	crowd := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	knock := func(stay bool) {
		conn, err := crowd.DialContext(ctx, "tcp", to.String())
		if err != nil {
			return
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		_, _ = io.WriteString(conn, "P")
		if stay {
			_, _ = conn.Read(make([]byte, 1))
		}
		_ = conn.Close()
	}
	for range 300 {
		all.Go(func() {
			for ctx.Err() == nil {
				knock(true)
			}
		})
	}
	var came atomic.Int32
	for range 8 {
		all.Go(func() {
			for came.Add(1) <= 10_000 && ctx.Err() == nil {
				knock(false)
			}
		})
	}
	served := 0
	for i := range 100 {
		s := strangertest.Open(t, to)
		hello := hostile.Hello(b.Self())
		hello.From.UID += gossip.UID(i)
		var answer []byte
		if s.SendMsg(strangertest.Bytes(hello)) == nil && s.RecvMsg(&answer) == nil {
			served++
		}
	}
	require.GreaterOrEqual(t, served, 99)
}

// exhausted is a listener of a process that has no file descriptor left, for a while.
type exhausted struct {
	net.Listener

	left *atomic.Int32
}

func (l exhausted) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A process that runs out of file descriptors says so: each failed accept is counted
// and noticed, and the process recovers.
func TestDescriptorsThatRunOutAreNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, err := gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	var left atomic.Int32
	left.Store(2)
	heard := make(chan transport.NotAccepted, 8)
	spec := transporttest.Spec{Address: address, UID: 1, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}
	tr, err := grpc.New(identity(spec), transporttest.Config(), grpc.WithListener(exhausted{l, &left}), grpc.WithNotices(func(n transport.Notice) {
		if e, ok := n.(transport.NotAccepted); ok {
			heard <- e
		}
	}))
	require.NoError(t, err)
	require.NoError(t, tr.Start(t.Context()))
	for range 2 {
		require.ErrorIs(t, patience.Receive(t, heard, "a notice of it").Err, syscall.EMFILE)
	}
	s := strangertest.Open(t, address)
	require.NoError(t, s.SendMsg(strangertest.Bytes(hostile.Hello(tr.Self()))))
	var answer []byte
	require.NoError(t, s.RecvMsg(&answer), "it goes on")
	require.Equal(t, uint64(2), tr.Counters().NotAccepted)
	require.NoError(t, tr.Close())
	require.Empty(t, heard, "the end is no want of descriptors")
}

func TestConfigurationFaultsAreReportedTogether(t *testing.T) {
	spec := transporttest.Spec{Address: gossip.Address{Host: "127.0.0.1", Port: 1}, UID: 1, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}
	cfg := transport.Config{TLS: transport.TLSFiles{Key: "key.pem"}}
	_, err := grpc.New(identity(spec), cfg)
	for _, key := range []string{"max-frame-bytes", "window-bytes", "max-silence", "redial-after", "handshake-timeout", "idle-after", "pending-connections", "host-connections", "tls"} {
		require.ErrorContains(t, err, key)
	}
	cfg = transporttest.Config()
	cfg.TLS = transport.TLSFiles{Certificate: "no-such.pem", Key: "no-such.key", Authorities: "no-such.ca"}
	_, err = grpc.New(identity(spec), cfg)
	require.ErrorContains(t, err, "no-such.pem")
	_, err = grpc.New(transport.Identity{}, transporttest.Config())
	require.ErrorContains(t, err, "no uid")
}
