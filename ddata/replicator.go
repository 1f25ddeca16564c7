// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
)

// The file makes a [Replicator] and ends it. New opens the store and loads it (disk.go),
// builds the machine and its driver (driver.go), and only then attaches itself to the node
// (feed.go), by which the other members learn that this node replicates; run ends everything
// when the node has ended.

// Host has replicated data: it is a [Replicator], or a node that has one.
type Host interface{ Data() *Replicator }

// Replicator is the replicated data of one node. It ends with the node.
type Replicator struct {
	node   *membership.Node
	self   gossip.NodeID
	cfg    Config
	log    *slog.Logger
	types  types
	keys   groupTable
	groups []*group

	// The driver runs the machine on a goroutine of its own, apart from that of the node:
	// merging and decoding never delay what the members ask of each other.
	driver *machine.Driver
	handle *machine.Handle
	feed   feed
	calls  calls
	hub    hub
	disk   disk
	link   link

	machine *protocol.Machine // It takes no more steps when the driver has ended.

	ctx     context.Context //nolint:containedctx // Ends with the replicator, and with it what the goroutines wait for.
	cancel  context.CancelFunc
	workers sync.WaitGroup // All goroutines of the replicator but that of run.
	ended   atomic.Bool    // The node has ended: nothing is read or changed any more.
	stopped chan struct{}  // Closed when every goroutine has ended.

	counters counters
	metrics  *metrics
	meters   metric.MeterProvider // Nil stands for the global provider.
}

// group is a group of keys on this node.
type group struct {
	keyGroup

	index   uint8
	table   *table.Table
	replica protocol.ReplicaID // 0 if this node does not hold the group.
	meta    protocol.Meta      // What was in the store.
	fresh   bool               // The store was opened for the first time.
	route   atomic.Pointer[currentRoute]

	// spreading says that the machine was told of local changes, and has not fired a timer
	// since: it sends them without being told again.
	spreading atomic.Bool
	alarm     atomic.Pointer[string]      // Why there are no majorities, and what will or must happen; nil while there are.
	wentOn    atomic.Pointer[lossWarning] // When the keys went on without replicas last, nil for never.
	settled   atomic.Bool                 // The replica of this node has counted, whatever comes next: see Unready.
	owed      atomic.Bool                 // The machine could not be told of local changes, and is told at its next timer.
}

// currentRoute is a route with a channel that is closed when another route replaces it.
type currentRoute struct {
	*protocol.Route

	over chan struct{}
}

// Option is a collaborator that only code can give.
type Option func(*Replicator)

// WithLogger sets where the replicator logs. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(r *Replicator) { r.log = l } }

// WithMeterProvider sets where the metrics go. The default is the global provider of
// OpenTelemetry, which does nothing until the program sets it.
func WithMeterProvider(p metric.MeterProvider) Option { return func(r *Replicator) { r.meters = p } }

// WithStore sets how the store of the durable keys is opened, in a directory and for a
// cluster. Open is called by [New] if there are durable keys that this node holds; the
// replicator closes the store.
func WithStore(open func(ctx context.Context, dir, cluster string) (store.Store, error)) Option {
	return func(r *Replicator) { r.disk.open = open }
}

// WithTypes adds types to those that every node knows, [crdt.Builtin]. All nodes need the
// same ones.
func WithTypes(all ...crdt.Type) Option {
	return func(r *Replicator) {
		for _, t := range all {
			r.types[t.Name()] = t
		}
	}
}

// types are the types of values that are known, by name.
type types map[string]crdt.Type

var _ wire.Types = types(nil)

// Type returns the type of a name.
func (t types) Type(name string) (crdt.Type, bool) {
	typ, ok := t[name]
	return typ, ok
}

// New puts replicated data on a node. It is called once for each node, best before the node
// joins. It returns when what the disk of the node holds is loaded.
func New(node *membership.Node, cfg Config, opts ...Option) (*Replicator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ddata: %w", err)
	}
	r := &Replicator{
		node: node, self: node.Self(), cfg: cfg, log: slog.Default(), types: types{}, keys: cfg.keyGroups(), stopped: make(chan struct{}),
	}
	r.hub.interval, r.disk.r, r.link.r, r.calls.r = cfg.NotifyInterval, r, r, r
	r.ctx, r.cancel = context.WithCancel(context.Background())
	WithTypes(crdt.Builtin()...)(r)
	for _, opt := range opts {
		opt(r)
	}
	r.log, r.metrics = machine.LimitLog(r.log), newMetrics(r, r.meters)
	if err := r.build(); err != nil {
		r.cancel()
		r.disk.close()
		return nil, fmt.Errorf("ddata: %w", err)
	}
	if err := r.attach(); err != nil {
		if errors.Is(err, membership.ErrClosed) {
			<-node.Done() // Then it says why.
			err = r.closed()
		}
		r.cancel()
		_ = r.driver.Close() // It never fails.
		r.disk.close()
		return nil, fmt.Errorf("ddata: %w", err)
	}
	r.metrics.start()
	// The goroutines are owned by the replicator and end with the node; Close of the node
	// does not wait for them, AwaitEnd does.
	r.workers.Go(func() { r.feed.run(r.ctx, r.handle) })
	go r.run()
	return r, nil
}

// Data returns r, which makes it a [Host].
func (r *Replicator) Data() *Replicator { return r }

// Node returns the node.
func (r *Replicator) Node() *membership.Node { return r.node }

// MaxValueBytes returns the bound of one value, for those who leave room below it. The size of a value is that of
// its method Size, when it is [crdt.ORMap.Settled] or the like.
func (r *Replicator) MaxValueBytes() int { return r.cfg.MaxValueBytes }

// build makes the groups and their machine, with what the store holds.
func (r *Replicator) build() error {
	for i, of := range r.keys.all {
		g := &group{keyGroup: of, index: uint8(i)}
		if of.role == "" || r.node.HasRole(of.role) {
			g.replica = protocol.ReplicaID(r.self.UID)
		}
		g.table = table.New(table.Config{Self: protocol.OriginOf(r.self.UID), MaxValueBytes: r.cfg.MaxValueBytes, MaxBytes: r.cfg.MaxBytes})
		g.route.Store(&currentRoute{&protocol.Route{}, make(chan struct{})})
		r.groups = append(r.groups, g)
	}
	if err := r.disk.load(); err != nil {
		return err
	}
	var seed [16]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return fmt.Errorf("no random numbers: %w", err)
	}
	timing := protocol.DefaultTiming()
	timing.Gossip, timing.Spread, timing.Sweep = r.cfg.GossipInterval, r.cfg.SpreadInterval, r.cfg.SweepInterval
	cfg := protocol.Config{
		Self: r.self, Timing: timing, Bounds: protocol.DefaultBounds(), Standing: true,
		Rand: rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:]), binary.LittleEndian.Uint64(seed[8:]))),
	}
	for _, g := range r.groups {
		cfg.Groups = append(cfg.Groups, protocol.Group{
			Name: g.name, Role: g.role, Copies: g.copies, Durable: g.durable, Table: g.table, Replica: g.replica, Meta: g.meta, Fresh: g.fresh, ExpireAfter: g.expire, GoOn: r.cfg.LostMajority == lostGoOn,
			WriteBehind: protocol.WriteBehindBounds{Interval: g.behind, Bytes: r.cfg.WriteBehindBytes},
		})
	}
	r.machine = protocol.New(cfg)
	return r.drive(r.machine)
}

// attach makes the replicator a part of its node.
func (r *Replicator) attach() error {
	r.feed.wake = make(chan struct{}, 1)
	handle, err := r.node.Attach(membership.Attachment{
		Component: machine.Component{Name: protocol.ComponentName, Machine: &r.feed},
	})
	if err != nil {
		return err
	}
	r.feed.node.Store(handle)
	r.node.Transport().Handle(protocol.Service, r.link.received)
	r.node.Notices(r.link.noticed)
	return nil
}

// run waits for the end of the node, ends everything, and waits until every goroutine has
// ended.
func (r *Replicator) run() {
	<-r.node.Done()
	r.metrics.stop()
	r.ended.Store(true)
	_ = r.driver.Close() // It never fails.
	r.disk.finish(r.machine.Final())
	r.cancel()
	r.calls.end()
	r.hub.end()
	r.workers.Wait()
	r.disk.close()
	close(r.stopped)
}

// AwaitEnd waits until the node has ended and everything of the replicator with it, or ctx
// ends.
func (r *Replicator) AwaitEnd(ctx context.Context) error {
	select {
	case <-r.stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readyWithin is for how long a node that has come up is not ready since its replica does not count: what keeps it from
// that may be other nodes, which may wait for this one.
const readyWithin = time.Minute

// Unready returns the reasons why whoever restarts one node after the other has to wait for this one, each a
// sentence; none if it need not. A node that has come up replaces another one for the data as soon as its replica
// counts in each group of keys that it is to hold: until then the loss of one more may take the majority. After a
// minute, and once it has counted, that is no reason any more.
func (r *Replicator) Unready() []string {
	up := r.feed.up.Load()
	if up == nil || time.Since(*up) >= readyWithin {
		return nil
	}
	var why []string
	for _, g := range r.groups {
		route := g.route.Load()
		if g.replica == 0 || g.settled.Load() {
			continue
		}
		state := "the set of replicas has yet to change"
		switch {
		case route.Gen == 0:
			state = "no set of replicas is known yet"
		case route.Counts:
			state = "the others have yet to hear that it does"
		case route.Holds:
			state = "it takes over what the others hold"
		}
		why = append(why, fmt.Sprintf("the replica of the keys %q does not count yet: %s; that is waited for up to %v", g.name, state, up.Add(readyWithin).Format(time.RFC3339)))
	}
	return why
}

// AwaitReady waits until this node counts as a replica of every group of keys that it is to
// hold, having taken over what the others hold, and knows the replicas of the other groups;
// or until ctx ends.
func (r *Replicator) AwaitReady(ctx context.Context) error {
	if r.ended.Load() {
		return fmt.Errorf("ddata: %w", r.closed())
	}
	for _, g := range r.groups {
		for {
			route := g.route.Load()
			if route.Gen > 0 && (g.replica == 0 || route.Settled) {
				break
			}
			if err := r.rerouted(ctx, route); err != nil {
				return fmt.Errorf("ddata: keys %q are not ready: %w", g.name, err)
			}
		}
	}
	return nil
}

// rerouted waits until another route has taken the place of this one.
func (r *Replicator) rerouted(ctx context.Context, route *currentRoute) error {
	select {
	case <-route.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.ctx.Done():
		return r.closed()
	}
}

// closed returns the error of calls after the end of the node: [ErrClosed], with the reason
// for which the node ended, when that is known already.
func (r *Replicator) closed() error {
	if err := r.node.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// over returns why an input could not be posted: ctx or the replicator has ended.
func (r *Replicator) over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.closed()
}

// moment is how long a retry waits when nothing says that anything has changed.
const moment = 10 * time.Millisecond
