// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// loop steps a few machines in virtual time. It is as small as the tests of
// this package need: a fixed latency, links that can be cut, nodes that crash or
// freeze.
type loop struct {
	t       testing.TB
	now     time.Duration
	events  []event
	order   int
	nodes   map[gossip.Address]*node
	cut     func(from, to gossip.Address) bool
	drop    func(from, to gossip.NodeID, message any) bool
	alter   func(from, to gossip.NodeID, message any) any
	calls   func(n *node, call machine.Call)
	latency time.Duration
	wall    time.Time
	cfg     protocol.Config
	sent    map[string]int // Messages by their type.
	trace   *strings.Builder
	roles   func(i int) []string // Of the i-th node; nil: none.
	speaks  func(i int) uint16   // The last version of the protocol that the i-th node speaks; nil: 4.
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type node struct {
	loop      *loop
	id        gossip.NodeID
	machine   *protocol.Machine
	timers    map[machine.Timer]int // The order of the event that is valid.
	events    []any                 // What it published.
	fences    []component.Fenced    // Those of them that say who is fenced.
	times     []time.Duration
	decisions []machine.Decide
	blocks    []protocol.Block
	dead      bool
	frozen    bool
	backlog   []machine.Input
	until     machine.Instant
	stopping  *component.Stopping
}

func newLoop(t testing.TB) *loop {
	t.Helper()
	return &loop{
		t: t, nodes: map[gossip.Address]*node{}, latency: time.Millisecond, sent: map[string]int{},
		wall: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), cfg: protocol.Default(),
	}
}

func address(i int) gossip.Address {
	return gossip.Address{Host: "10.0.0." + fmt.Sprint(i), Port: 7946}
}

// start starts a node at the i-th address with this uid.
func (l *loop) start(i int, uid gossip.UID, change ...func(*protocol.Config, *protocol.Dependencies)) *node {
	l.t.Helper()
	cfg := l.cfg
	deps := protocol.Dependencies{
		Rand: rand.New(rand.NewPCG(uint64(i), uint64(uid))),
		Downing: protocol.Downing{
			Config: downing.Default(), Decide: downing.KeepMajority{}.DecideNow, Class: downing.KeepMajority{}.Class(),
		},
	}
	for _, c := range change {
		c(&cfg, &deps)
	}
	factory, err := fd.NewFactory(cfg.FailureDetector)
	require.NoError(l.t, err)
	deps.Detector = factory
	id := gossip.NodeID{Address: address(i), UID: uid}
	self := gossip.Member{Node: id, Protocol: gossip.ProtocolRange{Min: 1, Max: 4}}
	if l.roles != nil {
		self.Roles = l.roles(i)
	}
	if l.speaks != nil {
		self.Protocol.Max = l.speaks(i)
	}
	m, err := protocol.New(cfg, self, deps)
	require.NoError(l.t, err)
	n := &node{loop: l, id: id, machine: m, timers: map[machine.Timer]int{}}
	l.nodes[id.Address] = n
	n.step(machine.Started{})
	return n
}

// join starts a node and lets it join through the first address.
func (l *loop) join(i int, change ...func(*protocol.Config, *protocol.Dependencies)) *node {
	n := l.start(i, gossip.UID(i), change...)
	n.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	return n
}

// cluster starts n nodes and runs until all are up everywhere.
func (l *loop) cluster(n int, change ...func(*protocol.Config, *protocol.Dependencies)) []*node {
	l.t.Helper()
	nodes := make([]*node, n)
	for i := range n {
		nodes[i] = l.join(i+1, change...)
	}
	l.until(20*time.Second, func() bool { return l.allUp(n) })
	l.run(2 * time.Second)
	return nodes
}

// youngest is the age at which a process may vote for a cluster to be founded: who
// hosts by its predecessor's answers has stopped by then.
func (l *loop) youngest() time.Duration { return l.cfg.Fence + l.cfg.Fence/50 }

func (l *loop) allUp(n int) bool {
	for _, node := range l.nodes {
		if !node.dead && !node.sees(n, gossip.Up) {
			return false
		}
	}
	return true
}

// sees tells whether the node sees n members, all of them with this status.
func (n *node) sees(count int, status gossip.Status) bool {
	members := n.machine.State().Members()
	for _, m := range members {
		if m.Status != status {
			return false
		}
	}
	return len(members) == count
}

func (l *loop) after(d time.Duration, do func()) int {
	l.order++
	l.events = append(l.events, event{l.now + d, l.order, do})
	return l.order
}

// next runs the next event up to a moment.
func (l *loop) next(until time.Duration) bool {
	best := -1
	for i, e := range l.events {
		if best < 0 || e.at < l.events[best].at || e.at == l.events[best].at && e.order < l.events[best].order {
			best = i
		}
	}
	if best < 0 || l.events[best].at > until {
		return false
	}
	e := l.events[best]
	l.events = append(l.events[:best], l.events[best+1:]...)
	l.now = max(l.now, e.at)
	e.do()
	return true
}

func (l *loop) run(d time.Duration) {
	end := l.now + d
	for l.next(end) {
	}
	l.now = end
}

// until runs until a condition holds and returns how long that took.
func (l *loop) until(limit time.Duration, condition func() bool) time.Duration {
	l.t.Helper()
	start := l.now
	for !condition() {
		if l.now-start > limit || !l.next(start+limit) {
			l.t.Fatalf("not within %v\n%s", limit, l.describe())
		}
	}
	return l.now - start
}

// String describes the nodes: for messages of checks that are made often, and of which most are never read.
func (l *loop) String() string { return l.describe() }

func (l *loop) describe() string {
	var b strings.Builder
	for i := range 50 {
		if n := l.nodes[address(i)]; n != nil && !n.dead {
			fmt.Fprintf(&b, "%v\n%s\n%s\n", n.id, n.machine.Describe(), n.machine.Explain())
		}
	}
	return b.String()
}

func (n *node) step(in machine.Input) {
	switch {
	case n.dead:
		return
	case n.frozen:
		n.backlog = append(n.backlog, in)
		return
	}
	l := n.loop
	now := machine.Now{Mono: machine.Instant(l.now) + 1, Wall: l.wall.Add(l.now)}
	var out machine.Outbox
	n.machine.Step(now, in, &out)
	for _, e := range out.Effects() {
		n.carryOut(e)
	}
}

func (n *node) carryOut(effect machine.Effect) {
	l := n.loop
	switch e := effect.(type) {
	case machine.Send:
		l.send(n.id, e.To, e.Message)
	case machine.Arm:
		var order int
		order = l.after(max(time.Duration(e.At-1)-l.now, 0), func() {
			if n.timers[e.Timer] == order {
				delete(n.timers, e.Timer)
				n.step(machine.Fired{Timer: e.Timer})
			}
		})
		n.timers[e.Timer] = order
	case machine.Disarm:
		delete(n.timers, e.Timer)
	case machine.Publish:
		n.note(e.Event)
	case machine.Decide:
		n.decisions = append(n.decisions, e)
		l.tracef(n, "decides %s %s: %s (%s)", e.Topic, e.Subject, e.Verdict, e.Reason)
	case machine.Call:
		l.calls(n, e)
	case protocol.Probe:
		l.probe(n, e)
	case protocol.Block:
		n.blocks = append(n.blocks, e)
		l.tracef(n, "blocks %v", e.Node)
	}
}

func (n *node) note(published any) {
	n.events = append(n.events, published)
	n.times = append(n.times, n.loop.now)
	switch e := published.(type) {
	case component.Standing:
		n.until = e.Until
	case component.Stopping:
		n.stopping, n.dead = &e, true
		n.loop.tracef(n, "stops: %v", e.Reason)
	case component.Fenced:
		n.fences = append(n.fences, e)
		n.loop.tracef(n, "fenced %v graceful=%v", e.Node, e.Graceful)
	case protocol.Refused:
		n.loop.tracef(n, "refused %s of %v: %v", e.What, e.Peer, e.Refusal)
	}
}

// hosts tells whether the node may host now.
func (n *node) hosts() bool { return !n.dead && machine.Instant(n.loop.now)+1 <= n.until }

func (n *node) freeze() { n.frozen = true }

func (n *node) thaw() {
	n.frozen = false
	backlog := n.backlog
	n.backlog = nil
	for _, in := range backlog {
		n.step(in)
	}
}

func (l *loop) tracef(n *node, format string, values ...any) {
	if l.trace != nil {
		fmt.Fprintf(l.trace, "%7.3fs %v ", l.now.Seconds(), n.id.Address)
		fmt.Fprintf(l.trace, format+"\n", values...)
	}
}

func (l *loop) send(from, to gossip.NodeID, message any) {
	l.sent[strings.TrimPrefix(reflect.TypeOf(message).String(), "protocol.")]++
	if l.drop != nil && l.drop(from, to, message) || l.cut != nil && l.cut(from.Address, to.Address) {
		return
	}
	if l.alter != nil {
		message = l.alter(from, to, message)
	}
	l.after(l.latency, func() {
		target := l.nodes[to.Address]
		switch {
		case target == nil:
		case to.UID == 0 || target.id == to:
			target.step(machine.Received{From: from, Message: message})
		default:
			target.step(protocol.WronglyDialled{By: from})
		}
	})
}

func (l *loop) probe(n *node, p protocol.Probe) {
	target := l.nodes[p.Address]
	if l.cut != nil && (l.cut(n.id.Address, p.Address) || l.cut(p.Address, n.id.Address)) {
		return
	}
	l.after(2*l.latency, func() {
		if target == nil || target.dead {
			n.step(protocol.Probed{Address: p.Address, Err: errors.New("connection refused")})
			return
		}
		n.step(protocol.Probed{Address: p.Address, Node: target.id})
	})
}

// published returns the events of one type that a node published.
func published[T any](n *node) []T {
	var all []T
	for _, e := range n.events {
		if typed, ok := e.(T); ok {
			all = append(all, typed)
		}
	}
	return all
}

// splitAtThree cuts the links between the nodes 0 to 2 and all others.
func splitAtThree() func(from, to gossip.Address) bool {
	low := func(a gossip.Address) bool {
		return sort.SearchStrings([]string{address(3).Host}, a.Host) == 0 && a != address(3)
	}
	return func(from, to gossip.Address) bool { return low(from) != low(to) }
}
