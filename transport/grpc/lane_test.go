// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/internal/tcp"
	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/mutual/mutualtest"
	"github.com/quorate/quorate/transport/transporttest"
	"github.com/quorate/quorate/transport/transporttest/strangertest"
)

// Message lanes beside gRPC on one port. First nodes that differ in what they take, and
// nodes that are replaced by others; then strangers that say half of what they should, say
// it slowly, or something else, without TLS and with it; then strangers in the middle of a
// session; last an acceptor that says nothing.

// settings are networks without TLS and with it.
func settings(t *testing.T, f func(t *testing.T, n *network)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) { f(t, newNetwork(false)) })
	t.Run("TLS", func(t *testing.T) {
		ca := mutualtest.NewAuthority(t, "ca")
		n := newNetwork(false)
		n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, ca, a.Host), ca) }
		f(t, n)
	})
}

// startWith starts a node with a setting of transport.lane.
func startWith(t *testing.T, n *network, lane string, s transporttest.Spec) *transporttest.Node {
	t.Helper()
	n.lane = lane
	return transporttest.Start(t, n, s, nil)
}

// tell sends the numbers from first to last on the message lane, and waits until all since
// the beginning are handled.
func tell(t *testing.T, from, to *transporttest.Node, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		transporttest.Send(t, from.Lane(to.Self(), machine.LaneMessage), i)
	}
	to.UntilReceived(t, last+1)
	to.RequireSequence(t, from.Self(), last+1)
}

// Nodes of different settings reach each other: the one that would take the other wire
// says once that it goes over gRPC, and counts each such connection; no message is lost
// when connections break in between.
func TestNodesOfDifferentSettingsReachEachOther(t *testing.T) {
	settings(t, func(t *testing.T, n *network) {
		t.Helper()
		a, b := startWith(t, n, transport.LaneTCP, transporttest.Spec{}), startWith(t, n, transport.LaneGRPC, transporttest.Spec{UID: 2})
		tell(t, a, b, 0, 99)
		tell(t, b, a, 0, 99)
		require.Equal(t, b.Self().Address, transporttest.UntilNotice(t, a, func(transport.FellBack) bool { return true }).Peer)
		require.Equal(t, uint64(1), a.Counters().Fallbacks)
		n.Break(a.Self().Address, b.Self().Address)
		tell(t, a, b, 100, 199)
		require.Equal(t, uint64(2), a.Counters().Fallbacks)
		require.Equal(t, 1, count[transport.FellBack](a), "it is said once")
		require.Zero(t, b.Counters().Fallbacks)
		require.Zero(t, count[transport.FellBack](b))
		require.Zero(t, a.Counters().RefusedOutbound)
		require.Zero(t, b.Counters().RefusedInbound)
	})
}

// count returns how many notices of a type a node has had.
func count[N transport.Notice](n *transporttest.Node) int {
	found := 0
	for _, x := range n.Notices() {
		if _, ok := x.(N); ok {
			found++
		}
	}
	return found
}

// A node is replaced by one that takes the other wire, and that by one that does not:
// the lane of each goes by what the node takes. That it goes over gRPC is said again
// after it did not.
func TestALaneFollowsAnUpgradeAndItsReversal(t *testing.T) {
	settings(t, func(t *testing.T, n *network) {
		t.Helper()
		a, address := startWith(t, n, transport.LaneTCP, transporttest.Spec{}), gossip.Address{}
		for i, step := range []struct {
			lane string
			said int
		}{{transport.LaneGRPC, 1}, {transport.LaneTCP, 1}, {transport.LaneGRPC, 2}} {
			before := a.Counters().Fallbacks
			b := startWith(t, n, step.lane, transporttest.Spec{Address: address, UID: gossip.UID(2 + i)})
			address = b.Self().Address
			tell(t, a, b, 0, 9)
			back := b.Lane(a.Self(), machine.LaneMessage)
			for i := range 10 {
				transporttest.Send(t, back, i)
			}
			a.UntilReceived(t, 10*(i+1))
			a.RequireSequence(t, b.Self(), 10)
			require.Equal(t, step.lane == transport.LaneGRPC, a.Counters().Fallbacks > before)
			require.Equal(t, step.said, count[transport.FellBack](a))
			require.NoError(t, b.Close())
		}
	})
}

// A node of a version that knows nothing of the other wire is a server of gRPC alone.
func TestAServerOfGRPCAloneIsSpokenToOverGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, err := gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	older := gossip.NodeID{Address: address, UID: 2}
	strangertest.Answer(t, l, func() []byte {
		welcome := wire.AppendWelcome(nil, wire.Welcome{Node: older, Protocol: 1, Known: true})
		return welcome
	})
	a := startWith(t, newNetwork(false), transport.LaneTCP, transporttest.Spec{})
	require.NoError(t, a.Lane(older, machine.LaneMessage).Append(transporttest.Service, transporttest.Number(0)))
	up := transporttest.UntilNotice(t, a, func(transport.PeerUp) bool { return true })
	require.Equal(t, transport.PeerUp{Peer: older, Lane: machine.LaneMessage, Protocol: 1}, up)
	require.NotZero(t, a.Counters().Fallbacks)
	transporttest.UntilNotice(t, a, func(n transport.FellBack) bool { return n.Peer == address })
}

// patient is a configuration whose handshakes take no longer than this.
func patient(limit time.Duration) transport.Config {
	cfg := transporttest.Config()
	cfg.HandshakeTimeout = limit
	return cfg
}

// stillServes demands that a node takes the messages of another one.
func stillServes(t *testing.T, n *network, b *transporttest.Node) {
	t.Helper()
	before := int(b.Counters().Received)
	a := transporttest.Start(t, n, transporttest.Spec{UID: 77}, nil)
	transporttest.Send(t, a.Lane(b.Self(), machine.LaneMessage), 0)
	b.UntilReceived(t, before+1)
	require.NoError(t, a.Close())
}

// Whoever says too little, or too slowly, is closed when the handshake has had its time,
// and counted; a node that dials meanwhile, and afterwards, is served.
func TestOpenersThatSayTooLittleAreClosedInTime(t *testing.T) {
	const limit = time.Second
	hello := func(b *transporttest.Node) []byte {
		m := strangertest.Bytes(hostile.Hello(b.Self()))
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(m))), m...)
	}
	for name, c := range map[string]struct {
		says func(b *transporttest.Node) []byte
		pace time.Duration // Between two bytes; zero: all at once.
	}{
		"silence":               {func(*transporttest.Node) []byte { return nil }, 0},
		"half a preface":        {func(*transporttest.Node) []byte { return []byte(tcp.Preface[:12]) }, 0},
		"a slow preface":        {func(*transporttest.Node) []byte { return []byte(tcp.Preface) }, limit / 10},
		"a preface":             {func(*transporttest.Node) []byte { return []byte(tcp.Preface) }, 0},
		"half a length":         {func(*transporttest.Node) []byte { return []byte(tcp.Preface + "\x01") }, 0},
		"a length":              {func(*transporttest.Node) []byte { return []byte(tcp.Preface + "\x00\x00\x03\x00") }, 0},
		"half a hello":          {func(b *transporttest.Node) []byte { return append([]byte(tcp.Preface), hello(b)[:20]...) }, 0},
		"a hello byte for byte": {func(b *transporttest.Node) []byte { return append([]byte(tcp.Preface), hello(b)...) }, limit / 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(true)
				b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: patient(limit)}, nil)
				conn, err := n.dial(t.Context(), b.Self().Address.String())
				require.NoError(t, err)
				defer func() { _ = conn.Close() }()
				began, ended := time.Now(), make(chan struct{})
				go func() { // Owner: the test, which waits for the end of the connection.
					defer close(ended)
					_, _ = io.Copy(io.Discard, conn)
				}()
				said := c.says(b)
				for i := range said {
					if _, err := conn.Write(said[i : i+1]); err != nil {
						break
					}
					if c.pace > 0 {
						<-time.After(c.pace)
					}
				}
				stillServes(t, n, b)
				<-ended
				require.LessOrEqual(t, time.Since(began), 3*limit, "what gRPC and the session each allow, and the time to hear of the end")
				require.Equal(t, uint64(1), b.Counters().RefusedInbound[transport.ReasonMalformed])
				require.Equal(t, uint64(1), b.Counters().Accepts)
				stillServes(t, n, b)
			})
		})
	}
}

// expectEnd reads what comes until the connection ends, which is soon.
func expectEnd(t *testing.T, conn net.Conn) string {
	t.Helper()
	patience.Bound(t, conn)
	said, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, net.ErrClosed, "the node ends it")
	return string(said)
}

// What is said on a port without TLS by whoever speaks something else is refused and
// counted, and tells a node of this project what is the matter.
func TestOtherWiresOnAPortWithoutTLSAreRefused(t *testing.T) {
	n := newNetwork(false)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil)
	oversize := tcp.Preface + "\xff\xff\xff\xff"
	for _, c := range []struct {
		name, said, answer string
		reason             transport.Reason
	}{
		{"another version", strings.Replace(tcp.Preface, "/1", "/2", 1), "\x00\x00", transport.ReasonMalformed},
		{"a web browser", "GET / HTTP/1.1\r\nHost: node\r\n\r\n", "\x00\x00", transport.ReasonMalformed},
		{"TLS", "\x16\x03\x01\x00\x05hello and more than a preface has", "\x00\x00", transport.ReasonInsecure},
		{"a length beyond the bound", oversize, tcp.Preface, transport.ReasonMalformed},
		{"a length beyond that of strangers", tcp.Preface + "\x01\x00\x04\x00", tcp.Preface, transport.ReasonMalformed},
		{"a message without bytes", tcp.Preface + "\x00\x00\x00\x00", tcp.Preface, transport.ReasonMalformed},
	} {
		before := b.Counters().RefusedInbound[c.reason]
		conn, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, c.said)
		require.NoError(t, err)
		require.Equal(t, c.answer, expectEnd(t, conn)[:len(c.answer)], c.name)
		require.NoError(t, conn.Close())
		require.Equal(t, before+1, b.Counters().RefusedInbound[c.reason], c.name)
	}
	require.Zero(t, b.Counters().Accepts)
	stillServes(t, n, b)
}

// The same with TLS, for which older versions, other protocols and missing certificates
// are refused in its handshake.
func TestOtherWiresOnAPortWithTLSAreRefused(t *testing.T) {
	t.Parallel()
	ca, other := mutualtest.NewAuthority(t, "ca"), mutualtest.NewAuthority(t, "ca")
	n := newNetwork(false)
	n.tls = func(a gossip.Address) *grpc.TLS { return source(issue(t, ca, a.Host), ca) }
	calm, hasty := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil),
		transporttest.Start(t, n, transporttest.Spec{UID: 3, Config: patient(300 * time.Millisecond)}, nil)
	node := func(said string) *transporttest.Node { // Who says too little is closed when its time is over.
		if len(said) < len(tcp.Preface) {
			return hasty
		}
		return calm
	}
	good := tls.Config{
		ServerName: "127.0.0.1", RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12, NextProtos: []string{tcp.Protocol},
		Certificates: []tls.Certificate{*issue(t, ca, "127.0.0.1")},
	}
	for _, c := range []struct {
		name   string
		change func(*tls.Config)
		said   string
		reason transport.Reason
	}{
		{"TLS 1.2", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, tcp.Preface, transport.ReasonInsecure},
		{"another protocol", func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, tcp.Preface, transport.ReasonMalformed},
		{"another version", func(c *tls.Config) { c.NextProtos = []string{"quorate-lane/2"} }, tcp.Preface, transport.ReasonMalformed},
		{"no protocol", func(c *tls.Config) { c.NextProtos = nil }, tcp.Preface, transport.ReasonMalformed},
		{"no certificate", func(c *tls.Config) { c.Certificates = nil }, tcp.Preface, transport.ReasonCertificate},
		{"a certificate of another authority", func(c *tls.Config) { c.Certificates[0] = *issue(t, other, "127.0.0.1") }, tcp.Preface, transport.ReasonCertificate},
		{"HTTP/2 where a lane was agreed on", func(*tls.Config) {}, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", transport.ReasonMalformed},
		{"half a preface", func(*tls.Config) {}, tcp.Preface[:7], transport.ReasonMalformed},
		{"nothing where a lane was agreed on", func(*tls.Config) {}, "", transport.ReasonMalformed},
		{"a length beyond the bound", func(*tls.Config) {}, tcp.Preface + "\xff\xff\xff\xff", transport.ReasonMalformed},
	} {
		b := node(c.said)
		before := b.Counters().RefusedInbound[c.reason]
		cfg := good.Clone()
		cfg.Certificates = append([]tls.Certificate{}, good.Certificates...)
		c.change(cfg)
		raw, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		conn := tls.Client(raw, cfg)
		_, _ = io.WriteString(conn, c.said) // Refused by now in some of the cases.
		answered := strings.HasPrefix(expectEnd(t, conn), tcp.Preface)
		require.Equal(t, c.name == "a length beyond the bound", answered, "%s: nothing but a preface is answered by one", c.name)
		_ = conn.Close()
		b.Until(t, c.name+" is counted", func() bool { return b.Counters().RefusedInbound[c.reason] == before+1 })
	}
	for name, c := range map[string]struct {
		said   string
		reason transport.Reason
	}{
		"no TLS": {tcp.Preface, transport.ReasonInsecure}, "silence": {"", transport.ReasonMalformed}, "half a record": {"\x16\x03\x01\x02", transport.ReasonMalformed},
	} {
		b := node(c.said)
		before := b.Counters().RefusedInbound[c.reason]
		conn, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		_, err = io.WriteString(conn, c.said)
		require.NoError(t, err)
		answer := expectEnd(t, conn)
		require.NoError(t, conn.Close())
		if c.said == tcp.Preface {
			require.Equal(t, "\x15\x03\x01", answer[:3], "an alert tells that TLS is spoken here")
		}
		b.Until(t, name+" is counted", func() bool { return b.Counters().RefusedInbound[c.reason] == before+1 })
	}
	n.lane = transport.LaneTCP
	for _, b := range []*transporttest.Node{calm, hasty} {
		require.Zero(t, b.Counters().Accepts)
		stillServes(t, n, b)
	}
}

// What is sent after a refusal is not handled, and the connection ends soon although the
// sender neither reads nor stops. It then leaves its place to the next one.
func TestWhatComesAfterTheEndIsNotHandled(t *testing.T) {
	t.Parallel()
	cfg := transporttest.Config()
	cfg.HostConnections = 1
	n := newNetwork(false)
	b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: cfg}, nil)
	hello := hostile.Hello(b.Self())
	hello.Lane = machine.LaneMessage
	for round := range 2 {
		hello.Session++
		s := strangertest.OpenLane(t, b.Self().Address)
		require.NoError(t, s.SendMsg(strangertest.Bytes(hello)))
		var answer []byte
		require.NoError(t, s.RecvMsg(&answer))
		b.Until(t, "it is accepted", func() bool { return b.Counters().Accepts == uint64(round+1) })
		require.NoError(t, s.SendMsg([]byte{0xff}), "the session ends here")
		number := uint64(1)
		for s.SendMsg(strangertest.Frame(number, transporttest.Service, make([]byte, 32<<10))) == nil {
			number++
		}
		require.Equal(t, uint64(round+1), b.Counters().RefusedInbound[transport.ReasonMalformed])
	}
	require.Zero(t, b.Counters().Received)
	stillServes(t, n, b)
}

// An opener that ends its own side has ended the connection: it leaves its place at once,
// and its session goes on when it connects again.
func TestAHalfClosedConnectionEnds(t *testing.T) {
	cfg := transporttest.Config()
	cfg.HostConnections = 1
	b := transporttest.Start(t, newNetwork(false), transporttest.Spec{UID: 2, Config: cfg}, nil)
	hello := hostile.Hello(b.Self())
	hello.Lane = machine.LaneMessage
	for round := range uint64(3) {
		conn, err := net.Dial("tcp", b.Self().Address.String())
		require.NoError(t, err)
		s := strangertest.ExchangePreface(t, conn)
		hello.Resumed = round > 0
		require.NoError(t, s.SendMsg(strangertest.Bytes(hello)))
		var answer []byte
		require.NoError(t, s.RecvMsg(&answer))
		welcome, err := wire.ParseDownstream(answer)
		require.NoError(t, err)
		require.Equal(t, round, welcome.Welcome.Acknowledged)
		payload := transporttest.Number(int(round))(nil)
		require.NoError(t, s.SendMsg(strangertest.Frame(round+1, transporttest.Service, payload)))
		b.UntilReceived(t, int(round+1))
		half, ok := conn.(*net.TCPConn)
		require.True(t, ok)
		require.NoError(t, half.CloseWrite())
		expectEnd(t, conn)
		require.NoError(t, conn.Close())
	}
	require.Zero(t, b.Counters().RefusedInbound)
	b.RequireSequence(t, hostile.ID, 3)
}

// A node that closes waits for no connection whose other end stays.
func TestCloseWaitsForNobodyWhoStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(true)
		b := transporttest.Start(t, n, transporttest.Spec{UID: 2}, nil)
		conn, err := n.dial(t.Context(), b.Self().Address.String())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		s := strangertest.ExchangePreface(t, conn)
		require.NoError(t, s.SendMsg(strangertest.Bytes(hostile.Hello(b.Self()))))
		var answer []byte
		require.NoError(t, s.RecvMsg(&answer))
		b.Until(t, "it is accepted", func() bool { return b.Counters().Accepts == 1 })
		began := time.Now()
		require.NoError(t, b.Close())
		require.LessOrEqual(t, time.Since(began), transporttest.Config().Linger)
		require.Error(t, s.RecvMsg(&answer))
	})
}

// An acceptor that takes connections and says nothing holds no lane up for ever, and
// keeps nobody from closing.
func TestASilentAcceptorIsGivenUp(t *testing.T) {
	for _, closing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(true)
			silent := gossip.NodeID{UID: 2}
			l := n.listen(t, &silent.Address)
			var conns []net.Conn
			accepted := make(chan struct{}, 1<<10)
			done := make(chan struct{})
			go func() { // Owner: the test, which closes the listener and waits below.
				defer func() { accepted <- struct{}{}; done <- struct{}{} }()
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					conns = append(conns, c)
					accepted <- struct{}{}
				}
			}()
			cfg := patient(time.Second)
			a := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
			require.NoError(t, a.Lane(silent, machine.LaneMessage).Append(transporttest.Service, transporttest.Number(0)))
			<-accepted
			began := time.Now()
			if closing {
				require.NoError(t, a.Close())
				require.Less(t, time.Since(began), cfg.HandshakeTimeout)
			} else {
				down := transporttest.UntilNotice(t, a, func(transport.PeerDown) bool { return true })
				require.ErrorIs(t, down.Err, transport.ErrUnreachable)
				require.ErrorIs(t, down.Err, context.DeadlineExceeded)
				require.LessOrEqual(t, time.Since(began), cfg.GiveUpAfter+cfg.HandshakeTimeout)
			}
			require.NoError(t, l.Close())
			<-done
			for _, c := range conns {
				require.NoError(t, c.Close())
			}
		})
	}
}
