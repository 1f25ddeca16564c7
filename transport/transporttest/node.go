// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
)

// Nodes for tests of transports: a test starts nodes in a [World], appends numbers
// with Send, and waits with Until and its relatives for what each node records: the
// numbers that it received and its notices.

// Spec describes the transport that a test wants.
type Spec struct {
	// Address is the address of the node. Zero: the world chooses a free one.
	Address gossip.Address

	// Cluster, ID, UID and Protocol are the node's own in its handshakes.
	Cluster  string
	ID       gossip.ClusterID
	UID      gossip.UID
	Protocol gossip.ProtocolRange

	Config  transport.Config
	Notices func(transport.Notice)

	// Known reports which peers may send large frames, see [transport.Identity].
	Known func(gossip.NodeID) bool
}

// World makes transports that can reach each other.
type World interface {
	// New returns a transport that is not started. The test closes it.
	New(t testing.TB, s Spec) transport.Transport

	// Break resets every connection between two nodes; they can be dialled
	// anew at once.
	Break(a, b gossip.Address)
}

// Service is the service for which every [Node] has a handler.
const Service transport.Service = 7

// Config returns the default configuration with shorter timeouts.
func Config() transport.Config {
	c := transport.Default()
	c.MaxSilence = 2 * time.Second
	c.RedialAfter = 20 * time.Millisecond
	c.GiveUpAfter = 8 * time.Second
	c.Linger = 50 * time.Millisecond
	return c
}

// Node is a started transport that records what happens to it.
type Node struct {
	transport.Transport

	hold chan struct{} // When not nil, handlers wait until it is closed.

	mu      sync.Mutex
	changed chan struct{}
	got     map[gossip.NodeID][]uint64
	total   int
	notices []transport.Notice
}

// withDefaults fills the zero fields of s.
func (s Spec) withDefaults() Spec {
	if s.Cluster == "" {
		s.Cluster = "bank"
	}
	if s.UID == 0 {
		s.UID = 1
	}
	if s.Protocol == (gossip.ProtocolRange{}) {
		s.Protocol = gossip.ProtocolRange{Min: 1, Max: 3}
	}
	if s.Config == (transport.Config{}) {
		s.Config = Config()
	}
	return s
}

// Start makes and starts a node, and closes it at the end of the test. When hold is
// not nil, the node's handler waits until hold is closed.
func Start(t testing.TB, w World, s Spec, hold chan struct{}) *Node {
	t.Helper()
	patience.Watch(t)
	n := &Node{hold: hold, changed: make(chan struct{}), got: make(map[gossip.NodeID][]uint64)}
	s = s.withDefaults()
	s.Notices = n.notice
	n.Transport = w.New(t, s)
	n.Handle(Service, n.handle)
	require.NoError(t, n.Start(context.Background()))
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func (n *Node) handle(from gossip.NodeID, frame []byte) {
	if n.hold != nil {
		<-n.hold
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got[from] = append(n.got[from], binary.BigEndian.Uint64(frame))
	n.total++
	n.announce()
}

func (n *Node) notice(x transport.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notices = append(n.notices, x)
	n.announce()
}

func (n *Node) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// Notices returns what was noticed so far.
func (n *Node) Notices() []transport.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.notices)
}

// Until waits until ok holds, which is called with the node's records locked.
func (n *Node) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	var late <-chan struct{}
	for {
		n.mu.Lock()
		done, changed := ok(), n.changed
		n.mu.Unlock()
		if done {
			return
		}
		if late == nil {
			late = patience.Ended(t)
		}
		select {
		case <-changed:
		case <-late:
			require.FailNow(t, "did not happen: "+what, "%s: got %d messages, notices %v", n.Self(), n.total, n.describe())
		}
	}
}

func (n *Node) describe() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var s strings.Builder
	for _, x := range n.notices {
		fmt.Fprintf(&s, "\n%T%+v", x, x)
	}
	return s.String()
}

// UntilReceived waits until count messages have been handled.
func (n *Node) UntilReceived(t testing.TB, count int) {
	t.Helper()
	n.Until(t, fmt.Sprintf("%d messages", count), func() bool { return n.total >= count })
}

// UntilNotice waits for a notice for which ok holds, and returns the first.
func UntilNotice[N transport.Notice](t testing.TB, n *Node, ok func(N) bool) N {
	t.Helper()
	var found N
	n.Until(t, fmt.Sprintf("a notice %T", found), func() bool {
		for _, x := range n.notices {
			if y, is := x.(N); is && ok(y) {
				found = y
				return true
			}
		}
		return false
	})
	return found
}

// RequireSequence demands that the messages from a node were exactly the
// numbers 0 to count-1, in order.
func (n *Node) RequireSequence(t testing.TB, from gossip.NodeID, count int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Len(t, n.got[from], count)
	for i, v := range n.got[from] {
		require.Equal(t, uint64(i), v, "message %d", i)
	}
}

// Number returns an encoding of i for [transport.Lane.Append].
func Number(i int) func([]byte) []byte {
	return func(b []byte) []byte { return binary.BigEndian.AppendUint64(b, uint64(i)) }
}

// Send appends one number, waiting for room as long as the lane is full.
func Send(t testing.TB, l transport.Lane, i int) {
	t.Helper()
	for {
		err := l.Append(Service, Number(i))
		if err == nil {
			return
		}
		require.ErrorIs(t, err, transport.ErrFull)
		require.NoError(t, l.Room(patience.Context(t)))
	}
}

// Refusal returns the [*transport.RefusedError] in err, and fails the test if there is
// none.
func Refusal(t testing.TB, err error) *transport.RefusedError {
	t.Helper()
	var refused *transport.RefusedError
	require.ErrorAs(t, err, &refused)
	return refused
}

// classes returns the three lane classes.
func classes() []transport.LaneClass {
	return []transport.LaneClass{machine.LaneControl, machine.LaneMessage, machine.LaneBulk}
}
