// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
	"github.com/quorate/quorate/transport/transporttest"
)

// The transport over TCP and in memory. First the network of the tests, on which the
// conformance suite runs; then connections that break, ports and names that cannot be used,
// nodes without TLS and the hosts that they dial from; last bounds of connections.

// The parallel tests wait for the ends of connections and silences, and compute little: all of them run at a
// time, whatever the number of processors is.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // The flag is there. What the command line says counts more.
	goleak.VerifyTestMain(m)
}

// network is a world of gRPC transports, over TCP or inside the process. It keeps each
// connection under the addresses of the node that opened it and of the other end.
type network struct {
	memory bool
	lane   string // What carries lanes of messages; empty for the configuration's own.
	tls    func(gossip.Address) *grpc.TLS
	wrap   func(net.Conn) net.Conn

	mu        sync.Mutex
	port      uint16
	listeners map[string]*bufconn.Listener
	conns     map[[2]gossip.Address][]net.Conn
}

// given is how many ports were given to nodes.
var given atomic.Int32

func newNetwork(memory bool) *network {
	return &network{
		memory: memory, listeners: make(map[string]*bufconn.Listener),
		conns: make(map[[2]gossip.Address][]net.Conn),
		wrap:  func(c net.Conn) net.Conn { return c },
	}
}

func (n *network) listen(t testing.TB, a *gossip.Address) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.memory {
		if a.IsZero() {
			n.port++
			*a = gossip.Address{Host: "127.0.0.1", Port: n.port}
		}
		l := bufconn.Listen(64 << 10)
		n.listeners[a.String()] = l
		return l
	}
	var l net.Listener
	var err error
	patience.Eventually(t, func() bool {
		where := a.String()
		if a.IsZero() {
			// Below the ports that a system gives away, and one after the other: nobody else has that of a node
			// which was closed, also not a test that runs at the same time.
			where = fmt.Sprintf("127.0.0.1:%d", 30_000+given.Add(1)%2_000)
		}
		l, err = net.Listen("tcp", where)
		return err == nil
	}, "a port of %v can be listened at", a)
	*a, err = gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	return l
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	if !n.memory {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("nobody listens")
	}
	return l.DialContext(ctx)
}

func (n *network) New(t testing.TB, s transporttest.Spec) transport.Transport {
	l := n.listen(t, &s.Address)
	s.Config.Lane = cmp.Or(n.lane, s.Config.Lane)
	connect := func(ctx context.Context, address string) (net.Conn, error) {
		c, err := n.dial(ctx, address)
		if err != nil {
			return nil, err
		}
		to, err := gossip.ParseAddress(address)
		if err != nil {
			return nil, err
		}
		c = n.wrap(c)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns[[2]gossip.Address{s.Address, to}] = append(n.conns[[2]gossip.Address{s.Address, to}], c)
		return c, nil
	}
	opts := []grpc.Option{grpc.WithListener(l), grpc.WithDialer(connect), grpc.WithNotices(s.Notices)}
	if n.tls != nil {
		opts = append(opts, grpc.WithTLS(n.tls(s.Address)))
	}
	tr, err := grpc.New(identity(s), s.Config, opts...)
	require.NoError(t, err)
	return tr
}

func identity(s transporttest.Spec) transport.Identity {
	return transport.Identity{
		Node:      gossip.NodeID{Address: s.Address, UID: s.UID},
		Cluster:   s.Cluster,
		Protocol:  s.Protocol,
		ClusterID: func() gossip.ClusterID { return s.ID },
		Known:     s.Known,
	}
}

func (n *network) Break(a, b gossip.Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range [][2]gossip.Address{{a, b}, {b, a}} {
		for _, c := range n.conns[k] {
			_ = c.Close()
		}
		n.conns[k] = nil
	}
}

// overBoth runs a test for each of the two wires of message lanes, both at the same time, with a
// function that makes networks for it.
func overBoth(t *testing.T, f func(t *testing.T, network func(memory bool) *network)) {
	t.Helper()
	for _, lane := range []string{transport.LaneTCP, transport.LaneGRPC} {
		t.Run(lane, func(t *testing.T) {
			t.Parallel()
			f(t, func(memory bool) *network {
				n := newNetwork(memory)
				n.lane = lane
				return n
			})
		})
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, network func(bool) *network) {
		t.Helper()
		transporttest.Test(t, transporttest.Plain, func(testing.TB) transporttest.World { return network(false) })
	})
}

func TestConformanceInVirtualTime(t *testing.T) {
	bubble := func(t *testing.T, f func(*testing.T)) {
		t.Helper()
		synctest.Test(t, f)
	}
	overBoth(t, func(t *testing.T, network func(bool) *network) {
		t.Helper()
		transporttest.Test(t, bubble, func(testing.TB) transporttest.World { return network(true) })
	})
}

// faulty is a connection that breaks after a random number of bytes, in the
// middle of whatever is under way.
type faulty struct {
	net.Conn

	mu    sync.Mutex
	bytes int // How many bytes pass before the connection breaks.
}

// spend takes up to n bytes from what is left.
func (f *faulty) spend(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, f.bytes)
	f.bytes -= n
	return n
}

func (f *faulty) Write(b []byte) (int, error) {
	n := f.spend(len(b))
	written, err := f.Conn.Write(b[:n])
	if err == nil && n < len(b) {
		_ = f.Close()
		err = io.ErrClosedPipe
	}
	return written, err
}

func (f *faulty) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if kept := f.spend(n); kept < n {
		_ = f.Close()
		return kept, io.ErrUnexpectedEOF
	}
	return n, err
}

// A session loses, doubles and reorders nothing when its connections break anywhere,
// handshakes included.
func TestConnectionsThatBreakAnywhere(t *testing.T) { overBoth(t, breakAnywhere) }

func breakAnywhere(t *testing.T, network func(bool) *network) {
	t.Helper()
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			const count = 3000
			rnd := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			n := network(true)
			n.wrap = func(c net.Conn) net.Conn {
				mu.Lock()
				defer mu.Unlock()
				return &faulty{Conn: c, bytes: rnd.IntN(1 << (8 + rnd.IntN(8)))}
			}
			cfg := transporttest.Config()
			cfg.GiveUpAfter = time.Hour
			a := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
			b := transporttest.Start(t, n, transporttest.Spec{UID: 2, Config: cfg}, nil)
			lane := a.Lane(b.Self(), machine.LaneMessage)
			for i := range count {
				transporttest.Send(t, lane, i)
				if i%100 == 0 {
					b.UntilReceived(t, i/2)
				}
			}
			b.UntilReceived(t, count)
			b.RequireSequence(t, a.Self(), count)
			require.NotZero(t, a.Counters().Breaks, "seed %d broke nothing", seed)
			require.Zero(t, a.Counters().Lost)
		})
	}
}

// covers F51: the error of a port in use names the address and the cure.
func TestAPortInUseIsAnErrorThatSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	address, err := gossip.ParseAddress(l.Addr().String())
	require.NoError(t, err)
	tr, err := grpc.New(identity(transporttest.Spec{
		Address: address, UID: 1, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}), transporttest.Config())
	require.NoError(t, err)
	err = tr.Start(t.Context())
	require.ErrorContains(t, err, address.String())
	require.ErrorContains(t, err, "stop the process that has the port")
	require.NoError(t, tr.Close())
}

// elsewhere is a socket whose address is not the one that its name promises.
type elsewhere struct {
	net.Listener
	net.Conn

	once   *sync.Once
	closed chan struct{}
}

var foreign = &net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 7946}

func (elsewhere) Addr() net.Addr       { return foreign }
func (elsewhere) RemoteAddr() net.Addr { return foreign }

func (elsewhere) Accept() (net.Conn, error) { return nil, net.ErrClosed }

func (e elsewhere) Read([]byte) (int, error) {
	<-e.closed
	return 0, io.EOF
}

func (elsewhere) Write(b []byte) (int, error) { return len(b), nil }

func (e elsewhere) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// The name localhost is trusted as little as any other name: what counts is the
// address that was bound or reached, since a hosts file may say anything.
//
// covers F38.
func TestANameThatLeadsAwayFromLoopbackIsRefused(t *testing.T) {
	spec := transporttest.Spec{Address: gossip.Address{Host: "localhost", Port: 7946}, UID: 1, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}
	socket := elsewhere{once: new(sync.Once), closed: make(chan struct{})}
	b, err := grpc.New(identity(spec), transporttest.Config(), grpc.WithListener(socket))
	require.NoError(t, err)
	err = b.Start(t.Context())
	for _, what := range []string{"localhost:7946", "10.9.9.9:7946", "loopback", "transport.tls", "allow-insecure"} {
		require.ErrorContains(t, err, what)
	}
	<-socket.closed
	require.NoError(t, b.Close())

	spec.Address.Host = "127.0.0.1"
	socket = elsewhere{once: new(sync.Once), closed: make(chan struct{})}
	a, err := grpc.New(identity(spec), transporttest.Config(), grpc.WithDialer(func(context.Context, string) (net.Conn, error) { return socket, nil }))
	require.NoError(t, err)
	_, err = a.Probe(t.Context(), gossip.Address{Host: "localhost", Port: 7946})
	refused := transporttest.Refusal(t, err)
	require.Equal(t, transport.ReasonInsecure, refused.Reason)
	require.ErrorContains(t, refused, "10.9.9.9:7946")
	require.Equal(t, uint64(1), a.Counters().RefusedOutbound[transport.ReasonInsecure])
	<-socket.closed
	require.NoError(t, a.Close())
}

func TestWithoutTLSOnlyLoopbackIsServedAndDialled(t *testing.T) {
	spec := transporttest.Spec{
		Address: gossip.Address{Host: "192.0.2.1", Port: 1}, UID: 1, Cluster: "bank",
		Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}
	tr, err := grpc.New(identity(spec), transporttest.Config())
	require.NoError(t, err)
	require.ErrorContains(t, tr.Start(t.Context()), "allow-insecure")
	_, err = tr.Probe(t.Context(), gossip.Address{Host: "192.0.2.2", Port: 1})
	require.Equal(t, transport.ReasonInsecure, transporttest.Refusal(t, err).Reason)
	require.NoError(t, tr.Close())
}

// A node on 127.x dials from its own host.
func TestOutgoingConnectionsComeFromTheNodesOwnHost(t *testing.T) {
	start := func(host string, uid gossip.UID) (*grpc.Transport, gossip.NodeID, chan string) {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		require.NoError(t, err)
		sources := make(chan string, 8)
		address, err := gossip.ParseAddress(l.Addr().String())
		require.NoError(t, err)
		spec := transporttest.Spec{Address: address, UID: uid, Cluster: "bank", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}
		tr, err := grpc.New(identity(spec), transporttest.Config(), grpc.WithListener(noting{l, sources}))
		require.NoError(t, err)
		require.NoError(t, tr.Start(t.Context()))
		t.Cleanup(func() { _ = tr.Close() })
		return tr, tr.Self(), sources
	}
	a, _, _ := start("127.0.3.1", 1)
	_, b, sources := start("127.0.3.2", 2)
	node, err := a.Probe(t.Context(), b.Address)
	require.NoError(t, err)
	require.Equal(t, b, node)
	require.Equal(t, "127.0.3.1", <-sources)
}

// noting is a listener that tells from which host each connection comes.
type noting struct {
	net.Listener

	sources chan string
}

func (n noting) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		n.sources <- host
	}
	return c, err
}

// The connections of one address are bounded until their handshakes complete.
func TestUnfinishedConnectionsOfOneAddressAreBounded(t *testing.T) {
	cfg := transporttest.Config()
	cfg.PendingConnections = 3
	n := newNetwork(false)
	a := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
	for range 3 {
		c, err := net.Dial("tcp", a.Self().Address.String())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
	}
	fourth, err := net.Dial("tcp", a.Self().Address.String())
	require.NoError(t, err)
	defer func() { _ = fourth.Close() }()
	patience.Bound(t, fourth)
	_, err = fourth.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, net.ErrClosed, "closed by the node, not left open")
	refused := transporttest.UntilNotice(t, a, func(n transport.Refused) bool { return n.Inbound })
	require.Equal(t, transport.ReasonConnections, refused.Err.Reason)
}

// A hundred nodes of one machine that all dial the first node at the same moment, as
// when a cluster starts, are not taken for an attack. covers F8.
func TestAHundredNodesOfOneAddressAreNotRefused(t *testing.T) {
	n := newNetwork(false)
	cfg := transport.Default()
	seed := transporttest.Start(t, n, transporttest.Spec{Config: cfg}, nil)
	for i := range 100 {
		a := transporttest.Start(t, n, transporttest.Spec{UID: gossip.UID(2 + i), Config: cfg}, nil)
		transporttest.Send(t, a.Lane(seed.Self(), machine.LaneControl), 0)
	}
	seed.UntilReceived(t, 100)
	require.Zero(t, seed.Counters().RefusedInbound)
	require.Equal(t, uint64(100), seed.Counters().Accepts)
}
