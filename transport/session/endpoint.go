// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The endpoint has all lanes and sessions of a node. First its construction and
// handlers; then the outbound lanes, found or made by outboundFor and renamed by adopt
// when an address has answered; then whom it refuses (Block, Refuse); then probes,
// handshakes without a session; at the end Shutdown, which lingers and closes
// everything, and Wait.

const (
	// maxBlocked is how many blocked incarnations are remembered; the oldest is
	// forgotten first.
	maxBlocked = 16 << 10

	// maxInbound is how many inbound sessions are remembered, and how many claims of
	// nodes.
	maxInbound = 16 << 10
)

// key names a lane to, or a session of, one incarnation.
type key struct {
	node  gossip.NodeID
	class transport.LaneClass
}

// Endpoint is one node's end of all its pipes.
type Endpoint struct {
	id       transport.Identity
	cfg      transport.Config
	dialer   Dialer
	notices  func(transport.Notice)
	handlers atomic.Pointer[map[transport.Service]transport.Handler] // Replaced under mu, never changed.
	pool     wire.Pool
	counts   counts
	sessions atomic.Uint64
	secret   secret
	disputes disputes
	inMax    int // maxInbound; smaller in tests.
	closing  atomic.Bool
	once     sync.Once
	wg       sync.WaitGroup

	mu       sync.Mutex
	started  bool
	closed   bool // No goroutine may be started any more.
	out      map[key]*outbound
	named    map[gossip.Address]*outbound // Connected control lanes, by address.
	in       map[key]*inbound
	claims   map[gossip.NodeID]*claim // By node; has at least every node of in that is connected.
	accepted map[*accepted]struct{}
	probes   map[*context.CancelFunc]struct{}
	blocked  map[gossip.NodeID]string
	order    []gossip.NodeID // The keys of blocked, oldest first.
}

// New returns an endpoint that dials by d. The function notices may be nil.
func New(id transport.Identity, cfg transport.Config, d Dialer, notices func(transport.Notice)) (*Endpoint, error) {
	if notices == nil {
		notices = func(transport.Notice) {}
	}
	if id.ClusterID == nil {
		id.ClusterID = func() gossip.ClusterID { return gossip.ClusterID{} }
	}
	err := errors.Join(cfg.Validate(), checkIdentity(id))
	if err != nil {
		return nil, err
	}
	e := &Endpoint{
		id: id, cfg: cfg, dialer: d, notices: notices, inMax: maxInbound,
		out:      make(map[key]*outbound),
		named:    make(map[gossip.Address]*outbound),
		in:       make(map[key]*inbound),
		claims:   make(map[gossip.NodeID]*claim),
		secret:   newSecret(),
		disputes: disputes{inquiries: make(map[gossip.Address]*inquiry)},
		accepted: make(map[*accepted]struct{}),
		probes:   make(map[*context.CancelFunc]struct{}),
		blocked:  make(map[gossip.NodeID]string),
	}
	e.handlers.Store(&map[transport.Service]transport.Handler{})
	return e, nil
}

func checkIdentity(id transport.Identity) error {
	var errs []error
	if err := id.Node.Address.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("transport: the node's own address: %w", err))
	}
	if id.Node.UID == 0 {
		errs = append(errs, errors.New("transport: the node has no uid"))
	}
	if id.Cluster == "" || len(id.Cluster) > 255 {
		errs = append(errs, fmt.Errorf("transport: cluster name of %d bytes: must be 1 to 255", len(id.Cluster)))
	}
	if p := id.Protocol; p.Min == 0 || p.Min > p.Max {
		errs = append(errs, fmt.Errorf("transport: protocol range %d to %d", p.Min, p.Max))
	}
	return errors.Join(errs...)
}

// Self returns the node's identity.
func (e *Endpoint) Self() gossip.NodeID { return e.id.Node }

// Counters returns a snapshot of the counters.
func (e *Endpoint) Counters() transport.Counters { return e.counts.snapshot() }

// Handle registers the handler of a service. It panics for service 0, a nil handler,
// or a second handler.
func (e *Endpoint) Handle(s transport.Service, h transport.Handler) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := maps.Clone(*e.handlers.Load())
	if _, ok := next[s]; ok || s == 0 || h == nil {
		panic(fmt.Sprintf("transport: Handle of service %d: zero, twice, or without a handler", s))
	}
	next[s] = h
	e.handlers.Store(&next)
}

// Begin marks the endpoint as started. It reports false when the endpoint was started
// before or is closed.
func (e *Endpoint) Begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started || e.closing.Load() {
		return false
	}
	e.started = true
	return true
}

// Lane returns a handle to the lane of class k to a peer.
func (e *Endpoint) Lane(to gossip.NodeID, k transport.LaneClass) transport.Lane {
	return &lane{e: e, to: to, class: k}
}

// Go runs f on a goroutine that [Endpoint.Wait] waits for. It reports false,
// and does nothing, when the endpoint is closed.
func (e *Endpoint) Go(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.wg.Go(f) // Owner: the endpoint. Ends with f. Waited for by Wait.
	return true
}

// outboundFor returns the queue for messages to a peer. If there is none, it makes one
// when create is set, and returns nil otherwise.
func (e *Endpoint) outboundFor(to gossip.NodeID, k transport.LaneClass, create bool) (*outbound, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Load() {
		return nil, transport.ErrClosed
	}
	if why, ok := e.blocked[to]; ok {
		return nil, blockedError(to, why)
	}
	if o := e.out[key{to, k}]; o != nil && o.usable() {
		return o, nil
	}
	if o := e.named[to.Address]; to.UID == 0 && o != nil && o.usable() {
		return o, nil
	}
	if !create {
		return nil, nil
	}
	o := &outbound{e: e, class: k, address: to.Address, peer: to, quit: make(chan struct{})}
	o.init(e, k)
	e.out[key{to, k}] = o
	e.wg.Go(o.run) // Owner: the endpoint. Ends with the session or by kill. Waited for by Wait.
	return o, nil
}

// adopt gives a lane that had only an address the identity of the node that answered
// there. If the node has a lane already, that lane takes over the messages, and moved
// is true.
func (e *Endpoint) adopt(o *outbound, node gossip.NodeID) (moved bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if why, ok := e.blocked[node]; ok {
		return false, blockedError(node, why)
	}
	e.drop(o)
	k := key{node, o.class}
	if other := e.out[k]; other != nil && other.absorb(&o.queue) {
		return true, nil
	}
	o.peer = node
	e.out[k] = o
	return false, nil
}

// drop takes o out of the map. The caller holds mu.
func (e *Endpoint) drop(o *outbound) {
	k := key{o.peer, o.class}
	if e.out[k] == o {
		delete(e.out, k)
	}
}

func (e *Endpoint) forget(o *outbound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(o)
}

// setNamed records whether o is the connected control lane to its address.
func (e *Endpoint) setNamed(o *outbound, connected bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case o.class != machine.LaneControl:
	case connected:
		e.named[o.address] = o
	case e.named[o.address] == o:
		delete(e.named, o.address)
	}
}

// Block refuses a peer for good, and ends its lanes and connections.
func (e *Endpoint) Block(peer gossip.NodeID, why string) {
	err := blockedError(peer, why)
	for _, o := range e.addBlocked(peer, why) {
		o.kill(err)
	}
	for _, a := range e.acceptedFrom(peer) {
		a.refuse(err)
	}
}

func (e *Endpoint) addBlocked(peer gossip.NodeID, why string) []*outbound {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.blocked[peer]; !ok {
		e.order = append(e.order, peer)
	}
	e.blocked[peer] = why
	if len(e.order) > maxBlocked {
		delete(e.blocked, e.order[0])
		e.order = e.order[1:]
	}
	var lanes []*outbound
	for k, o := range e.out {
		if k.node == peer {
			lanes = append(lanes, o)
		}
	}
	return lanes
}

func (e *Endpoint) acceptedFrom(peer gossip.NodeID) []*accepted {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*accepted
	for a := range e.accepted {
		if a.peer == peer {
			found = append(found, a)
		}
	}
	return found
}

// Source returns where one of a peer's open connections comes from.
func (e *Endpoint) Source(peer gossip.NodeID) transport.Source {
	for _, a := range e.acceptedFrom(peer) {
		return transport.Source{Address: a.caller.Address, Certificate: a.caller.Certificate}
	}
	return transport.Source{}
}

func blockedError(peer gossip.NodeID, why string) *transport.RefusedError {
	return &transport.RefusedError{
		Reason: transport.ReasonBlocked, Peer: peer,
		Detail: fmt.Sprintf("%s; this incarnation cannot come back, restart the process to join as a new one", why),
	}
}

// Refuse counts and notices a refusal.
func (e *Endpoint) Refuse(address string, node gossip.NodeID, err *transport.RefusedError, inbound bool) {
	counter := &e.counts.refusedOutbound[err.Reason]
	if inbound {
		counter = &e.counts.refusedInbound[err.Reason]
	}
	counter.Add(1)
	e.notices(transport.Refused{Address: address, Node: node, Err: err, Inbound: inbound})
}

// refuseCaller counts and notices the refusal of an accepted connection.
func (e *Endpoint) refuseCaller(c *Caller, err *transport.RefusedError) {
	e.counts.refusedInbound[err.Reason].Add(1)
	e.notices(transport.Refused{Address: c.Address, Node: err.Peer, Err: err, Inbound: true, Certificate: c.Certificate})
}

// NotAccepted counts and notices that no connection could be accepted.
func (e *Endpoint) NotAccepted(err error) {
	e.counts.notAccepted.Add(1)
	e.notices(transport.NotAccepted{Err: err})
}

// FellBack counts a connection that the dialer has opened over another wire than it
// would have, see [transport.FellBack], and notices it when news is set.
func (e *Endpoint) FellBack(to gossip.Address, news bool) {
	e.counts.fallbacks.Add(1)
	if news {
		e.notices(transport.FellBack{Peer: to})
	}
}

// Probe completes a handshake with the node at an address, and checks that the node
// may have the roles.
func (e *Endpoint) Probe(ctx context.Context, address gossip.Address, roles []string) (gossip.NodeID, error) {
	w, err := e.introduce(ctx, e.cfg.HandshakeTimeout, e.hello(gossip.NodeID{Address: address}, machine.LaneControl), roles)
	if err != nil {
		return gossip.NodeID{}, err
	}
	return w.Node, nil
}

// introduce dials the node to which a Hello without a session is addressed, and
// returns its Welcome.
func (e *Endpoint) introduce(ctx context.Context, limit time.Duration, h wire.Hello, roles []string) (*wire.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !e.enterProbe(&cancel) {
		return nil, transport.ErrClosed
	}
	defer e.leaveProbe(&cancel)
	w, err := e.probe(ctx, h, roles)
	if e.closing.Load() && err != nil {
		err = transport.ErrClosed
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return w, err
}

func (e *Endpoint) probe(ctx context.Context, h wire.Hello, roles []string) (*wire.Welcome, error) {
	address := h.To.Address
	pipe, err := e.dial(ctx, address, machine.LaneControl)
	if err != nil {
		return nil, err
	}
	defer pipe.Close()
	defer context.AfterFunc(ctx, pipe.Close)()
	w, err := e.exchange(pipe, address, h)
	if err != nil {
		return nil, err
	}
	if c, ok := pipe.(Certified); ok {
		if err := c.Covers(roles); err != nil {
			r := &transport.RefusedError{Reason: transport.ReasonCertificate, Peer: gossip.NodeID{Address: address}, Detail: err.Error()}
			e.Refuse(address.String(), r.Peer, r, false)
			return nil, r
		}
	}
	return w, nil
}

func (e *Endpoint) enterProbe(cancel *context.CancelFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing.Load() || e.closed {
		return false
	}
	e.wg.Add(1)
	e.probes[cancel] = struct{}{}
	return true
}

func (e *Endpoint) leaveProbe(cancel *context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.probes, cancel)
	e.wg.Done()
}

// Shutdown refuses further appends, lingers, and closes every pipe.
func (e *Endpoint) Shutdown() { e.once.Do(e.shutdown) }

func (e *Endpoint) shutdown() {
	e.mu.Lock()
	e.closing.Store(true)
	lanes := make([]*outbound, 0, len(e.out))
	for _, o := range e.out {
		lanes = append(lanes, o)
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Linger)
	defer cancel()
	for _, o := range lanes {
		o.drained(ctx.Done())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, o := range e.out {
		o.kill(transport.ErrClosed)
	}
	for a := range e.accepted {
		a.stop()
	}
	for p := range e.probes {
		(*p)()
	}
}

// Wait waits for every goroutine of the endpoint, after [Endpoint.Shutdown].
func (e *Endpoint) Wait() { e.wg.Wait() }

// quarter is how often a connection is checked for silence: often enough to notice it
// soon after MaxSilence.
func (e *Endpoint) quarter() time.Duration { return e.cfg.MaxSilence / 4 }
