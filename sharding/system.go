// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// Host is what runs entities: a [System], or a node that has one.
type Host interface{ Sharding() *System }

// System is the sharding of one node: all kinds that run on it. It ends with
// the node.
type System struct {
	node       *membership.Node
	self       gossip.NodeID
	clock      *machine.SystemClock
	standing   *membership.Standing
	cfg        Config
	log        *slog.Logger
	strategy   allocation.Strategy // Asked by calls; nil when it is built in.
	control    *machine.Handle
	dispatcher dispatcher
	backlog    backlog
	clocks     clocks

	routers atomic.Pointer[map[string]*router] // Replaced under mu, never changed.
	mu      sync.Mutex                         // Guards starting of kinds, reloading, and closing.
	latest  Config                             // Of the last reload; differs from cfg in what may change.
	closing bool                               // No kind starts any more.

	lanes       sync.Map      // The nodes whose lanes somebody waits for.
	flushes     atomic.Uint64 // How often cells were flushed; turns their order.
	hostContext atomic.Pointer[hostContext]
	pool        workerPool
	workers     sync.WaitGroup // All goroutines but run.
	askPool     sync.Pool      // Asks that have ended. Of one system, since they hold timers and channels.
	decoders    sync.Pool
	messages    messagePool
	ended       chan struct{}   // Closed when everything has been abandoned.
	stopped     chan struct{}   // Closed when every goroutine has ended after that.
	canceled    context.Context //nolint:containedctx // An already canceled context, for entities that their shard has left behind.
	questions   questions
	ctx         context.Context //nolint:containedctx // The life of the system: ends what its goroutines wait for.
	cancel      context.CancelFunc
	counters    counters
	losses      losses
	forgeries   forgeries
	metrics     *metrics
	tracing     tracing
	providers   providers
}

// providers are where metrics and traces go; nil is the global one.
type providers struct {
	meters metric.MeterProvider
	traces trace.TracerProvider
}

// hostContext is the context that entities see.
type hostContext struct {
	ctx    context.Context //nolint:containedctx // Handed out to entities.
	cancel context.CancelFunc
}

// Option is a collaborator that only code can give.
type Option func(*System)

// WithLogger sets where the system logs. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *System) { s.log = l } }

// WithAllocation sets an allocation strategy in place of the configured one.
// It is asked on a goroutine of its own and may block; while it does not
// answer, or answers wrongly, least-shard decides.
func WithAllocation(a allocation.Strategy) Option { return func(s *System) { s.strategy = a } }

// WithMeterProvider sets where the metrics of sharding go. The default is the global
// provider of OpenTelemetry, which does nothing until the program sets it.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *System) { s.providers.meters = p }
}

// WithTracerProvider sets where the spans of messages go; it decides which traces
// are sampled. The default is the global provider of OpenTelemetry, which does
// nothing until the program sets it.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *System) { s.providers.traces = p }
}

// New puts sharding on a node. It is called once a node.
func New(node *membership.Node, cfg Config, opts ...Option) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s := &System{
		node: node, self: node.Self(), clock: node.Clock(), standing: node.Standing(), cfg: cfg, latest: cfg, log: slog.Default(),
		ended: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	over, end := context.WithCancel(context.Background())
	end()
	s.canceled = over
	for _, opt := range opts {
		opt(s)
	}
	s.metrics, s.tracing = newMetrics(s, s.providers.meters), tracingBy(s.providers.traces)
	s.losses.log = s.log
	s.forgeries.log, s.forgeries.source = s.log, node.Source
	s.routers.Store(&map[string]*router{})
	s.renewHosting()
	s.dispatcher.init()
	s.pool.most = poolMost
	handle, err := node.Attach(membership.Attachment{
		Component: machine.Component{
			Name: protocol.ComponentName, Service: protocol.Service, Codec: wire.Codec{},
			Machine: protocol.NewControl(protocol.ControlConfig{Self: s.self, Allocation: cfg.Allocation}),
		},
		Call: s.call, Other: s.other, Published: s.published,
	})
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s.control = handle
	s.metrics.start()
	node.Transport().Handle(protocol.MessageService, s.received)
	node.Notices(s.noticed)
	// All owned by the system: they end with the node, run when every entity has
	// returned; Close of the node does not wait for them, AwaitEnd does.
	s.workers.Go(func() { s.dispatcher.run(s.ctx, handle) })
	s.workers.Go(func() { s.pool.trimIdle(s.ctx) })
	go s.run()
	return s, nil
}

// Sharding returns s, which makes it a [Host].
func (s *System) Sharding() *System { return s }

// Node returns the node.
func (s *System) Node() *membership.Node { return s.node }

// run waits for the end of the node, abandons what is left, and waits for that.
func (s *System) run() {
	<-s.node.Done()
	s.metrics.stop()
	s.eachSlot((*router).abandon)
	s.losses.end()
	s.forgeries.end()
	s.cancel()
	s.hostContext.Load().cancel()
	close(s.ended)
	s.mu.Lock() // No kind starts any more, and with it no goroutine of one.
	s.closing = true
	s.mu.Unlock()
	s.workers.Wait()
	close(s.stopped)
}

// AwaitEnd waits until the node has ended and every entity has stopped, or ctx
// ends: an entity whose Receive does not return is waited for in vain.
func (s *System) AwaitEnd(ctx context.Context) error {
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Start runs a kind on a host and returns the way to its entities. The
// settings must be equal on all nodes; a difference is reported by the methods
// of the region, and is logged. It may be called before the node is up:
// messages then wait.
func Start[C any](h Host, k Kind[C]) (*Region[C], error) {
	s := h.Sharding()
	s.mu.Lock()
	defer s.mu.Unlock()
	stuck, _ := stuckPolicy(s.latest.OnStuck)
	cfg := protocol.KindConfig{
		Name: k.Name, Settings: k.settings(s.latest), Proxy: k.ProxyOnly || !s.mayHost(k.Role),
		MinRegions: 1, Strategy: s.strategyName(), OnStuck: stuck,
		MaxSimultaneous:          s.latest.Rebalance.MaxSimultaneous,
		MaxSimultaneousPerRegion: s.latest.Rebalance.MaxSimultaneousPerRegion,
		Timings: protocol.Timings{
			Retry: s.latest.RetryInterval, Handoff: s.latest.HandoffTimeout, RebalanceIdle: s.latest.Rebalance.IdleCheck,
		},
	}
	if err := k.validate(cfg); err != nil {
		return nil, err
	}
	r, err := s.start(cfg, k.codec(), typed[C]{k.New}, protocol.CellConfig{
		WindowBytes: s.latest.WindowBytes, TransitBytes: s.latest.TransitBytes, Mailbox: s.latest.MailboxSize,
		BackoffMin: s.latest.EntityRestartBackoff, BackoffMax: 30 * s.latest.EntityRestartBackoff,
		OnFailure: protocol.OnFailure(k.OnFailure), PassivateAfter: passivateAfter(k.PassivateAfter, s.latest), StuckAfter: s.latest.StuckAfter,
	})
	if err != nil {
		return nil, err
	}
	r.idleLimit = k.PassivateAfter
	return &Region[C]{r}, nil
}

// strategyName is the name of the strategy that has to be asked by calls.
func (s *System) strategyName() string {
	if s.strategy == nil {
		return ""
	}
	return s.cfg.Allocation.Strategy
}

// mayHost reports whether this node has a role.
func (s *System) mayHost(role string) bool { return role == "" || s.node.HasRole(role) }

// start adds a router. The caller holds mu.
func (s *System) start(cfg protocol.KindConfig, codec Codec, b behaviour, cells protocol.CellConfig) (*router, error) {
	old := *s.routers.Load()
	if old[cfg.Name] != nil {
		return nil, fmt.Errorf("sharding: kind %q runs on this node already", cfg.Name)
	}
	r := newRouter(s, cfg, codec, b, cells)
	next := make(map[string]*router, len(old)+1)
	maps.Copy(next, old)
	next[cfg.Name] = r
	s.routers.Store(&next)
	if err := s.control.PostWait(s.ctx, protocol.AddKind{Kind: cfg}); err != nil || s.closing {
		return nil, s.closed()
	}
	if !cfg.Proxy {
		// Owned by the system: ends with it.
		s.workers.Go(func() { r.sweep(s.ctx) })
	}
	return r, nil
}

// closed is the error of whoever comes after the end: with why the node ended,
// when that is known already.
func (s *System) closed() error {
	if err := s.node.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// router returns the router of a kind, nil if it does not run here.
func (s *System) router(kind string) *router { return (*s.routers.Load())[kind] }

// eachSlot calls f for every slot of every kind.
func (s *System) eachSlot(f func(*router, *slot)) {
	for _, r := range *s.routers.Load() {
		for i := range r.slots {
			f(r, &r.slots[i])
		}
	}
}

// other carries out what the control machine asks of the cells, on the
// driver's goroutine.
func (s *System) other(e machine.Effect) {
	switch e := e.(type) {
	case protocol.ToShard:
		if r := s.router(e.Kind); r != nil && int(e.Shard) < len(r.slots) {
			r.apply(&r.slots[e.Shard], e.Input)
		}
	case protocol.ToShards:
		s.suspension(e.Input)
		s.eachSlot(func(r *router, sl *slot) {
			if e.Kind == "" || e.Kind == r.name {
				r.apply(sl, e.Input)
			}
		})
	default:
		machine.Assert(false, "the control machine's effects are known", "effect", e)
	}
}

// suspension ends or renews the context of entities with the standing.
func (s *System) suspension(in protocol.CellInput) {
	switch in.(type) {
	case protocol.Suspend, protocol.Abandon:
		s.hostContext.Load().cancel()
	case protocol.Unsuspend:
		s.renewHosting()
	}
}

// renewHosting gives entities a fresh context.
func (s *System) renewHosting() {
	ctx, cancel := context.WithCancel(s.ctx)
	if old := s.hostContext.Swap(&hostContext{ctx, cancel}); old != nil {
		old.cancel()
	}
}

// call asks the allocation strategy.
func (s *System) call(ctx context.Context, c machine.Call) (any, error) {
	switch request := c.Request.(type) {
	case allocation.AllocateRequest:
		return s.strategy.Allocate(ctx, request)
	case allocation.RebalanceRequest:
		return s.strategy.Rebalance(ctx, request)
	default:
		return nil, fmt.Errorf("sharding: call of kind %q with a %T", c.Port, c.Request)
	}
}

// published hears the events of the control machine.
func (s *System) published(event any) {
	switch e := event.(type) {
	case protocol.KindRefused:
		err := SettingsError(e.Refusal)
		s.log.Error("the coordinator refused a kind of this node", "error", &err)
		if r := s.router(err.Kind); r != nil {
			r.refuse(&err)
		}
	case protocol.KindAccepted:
		if e.Again {
			s.log.Info("the coordinator accepts a kind of this node again", "kind", e.Kind)
		}
		if r := s.router(e.Kind); r != nil {
			r.admit()
		}
	case protocol.Explained:
		s.questions.answer(e)
	case protocol.Examined:
		s.metrics.inquiry.Answer(e.ID, e)
	case protocol.MoveEnded:
		s.metrics.moved(e)
	case protocol.CoordinatorStopped: // That one started is a decision, and logged as such.
		s.log.Info("coordinator of "+e.Kind+": stopped", "kind", e.Kind, "term", e.Term.String())
	case protocol.Violation:
		s.counters.violations.Add(1)
		s.log.Error("a state that must not be", "kind", e.Kind, "shard", e.Shard, "detail", e.Detail)
	}
}

// received takes a frame of the message service from a member, on a connection's
// goroutine.
func (s *System) received(from gossip.NodeID, frame []byte) {
	now := s.clock.Instant()
	decoder, _ := s.decoders.Get().(*wire.Decoder)
	if decoder == nil {
		decoder = &wire.Decoder{Fresh: s.messages.packed}
	}
	defer s.decoders.Put(decoder)
	item, err := decoder.Item(frame, now)
	if run, ok := item.(*wire.Run); ok && s.trusts(from, run.Origin(), 0, run.Kind(), run.Shard()) {
		s.at(run.Kind(), run.Shard(), func(r *router, sl *slot) { err = r.deliverRun(sl, now, run) })
	}
	if err != nil {
		s.counters.malformed.Add(1)
		s.log.Warn("message dropped", "from", from.String(), "error", err)
		return
	}
	switch m := item.(type) {
	case *protocol.Message:
		if !s.trusts(from, m.Origin, m.Hops, m.Kind, m.Shard) {
			s.messages.free(m)
			return
		}
		s.deliver(now, m)
	case *protocol.Reply:
		s.clocks.heard(from, m.Clock, now)
		s.at(m.Kind, m.Shard, func(r *router, sl *slot) { r.answered(sl, from, m) })
	case protocol.Ack:
		s.clocks.heard(from, m.Clock, now)
		s.at(m.Kind, m.Shard, func(r *router, sl *slot) {
			r.step(sl, func(out *protocol.Actions) { sl.cell.Acked(now, from, m, out) })
		})
	case protocol.Need:
		s.at(m.Kind, m.Shard, func(r *router, sl *slot) {
			r.step(sl, func(out *protocol.Actions) { sl.cell.Needed(now, from, m, out) })
		})
	case protocol.Flow:
		s.at(m.Kind, m.Shard, func(r *router, sl *slot) {
			r.step(sl, func(out *protocol.Actions) { sl.cell.Flowed(now, from, m, out) })
		})
	}
}

// trusts looks whether messages of an origin may come from a node, and counts those that
// may not.
func (s *System) trusts(from, origin gossip.NodeID, hops uint8, kind string, shard protocol.ShardID) bool {
	fault := protocol.OriginFault(from, origin, hops, s.node.IsMember)
	if fault == protocol.FaultNone {
		return true
	}
	s.at(kind, shard, func(*router, *slot) {
		s.forgeries.note(from, fault, kind, shard, func() bool { return hops > 0 && s.node.WasMember(origin) })
	})
	return false
}

// deliver hands a message from another node to its cell.
func (s *System) deliver(now machine.Instant, m *protocol.Message) {
	s.at(m.Kind, m.Shard, func(r *router, sl *slot) {
		r.step(sl, func(out *protocol.Actions) { sl.cell.Deliver(now, m, out) })
		s.dispatcher.acknowledge(r, sl)
	})
}

// deliverRun hands messages from another node to their cell.
func (r *router) deliverRun(sl *slot, now machine.Instant, run *wire.Run) error {
	defer r.system.dispatcher.acknowledge(r, sl)
	sl.mu.Lock()
	defer sl.mu.Unlock()
	defer r.carry(sl, nil)
	return run.Messages(now, func(n int) *protocol.Message {
		if n <= freeListPayload {
			if m := take(&sl.free.packed); m != nil {
				return m
			}
		}
		return r.system.messages.packed(n)
	}, func(m *protocol.Message) { sl.cell.Deliver(now, m, &sl.out) })
}

// at finds the slot of a shard. What is meant for a kind that does not run here, or for a
// shard that does not exist, is counted: its sender sends it again.
func (s *System) at(kind string, shard protocol.ShardID, f func(*router, *slot)) {
	r := s.router(kind)
	if r == nil || int(shard) >= len(r.slots) {
		s.counters.misdirected.Add(1)
		return
	}
	f(r, &r.slots[shard])
}

// noticed hears of connections: a session that ended may have lost messages, a
// new one takes what waits.
func (s *System) noticed(notice transport.Notice) {
	switch e := notice.(type) {
	case transport.PeerDown:
		if e.Lane == machine.LaneMessage {
			s.clocks.forget(e.Peer)
			s.eachSlot(func(r *router, sl *slot) {
				r.step(sl, func(*protocol.Actions) { sl.cell.Broken(e.Peer) })
			})
			// An append begins the next session, or says why there is none.
			s.flush(e.Peer)
		}
	case transport.PeerUp:
		if e.Lane == machine.LaneMessage {
			s.flush(e.Peer)
		}
	}
}

// flush sends the replies that wait for a node, and lets every cell transmit what
// waits for it. It begins with another cell each time: a lane that is always full
// must not serve the first ones alone.
func (s *System) flush(node gossip.NodeID) {
	s.catchUp(node)
	turn, now := s.flushes.Add(1), s.clock.Instant()
	for _, r := range *s.routers.Load() {
		n := uint64(len(r.slots))
		for i := range n {
			if !r.flush(&r.slots[(turn*61+i)%n], now, node) {
				return // Full again. The next room goes on with others.
			}
		}
	}
}

// awaitRoom flushes towards a node when its lane has room again. One goroutine
// waits for each lane that is full.
func (s *System) awaitRoom(node gossip.NodeID) {
	if _, waiting := s.lanes.LoadOrStore(node, struct{}{}); waiting {
		return
	}
	// Owned by the system: ends with the lane's room or the system.
	s.workers.Go(func() {
		err := s.node.Transport().Lane(node, machine.LaneMessage).Room(s.ctx)
		s.lanes.Delete(node)
		if err == nil {
			s.flush(node)
		}
	})
}

// counters are what a system counts.
type counters struct {
	malformed, misdirected, violations atomic.Uint64
	panics, unsent                     atomic.Uint64
	dropped                            [protocol.DropStopped + 1]atomic.Uint64
	stuck                              atomic.Int64
}

// Stats are the counters of a [System]. All but Stuck, Waiting and Held only grow,
// from 0 when the system was made.
type Stats struct {
	// Sent are messages of this node that Tell and Ask accepted, for all kinds.
	Sent uint64
	// Received are messages of other nodes that were delivered here, each once.
	Received uint64
	// Handled are messages that entities of this node have processed.
	Handled uint64
	// Waiting are senders of this node that wait for room, at present.
	Waiting uint64
	// Held are entities of other nodes that take nothing from this node at present,
	// since their mailboxes are full.
	Held uint64
	// Malformed are frames from other nodes that meant nothing. They were dropped.
	Malformed uint64
	// Misdirected are messages for a kind or a shard that does not exist here. Their
	// sender sends them again; a few are usual while nodes start their kinds.
	Misdirected uint64
	// Forged is what came from members in a name that is not theirs. It was dropped.
	Forged Forgeries
	// Violations are states seen that the protocol excludes. Must be 0.
	Violations uint64
	// Failed are messages without an asker, of this node, that failed after Tell had
	// accepted them. Failures says why; so does the log, once a while.
	Failed   uint64
	Failures Failures
	// Dropped are copies of messages that were dropped since their sender sends them
	// again, or had sent them twice. No message is lost by it.
	Dropped uint64
	// Panics are panics of entities, and goroutines that they ended.
	Panics uint64
	// Unsent are replies and acknowledgements that could not be sent. Whoever waits
	// for a reply hears that the outcome is unknown.
	Unsent uint64
	// Stuck are entities that do not return, at present: for longer than
	// sharding.stuck-after, or left behind by their shard.
	Stuck uint64
}

// counted reads everything that is counted, once.
func (s *System) counted() *collected {
	c := &collected{counts: &s.counters, failed: s.losses.counts(), forged: s.forgeries.counts()}
	for _, r := range *s.routers.Load() {
		k := kindTally{kind: r.name}
		for i := range r.slots {
			r.slots[i].tally(&k.Tally)
			k.senders += r.slots[i].waiting()
		}
		c.kinds = append(c.kinds, k)
	}
	return c
}

// Stats returns the counters. It looks at every cell, which takes some 50 ns for each.
func (s *System) Stats() Stats {
	c := s.counted()
	stats := Stats{
		Malformed: c.counts.malformed.Load(), Misdirected: c.counts.misdirected.Load(), Violations: c.counts.violations.Load(),
		Panics: c.counts.panics.Load(), Unsent: c.counts.unsent.Load(),
		Stuck: uint64(max(c.counts.stuck.Load(), 0)), Failures: failuresOf(c.failed), Forged: forgeriesOf(c.forged),
	}
	for i := range c.counts.dropped {
		stats.Dropped += c.counts.dropped[i].Load()
	}
	stats.Failed = stats.Failures.Total()
	for i := range c.kinds {
		k := &c.kinds[i]
		stats.Sent += k.Sent
		stats.Received += k.Received
		stats.Handled += k.Handled
		stats.Held += uint64(k.Held)
		stats.Waiting += uint64(k.senders)
	}
	return stats
}
