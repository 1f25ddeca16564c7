// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
)

// Nodes whose addresses are names, on hosts in virtual time: a zone says at which host a name
// is, and a host that is unplugged falls silent, without an end of its connections that others
// would see. Names move from host to host. First the zone, its hosts and their connections, then
// nodes with names; last what becomes of nodes whose names move.

// port is that of all nodes.
const port = "7946"

// zone says to which host a name belongs.
type zone struct {
	mu        sync.Mutex
	hosts     map[string]*host
	asked     map[string]int       // How often each name was looked up.
	listeners map[string]*listener // By the address of its host, which has one port.
}

func newZone() *zone {
	return &zone{hosts: map[string]*host{}, asked: map[string]int{}, listeners: map[string]*listener{}}
}

func (z *zone) point(name string, h *host) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.hosts[name] = h
}

func (z *zone) lookup(name string) (*host, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked[name]++
	if h := z.hosts[name]; h != nil {
		return h, nil
	}
	return nil, &net.DNSError{Name: name, IsNotFound: true, Err: "no such host"}
}

// awaitLookups waits until a name has been looked up so many times more.
func (z *zone) awaitLookups(t *testing.T, name string, more int) {
	t.Helper()
	count := func() int {
		z.mu.Lock()
		defer z.mu.Unlock()
		return z.asked[name]
	}
	from := count()
	patience.Eventually(t, func() bool { return count() >= from+more }, "%s is looked up %d times more", name, more)
}

// host is a machine with one address, on which nodes run.
type host struct {
	t         *testing.T
	zone      *zone
	number    int
	ip        string
	unplugged chan struct{} // Closed when the machine is cut off.
}

func (z *zone) host(t *testing.T, number int) *host {
	t.Helper()
	return &host{t: t, zone: z, number: number, ip: "10.7.0." + strconv.Itoa(number), unplugged: make(chan struct{})}
}

// plug returns the end on h of a connection to another host.
func (h *host) plug(c net.Conn, other string) net.Conn {
	h.t.Cleanup(func() { _ = c.Close() })
	return &cable{Conn: c, here: h.ip, there: other, unplugged: h.unplugged, closed: make(chan struct{})}
}

// dial connects from the address of h to the host to which the name belongs at this moment.
func (h *host) dial(ctx context.Context, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	to, err := h.zone.lookup(name)
	if err != nil {
		return nil, err
	}
	h.zone.mu.Lock()
	l := h.zone.listeners[to.ip]
	h.zone.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	c, err := l.connect(ctx, h.ip)
	if err != nil {
		return nil, err
	}
	return h.plug(c, to.ip), nil
}

// listen takes the port of h.
func (h *host) listen() net.Listener {
	h.t.Helper()
	l := &listener{Listener: bufconn.Listen(64 << 10), host: h, turn: make(chan struct{}, 1), from: make(chan string, 1)}
	h.zone.mu.Lock()
	defer h.zone.mu.Unlock()
	require.Nil(h.t, h.zone.listeners[h.ip], "the port is free")
	h.zone.listeners[h.ip] = l
	return l
}

// start runs a node on h under a name.
func (h *host) start(cfg membership.Config) *membership.Node {
	h.t.Helper()
	l := h.listen()
	n, err := membership.Start(h.t.Context(), cfg, membership.WithLogger(slog.New(slog.DiscardHandler)),
		membership.WithTransport(func(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
			return grpc.New(id, cfg, grpc.WithNotices(notices), grpc.WithDialer(h.dial), grpc.WithListener(l))
		}))
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = n.Close() })
	return n
}

// listener is the port of a host.
type listener struct {
	*bufconn.Listener

	host *host
	turn chan struct{} // Holds one value while somebody connects, so that addresses come in the order of connections.
	from chan string   // From where the connection comes that was accepted last.
}

// connect connects from the address of another host.
func (l *listener) connect(ctx context.Context, from string) (net.Conn, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	c, err := l.DialContext(ctx)
	if err == nil {
		l.from <- from
	}
	return c, err
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.host.plug(c, <-l.from), nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(l.host.ip), Port: 7946} }

func (l *listener) Close() error {
	l.host.zone.mu.Lock()
	defer l.host.zone.mu.Unlock()
	if l.host.zone.listeners[l.host.ip] == l {
		delete(l.host.zone.listeners, l.host.ip)
	}
	return l.Listener.Close()
}

// cable is a connection of a host. When that is unplugged nothing goes through it any more,
// not even its end, until the test has ended.
type cable struct {
	net.Conn

	here, there string // The addresses of its hosts.

	unplugged <-chan struct{}
	once      sync.Once
	closed    chan struct{}
}

func (c *cable) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.ParseIP(c.here)} }
func (c *cable) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.there)} }

func (c *cable) dead() bool {
	select {
	case <-c.unplugged:
		return true
	default:
		return false
	}
}

func (c *cable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.dead() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *cable) Write(p []byte) (int, error) {
	if c.dead() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *cable) Close() error {
	c.once.Do(func() { close(c.closed) })
	if c.dead() {
		return c.SetReadDeadline(time.Unix(1, 0)) //quorate:realtime Whoever reads is told, and nobody else.
	}
	return c.Conn.Close()
}

// named is a node whose address is a name.
type named struct {
	*membership.Node

	cfg  membership.Config
	host *host
}

// nameC is the name of the node that moves.
const nameC = "c.bank.test"

// names are those of the first three nodes; the first two are seed nodes.
func names() []string { return []string{"a.bank.test", "b.bank.test", nameC} }

// threeNamed starts three nodes as one cluster, each on a host of its own.
func threeNamed(t *testing.T, z *zone, disks bool) []*named {
	t.Helper()
	var all []*named
	for i, name := range names() {
		cfg := membership.Fast()
		cfg.Cluster.Name, cfg.Node.Address = "bank", net.JoinHostPort(name, port)
		cfg.Membership.SeedNodes = []string{net.JoinHostPort(names()[0], port), net.JoinHostPort(names()[1], port)}
		cfg.Membership.JoinInterval, cfg.Membership.JoinIntervalMax, cfg.Membership.ProbeTimeout = 100*time.Millisecond, 300*time.Millisecond, time.Second
		cfg.Transport.AllowInsecure = true // Names are not of the loopback interface by their text.
		if disks {
			cfg.Node.DataDir = t.TempDir()
		}
		h := z.host(t, 1+i)
		z.point(name, h)
		all = append(all, &named{h.start(cfg), cfg, h})
	}
	for _, n := range all {
		n.awaitUp(t, len(all))
	}
	return all
}

// awaitUp waits until the node is up in a cluster of so many, all up.
func (n *named) awaitUp(t *testing.T, members int) {
	t.Helper()
	patience.Eventually(t, func() bool { return n.allUp(members) }, "%v is up among %d", n.cfg.Node.Address, members)
}

func (n *named) allUp(members int) bool {
	all := n.State().Members()
	return len(all) == members && !slices.ContainsFunc(all, func(m *gossip.Member) bool { return m.Status != gossip.Up })
}

// A machine dies without a word, and its node comes back elsewhere under its name. While
// the name still belongs to the former address, where somebody else is now, nobody takes
// the node in; once it belongs to the new one the node is up, its former incarnation is
// gone, and so it stays.
func TestANodeComesBackUnderItsNameAtAnotherAddress(t *testing.T) {
	node := func(h *host, cfg membership.Config) {
		cfg.Node.Address, cfg.Node.DataDir = net.JoinHostPort("d.bank.test", port), ""
		h.zone.point("d.bank.test", h)
		h.start(cfg)
	}
	for _, c := range []struct {
		name   string
		disk   bool // The node comes back with its data directory.
		tenant func(former *host, cfg membership.Config)
	}{
		{"nobody", true, func(*host, membership.Config) {}},
		{"no address", false, func(h *host, _ membership.Config) { h.zone.point(nameC, nil) }},
		{"a web server", true, func(h *host, _ membership.Config) {
			serve(h.t, h.listen(), says("HTTP/1.1 200 OK\r\n\r\nwelcome", false))
		}},
		{"a silent one", false, func(h *host, _ membership.Config) {
			serve(h.t, h.listen(), func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		}},
		{"another node", true, node},
		{"another node, without a directory", false, node},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comesBack(t, newZone(), c.disk, c.tenant) })
		})
	}
}

func comesBack(t *testing.T, z *zone, disk bool, tenant func(*host, membership.Config)) {
	t.Helper()
	nodes := threeNamed(t, z, disk)
	a, b, was := nodes[0], nodes[1], nodes[2]
	close(was.host.unplugged)
	require.NoError(t, was.Close())

	former, next := z.host(t, was.host.number), z.host(t, 4)
	z.point(nameC, former)
	tenant(former, was.cfg)
	again := &named{next.start(was.cfg), was.cfg, next}
	patience.Eventually(t, func() bool {
		_, gone := a.State().Removed(was.Self())
		return gone
	}, "the former incarnation is gone")
	z.awaitLookups(t, nameC, 2)
	require.Nil(t, a.State().Member(again.Self()), "nobody answers as the node where its name is")
	members := len(a.State().Members())

	z.point(nameC, next)
	for _, n := range []*named{again, a, b} {
		n.awaitUp(t, members+1)
	}
	require.Equal(t, gossip.Up, a.State().Member(again.Self()).Status)
	require.Equal(t, a.State().Cluster(), again.State().Cluster())
}

// Two processes run under one name. The one at the address of the name is the node: the
// other is not taken in and does no harm, however often it asks. When the name moves to it,
// it replaces the first one, which ends, though that one is well and all its connections are.
func TestTheAddressOfANameSaysWhoIsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newZone()
		nodes := threeNamed(t, z, false)
		a, b, first := nodes[0], nodes[1], nodes[2]
		next := z.host(t, 4)
		second := &named{next.start(first.cfg), first.cfg, next}
		z.awaitLookups(t, nameC, 5)
		require.Equal(t, gossip.Up, a.State().Member(first.Self()).Status)
		require.Nil(t, a.State().Member(second.Self()))

		z.point(nameC, next)
		for _, n := range []*named{second, a, b} {
			n.awaitUp(t, 3)
		}
		require.Equal(t, gossip.Up, a.State().Member(second.Self()).Status)
		patience.Receive(t, first.Done(), "the end of the first process")
	})
}

// All machines die, and their nodes come back with their data directories, each where
// another one was: they are one cluster after the one that they were.
func TestNodesComeBackWithEachOthersAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := newZone()
		nodes := threeNamed(t, z, true)
		born := nodes[0].State().Cluster().Born
		for _, n := range nodes {
			close(n.host.unplugged)
		}
		var again []*named
		for i, n := range nodes {
			require.NoError(t, n.Close())
			h := z.host(t, nodes[(i+1)%len(nodes)].host.number)
			z.point(names()[i], h)
			again = append(again, &named{host: h, cfg: n.cfg})
		}
		for _, n := range again {
			n.Node = n.host.start(n.cfg)
		}
		for _, n := range again {
			n.awaitUp(t, 3)
		}
		require.Equal(t, again[0].State().Cluster(), again[1].State().Cluster())
		require.Greater(t, again[0].State().Cluster().Born, born)
	})
}
