// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package processes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
)

// Networks that tests can cut, for nodes that are processes. The interface comes first,
// then the two that implement it: one in name spaces of the kernel (lan, space), and, where
// those are not allowed, one of relays on loopback addresses.

// network connects the nodes of a city, and can be cut.
type network interface {
	// address returns the address of the i-th node in the cluster.
	address(i int) string
	// settings returns what the environment and the command line of the i-th node need
	// besides its address.
	settings(i int) (env, args []string)
	// start starts a process at the place of the i-th node.
	start(i int, cmd *exec.Cmd) error
	// dial connects to the HTTP interface of a node, whatever is cut.
	dial(ctx context.Context, network, address string) (net.Conn, error)
	// cut cuts some nodes off from the others. Connections between the sides stay open,
	// and carry nothing.
	cut(side ...int)
	// heal ends the cut.
	heal()
}

// newNetwork returns a network of n places: with a name space of the kernel for each
// where this process may have them, and otherwise with relays.
func newNetwork(t *testing.T, n int) network {
	t.Helper()
	l, err := newLAN(t, n)
	if err != nil {
		t.Logf("no network name spaces (%v): the nodes get loopback addresses with relays between them", err)
		return newRelays(t, n)
	}
	return l
}

// lan is a local network: each node has a name space with one network card, plugged into a
// switch in one more name space. The name space of the test stays as it was. The kernel
// removes each of the others with the last process in it, however the test ends.
type lan struct {
	t     *testing.T
	sw    *space
	nodes []*space
}

var _ network = (*lan)(nil)

// newLAN plugs n places into a switch.
func newLAN(t *testing.T, n int) (*lan, error) {
	t.Helper()
	sw, err := newSpace(t)
	if err != nil {
		return nil, err
	}
	l := &lan{t: t, sw: sw}
	err = sw.ip("link add whole type bridge", "link set whole up", "link add apart type bridge", "link set apart up")
	for i := 0; i < n && err == nil; i++ {
		err = l.plug(i)
	}
	return l, err
}

// plug adds the i-th place.
func (l *lan) plug(i int) error {
	s, err := newSpace(l.t)
	if err != nil {
		return err
	}
	l.nodes = append(l.nodes, s)
	err = l.sw.ip(
		fmt.Sprintf("link add port%d type veth peer name card netns %d", i, s.thread),
		fmt.Sprintf("link set port%d master whole up", i))
	if err != nil {
		return err
	}
	return s.ip("link set lo up", fmt.Sprintf("addr add 10.77.0.%d/24 dev card", i+1), "link set card up")
}

func (*lan) address(i int) string { return fmt.Sprintf("10.77.0.%d:7946", i+1) }

// settings implements [network]. By the HTTP address dial knows the node.
func (*lan) settings(i int) (env, args []string) {
	return []string{"QUORATE_TRANSPORT__ALLOW_INSECURE=true"}, []string{"-http", fmt.Sprintf("127.0.1.%d:0", i+1)}
}

func (l *lan) start(i int, cmd *exec.Cmd) error { return l.nodes[i].do(cmd.Start) }

func (l *lan) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := net.ResolveTCPAddr(network, address)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	err = l.nodes[to.IP.To4()[3]-1].do(func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// cut plugs the side into a switch of its own.
func (l *lan) cut(side ...int) { l.replug("apart", side...) }

func (l *lan) heal() {
	for i := range l.nodes {
		l.replug("whole", i)
	}
}

func (l *lan) replug(bridge string, nodes ...int) {
	l.t.Helper()
	for _, i := range nodes {
		require.NoError(l.t, l.sw.ip(fmt.Sprintf("link set port%d master %s", i, bridge)))
	}
}

// space is a network name space of the kernel: that of one thread, and of every
// process that this thread starts.
type space struct {
	thread int
	work   chan func()
}

// newSpace starts a thread in a new name space. It ends with the test.
func newSpace(t *testing.T) (*space, error) {
	t.Helper()
	s := &space{work: make(chan func())}
	made := make(chan error, 1) // One result.
	// Owned by the test; ends with it.
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with the goroutine, and runs no other.
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		s.thread = syscall.Gettid()
		made <- err
		for f := range s.work {
			f()
		}
	}()
	t.Cleanup(func() { close(s.work) })
	return s, <-made
}

// do runs f in the name space.
func (s *space) do(f func() error) error {
	done := make(chan error, 1)
	s.work <- func() { done <- f() }
	return <-done
}

// ip configures the name space by commands of the program ip.
func (s *space) ip(commands ...string) error {
	for _, c := range commands {
		err := s.do(func() error {
			out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", c, err, strings.TrimSpace(string(out)))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// relays is a network on loopback addresses, which needs no privileges. Each node tells the
// others the address of its relay. The relay passes on to the node what comes from its side
// of a cut, and holds the rest back until there is no cut.
type relays struct {
	hosts []string // The hosts that the nodes tell each other, and dial from.
	binds []string // The addresses at which the nodes listen.
	port  int
	dials net.Dialer

	mu     sync.Mutex
	apart  map[string]bool // The hosts that are cut off.
	healed chan struct{}   // Closed when there is no cut.
}

var _ network = (*relays)(nil)

// newRelays starts the relays of n places. They end with the test.
func newRelays(t *testing.T, n int) *relays {
	t.Helper()
	r := &relays{port: attachedtest.Ports(t, 1)[0], healed: make(chan struct{})}
	close(r.healed)
	prefix := fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256)) // Other networks draw other hosts.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	var listeners []net.Listener
	for i := range n {
		r.hosts = append(r.hosts, fmt.Sprintf("%s.%d", prefix, i+1))
		r.binds = append(r.binds, fmt.Sprintf("%s.%d:%d", prefix, 101+i, r.port))
		l, err := net.Listen("tcp", r.address(i))
		require.NoError(t, err)
		listeners = append(listeners, l)
	}
	for i, l := range listeners {
		work.Go(func() { r.serve(ctx, l, i) }) // Owned by the test, whose end closes l.
	}
	t.Cleanup(func() {
		cancel()
		for _, l := range listeners {
			_ = l.Close() // Nobody waits for a connection any more.
		}
		work.Wait()
	})
	return r
}

func (r *relays) address(i int) string { return fmt.Sprintf("%s:%d", r.hosts[i], r.port) }

func (r *relays) settings(i int) (env, args []string) {
	return []string{"QUORATE_TRANSPORT__BIND=" + r.binds[i]}, nil
}

func (*relays) start(_ int, cmd *exec.Cmd) error { return cmd.Start() }

func (r *relays) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return r.dials.DialContext(ctx, network, address)
}

func (r *relays) cut(side ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apart, r.healed = map[string]bool{}, make(chan struct{})
	for _, i := range side {
		r.apart[r.hosts[i]] = true
	}
}

func (r *relays) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apart = nil
	close(r.healed)
}

// pass waits until there is no cut between two hosts, or ctx ends.
func (r *relays) pass(ctx context.Context, from, to string) error {
	r.mu.Lock()
	parted, healed := r.apart[from] != r.apart[to], r.healed
	r.mu.Unlock()
	if !parted {
		return nil
	}
	select {
	case <-healed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve relays the connections to the i-th node.
func (r *relays) serve(ctx context.Context, l net.Listener, i int) {
	var work sync.WaitGroup
	defer work.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		work.Go(func() { r.relay(ctx, conn, i) }) // Owned by serve; ends with ctx or the connection.
	}
}

// relay carries one connection to the i-th node. By the address from which it comes the
// relay knows the node that dials.
func (r *relays) relay(ctx context.Context, in net.Conn, i int) {
	defer func() { _ = in.Close() }() // The connection may be closed already.
	from := in.RemoteAddr().(*net.TCPAddr).IP
	if r.pass(ctx, from.String(), r.hosts[i]) != nil {
		return
	}
	dialer := r.dials
	dialer.LocalAddr = &net.TCPAddr{IP: from}
	out, err := dialer.DialContext(ctx, "tcp", r.binds[i])
	if err != nil {
		return // Nobody listens there; the end of the connection says so.
	}
	defer func() { _ = out.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { r.carry(ctx, in, out, r.hosts[i], from.String()) }) // Owned by relay; ends with the connection.
	r.carry(ctx, out, in, from.String(), r.hosts[i])
	back.Wait()
}

// carry copies what one end of a connection sends to the other end. When either ends, carry
// closes both.
func (r *relays) carry(ctx context.Context, to, from net.Conn, fromHost, toHost string) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if r.pass(ctx, fromHost, toHost) != nil {
			return
		}
		_, failed := to.Write(buffer[:n])
		if err != nil || failed != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}
