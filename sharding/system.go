// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/dispatch"
	"github.com/quorate/quorate/sharding/internal/explain"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/leases"
	"github.com/quorate/quorate/sharding/internal/notes"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/storecalls"
	"github.com/quorate/quorate/sharding/internal/strategy"
	"github.com/quorate/quorate/sharding/internal/telemetry"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/transport"
)

// The file makes a [System] and connects it with its node. In the order of a node's life:
// New attaches the control machine and starts the goroutines; Start adds a kind; other and
// published carry out what the control machine decides; noticed passes on what becomes of
// connections; run ends everything when the node has ended. The counters come last.

// Host runs entities: it is a [System], or a node that has a System.
type Host interface{ Sharding() *System }

// System is the sharding of one node, for all kinds that run there. It ends with
// the node.
type System struct {
	local

	strategy   atomic.Pointer[strategy.Chosen] // The strategy that is asked; replaced under mu.
	runtime    *runtime.Node
	executor   *executor
	dispatcher dispatch.Dispatcher

	coordinators atomic.Pointer[control.CoordinatorsKnown] // What the control machine has said of them last.

	routers atomic.Pointer[map[string]*router] // The routers by kind: a map that is replaced under mu, never changed.
	mu      sync.Mutex                         // Guards starting of kinds, reloading, and closing.
	latest  Config                             // The configuration of the last reload; differs from cfg in reloadable settings only.
	closing bool                               // The node has ended: no kind starts any more.

	lanes     sync.Map       // The nodes for whose full lane a goroutine waits.
	workers   sync.WaitGroup // All goroutines of the system but that of run.
	cancel    context.CancelFunc
	stopped   chan struct{} // Closed after ended, when every goroutine has ended.
	drains    *asking.Drains
	leasing   leasing
	losses    *notes.Losses
	memories  *notes.Lines
	forgeries *notes.Forgeries
	inquiry   meter.Inquiry[control.ShardCounts] // What metrics ask the control machine.
	providers providers
}

// providers take the metrics and the traces; nil stands for the global provider.
type providers struct {
	meters metric.MeterProvider
	traces meter.Tracing
}

// Option is a collaborator that only code can give.
type Option func(*System)

// WithLogger sets where the system logs. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *System) { s.log = l } }

// WithAllocation sets an allocation strategy in place of a built-in one, under the name in the
// configuration; nil sets none.
// The strategy is asked on a goroutine of its own and may block; while it does not
// answer, or answers wrongly, least-shard decides.
func WithAllocation(a allocation.Strategy) Option {
	return func(s *System) { s.strategy.Store(strategy.Given(s.cfg.Allocation.Strategy, a)) }
}

// GivesAllocation reports whether options give a system an allocation strategy.
func GivesAllocation(opts ...Option) bool {
	s := new(System)
	for _, opt := range opts {
		opt(s)
	}
	return s.strategy.Load().IsGiven()
}

// WithMeterProvider sets where the metrics of sharding go. The default is the global
// provider of OpenTelemetry, which does nothing until the program sets it.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *System) { s.providers.meters = p }
}

// WithTracerProvider sets where the spans of messages go; it decides which traces
// are sampled. The default is the global provider of OpenTelemetry, which does
// nothing until the program sets it.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *System) { s.providers.traces.Provider = p }
}

// WithPropagator sets what travels with a message from its sender to its entity, such as a trace context and baggage;
// it is used as it is. The default is the global propagator of OpenTelemetry; while the program has set none,
// the trace context of W3C travels and nothing else. At most 9 KiB travel with a message: a header for which there is
// no room is left out.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(s *System) { s.providers.traces.Propagator = p }
}

// WithLeases has the entities of each shard run only while this node holds a lease of the shard, in a store outside of
// the cluster, for those who trust the store more than the clocks of nodes. It is off without this option; all nodes
// that host should have it, with the same store and times. A shard whose lease is not to be had waits, with its
// messages; one whose lease is lost gives its entities up, with [StopReplaced], and is given a home anew. A lease is
// given back when its shard has stopped; after the death of a node its shards wait until the time of the lease is over.
// The store is asked for each shard once in [lease.Config.RenewInterval]: with 1,000 shards and the default some 330
// times a second.
//
// The name of a lease has the cluster, the kind and the number of the shard; its owner is the node.
func WithLeases(store lease.Store, cfg lease.Config) Option {
	return func(s *System) { s.leasing = leasing{store, cfg} }
}

// leasing is what [WithLeases] gives. The store may be nil: there are no leases.
type leasing struct {
	store lease.Store
	times lease.Config
}

// validate reports what is wrong with the settings. Named is the store that the configuration names.
func (l leasing) validate(named string) error {
	if l.store == nil && named != "" {
		return field.Errorf("sharding.leases.store", "%q was not opened: cluster.Start does, or give a store by WithLeases", named)
	}
	if l.store == nil {
		return nil
	}
	if err := l.times.Validate(); err != nil {
		return fmt.Errorf("sharding: leases: %w", err)
	}
	return nil
}

// New puts sharding on a node. It is called once for each node.
func New(node *membership.Node, cfg Config, opts ...Option) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s := &System{
		local: local{
			node: node, self: node.Self(), clock: node.Clock(), standing: node.Standing(), cfg: cfg, log: slog.Default(), ended: make(chan struct{}),
		},
		latest: cfg, stopped: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, opt := range opts {
		opt(s)
	}
	s.log = machine.LimitLog(s.log)
	if err := s.leasing.validate(cfg.Leases.Store); err != nil {
		s.cancel()
		return nil, err
	}
	if err := s.chooseStrategy(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s.metrics, s.tracing = telemetry.New(s.providers.meters, s.self), telemetry.NewTracing(s.providers.traces)
	s.drains = asking.NewDrains(ErrUndrained)
	s.losses, s.forgeries = notes.NewLosses(s.log), notes.NewForgeries(s.log, node.Source)
	s.memories = notes.NewLines(s.log, slog.LevelWarn, "entities start without the memory that they had before a move")
	s.leases = leases.New(s.leasePorts())
	s.routers.Store(&map[string]*router{})
	s.contexts = hosting.New(s.ctx, s.standing.Held)
	s.executor = newExecutor(s.clock, s.workers.Go)
	s.runtime = runtime.NewNode(s.ports())
	s.dispatcher.Init(s.runtime.Acknowledge)
	handle, err := node.Attach(membership.Attachment{
		Component: machine.Component{
			Name: control.ComponentName, Service: protocol.Service, Codec: wire.Codec{},
			Machine: control.New(control.Config{Self: s.self, Allocation: cfg.Allocation, MaxShards: cfg.MaxShards}),
		},
		Call: s.call, Other: s.other, Published: s.published,
	})
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s.control = asking.NewMachine(handle, s.ended)
	if s.surveys, err = census.Attach(node, s.censusPorts()); err != nil {
		s.cancel()
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s.metrics.Observe(s.collect, s.log)
	node.Transport().Handle(protocol.MessageService, s.runtime.Received)
	node.Notices(s.noticed)
	// The goroutines are owned by the system and end with the node, that of run when
	// every entity has returned; Close of the node does not wait for them, AwaitEnd does.
	s.workers.Go(func() { s.dispatcher.Run(s.ctx, handle) })
	s.workers.Go(func() { s.executor.pool.TrimIdle(s.ctx) })
	go s.run()
	return s, nil
}

// chooseStrategy settles which allocation strategy is asked, unless the program gives one, which is checked.
func (s *System) chooseStrategy() error {
	if given := s.strategy.Load(); given.IsGiven() {
		return given.Check()
	}
	chosen, err := strategy.BuiltIn(s.cfg.Allocation)
	if err != nil {
		return err
	}
	s.strategy.Store(chosen)
	return nil
}

// Sharding returns s, which makes it a [Host].
func (s *System) Sharding() *System { return s }

// Node returns the node.
func (s *System) Node() *membership.Node { return s.node }

// run waits for the end of the node, abandons all cells, and waits until every goroutine
// has ended.
func (s *System) run() {
	<-s.node.Done()
	s.metrics.Stop()
	s.runtime.Abandon()
	s.losses.End()
	s.memories.End()
	s.forgeries.End()
	s.cancel()
	s.contexts.End()
	close(s.ended)
	s.mu.Lock() // From here on no kind starts, and so no goroutine of a kind.
	s.closing = true
	s.mu.Unlock()
	s.leases.End(&s.workers)
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
// of the region, and is logged. A program may call Start before the node is up:
// messages then wait.
func Start[C any](h Host, k Kind[C]) (*Region[C], error) {
	s := h.Sharding()
	s.mu.Lock()
	defer s.mu.Unlock()
	stuck, _ := stuckPolicy(cmp.Or(string(k.OnStuck), s.latest.OnStuck)) // A fault is found by validate.
	cfg := control.KindConfig{
		Name: k.Name, Settings: k.settings(s.latest), Proxy: k.ProxyOnly || !s.mayHost(k.Role),
		MinRegions: 1, Strategy: s.strategy.Load().Name(), OnStuck: stuck,
		MaxSimultaneous:          s.latest.Rebalance.MaxSimultaneous,
		MaxSimultaneousPerRegion: s.latest.Rebalance.MaxSimultaneousPerRegion,
		Timings: control.Timings{
			Retry: s.latest.RetryInterval, Handoff: cmp.Or(k.HandoffTimeout, s.latest.HandoffTimeout),
			RebalanceIdle: s.latest.Rebalance.IdleCheck, SlowStart: s.latest.Rebalance.SlowStart,
		},
		Fixed: k.InUse != 0 || s.leases.On(), Remembers: k.Remember != nil,
		OnOldest: k.OnOldest, Lease: s.leases.On(), Scale: uint32(min(max(k.InUse, 0), protocol.MaxShards+1)), Capacity: uint32(s.cfg.Capacity),
	}
	cfg.Settings.OnStuck, cfg.Settings.Handoff = cfg.OnStuck.String(), cfg.Timings.Handoff.String()
	if !cfg.Proxy {
		cfg.Settings.Hosting = control.HostingOf(cfg.Lease, cfg.OnOldest, cfg.Scale > 0)
	}
	if err := k.validate(cfg); err != nil {
		return nil, err
	}
	if k.Remember != nil { // Entities that are remembered are stopped neither for being idle, nor to make room.
		k.PassivateAfter, k.EntityLimit = -1, -1
	}
	r, err := s.start(cfg, k.codec(), typed[C]{k.New}, k.Remember, cell.Config{
		WindowBytes: s.latest.WindowBytes, TransitBytes: s.latest.TransitBytes, Mailbox: s.latest.MailboxSize,
		BackoffMin: s.latest.EntityRestartBackoff, BackoffMax: 30 * s.latest.EntityRestartBackoff,
		OnFailure: cell.OnFailure(k.OnFailure), PassivateAfter: s.latest.passivateAfter(k.PassivateAfter), StuckAfter: s.latest.StuckAfter,
		Permanent: slices.Clone(k.Permanent), RememberFirst: k.RememberFirst,
		Snapshots: handoff.Limits{Entity: s.latest.SnapshotBytes, Shard: s.latest.SnapshotShardBytes}, SnapshotTimeout: cfg.Timings.Handoff / 2,
	})
	if err != nil {
		return nil, err
	}
	r.idleLimit, r.entityLimit = k.PassivateAfter, k.EntityLimit
	r.region.Limit(s.latest.Passivation.order(r.entityLimit))
	return &Region[C]{r}, nil
}

// mayHost reports whether this node has a role.
func (s *System) mayHost(role string) bool { return role == "" || s.node.HasRole(role) }

// start adds a router. The caller holds mu.
func (s *System) start(cfg control.KindConfig, codec Codec, b behaviour, ids remember.Store, cells cell.Config) (*router, error) {
	old := *s.routers.Load()
	if old[cfg.Name] != nil {
		return nil, fmt.Errorf("sharding: kind %q runs on this node already", cfg.Name)
	}
	shards := int(cfg.Settings.Shards)
	for _, r := range old {
		shards += r.shards
	}
	if most := s.latest.MaxShards; shards > most {
		return nil, fmt.Errorf("sharding: kind %q: %w: it would be shard %d of this node, and max-shards is %d", cfg.Name, ErrNoRoom, shards, most)
	}
	r := s.newRouter(cfg, codec, b, ids, cells)
	next := make(map[string]*router, len(old)+1)
	maps.Copy(next, old)
	next[cfg.Name] = r
	s.routers.Store(&next)
	if err := s.control.PostWait(s.ctx, control.AddKind{Kind: cfg}); err != nil || s.closing {
		return nil, s.closed()
	}
	if !cfg.Proxy {
		// The sweeper is owned by the system and ends with it.
		s.workers.Go(func() { r.sweep(s.ctx) })
	}
	return r, nil
}

// newRouter returns a router whose cells know no home yet. Nil ids: entities are not remembered.
func (s *System) newRouter(cfg control.KindConfig, codec Codec, b behaviour, ids remember.Store, cells cell.Config) *router {
	methods, _ := codec.(MethodCodec)
	p := &program{local: &s.local, kind: cfg.Name, codec: codec, entity: b, spans: s.tracing.NewKind(cfg.Name, s.self, methods), checker: EntityChecker(nil)}
	ports := runtime.KindPorts{
		Work:   func(t runtime.Task) { s.executor.pool.Put(job{of: p, task: t}, t.Class()) },
		Decode: p.decodeEarly,
		Ended:  func(sl *runtime.Slot) { hosting.EndShard(p.region, sl) },
	}
	var calls *storecalls.Calls
	if ids != nil {
		calls = storecalls.New(storecalls.Config{Kind: cfg.Name, Store: ids, Limit: s.cfg.Remember.CallTimeout, Log: s.log, Node: s.storePorts()})
		ports.Store, ports.Remembering = calls, s.latest.Remember.remembering(cells.RememberFirst)
	}
	p.region = s.runtime.NewRegion(cfg.Name, cfg.Settings.Shards, cells, ports)
	if calls != nil {
		calls.For(p.region) // No cell knows a home yet.
	}
	r := &router{
		local: &s.local, program: p, region: p.region, name: cfg.Name, none: b.none(), proxy: cfg.Proxy, bound: cfg.Settings.Role,
		shards:   int(cfg.Settings.Shards),
		interval: runtime.SweepInterval(cells.PassivateAfter, cells.StuckAfter), intervals: make(chan time.Duration, 1),
		asked:  s.metrics.NewAsks(cfg.Name),
		census: census.Kind{Name: cfg.Name, Region: p.region, Proxy: cfg.Proxy, Leases: s.leases, Decode: p.decode, Wall: s.wall},
	}
	r.verdict.Store(newVerdict())
	return r
}

// goes runs a function on a goroutine of the system, which ends with what the function does. It reports false if the
// node has ended.
func (s *System) goes(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.workers.Go(f)
	return true
}

// router returns the router of a kind, nil if the kind does not run here.
func (s *System) router(kind string) *router { return (*s.routers.Load())[kind] }

// other carries out what the control machine asks of the cells, on the
// driver's goroutine.
func (s *System) other(e machine.Effect) {
	switch e := e.(type) {
	case control.ToShard:
		s.runtime.Apply(e.Kind, e.Shard, e.Input)
	case control.ToShards:
		s.contexts.Apply(e.Input)
		s.runtime.ApplyAll(e.Kind, e.Input)
	case control.UseLayouts:
		if r := s.router(e.Kind); r != nil {
			r.region.UseLayouts(e.Layouts)
		}
	case control.ToRemembering:
		if r := s.router(e.Kind); r != nil {
			r.region.Remembered(e.Input)
		}
	case control.AskLease:
		s.leases.Ask(e)
	case control.GiveLease:
		s.leases.Give(e)
	case control.ScaleChanged:
		if r := s.router(e.Kind); r != nil {
			r.program.scale.Store(&e.Scale)
		}
	case control.MeasureLoad:
		if r := s.router(e.Kind); r != nil {
			// A measurement that finds the inbox full is made up for by the next one.
			_ = s.control.Post(control.LoadMeasurement{Kind: e.Kind, Busy: r.region.Busy(), Processors: goruntime.GOMAXPROCS(0)})
		}
	default:
		machine.Assert(false, "the control machine's effects are known", "effect", e)
	}
}

// call asks the allocation strategy.
func (s *System) call(ctx context.Context, c machine.Call) (any, error) {
	return s.strategy.Load().Ask(ctx, c)
}

// published hears the events of the control machine.
func (s *System) published(event any) {
	switch e := event.(type) {
	case control.KindRefused:
		err := SettingsError(e.Refusal)
		s.log.Error("the coordinator refused a kind of this node", "error", &err)
		if r := s.router(err.Kind); r != nil {
			r.refuse(&err)
		}
	case control.KindAccepted:
		if e.Again {
			s.log.Info("the coordinator accepts a kind of this node again", "kind", e.Kind)
		}
		if r := s.router(e.Kind); r != nil {
			r.admit()
		}
	case control.ShardExplanation:
		s.control.Answer(e.ID, e)
	case control.MoveAnswered:
		s.control.Answer(e.ID, e)
	case control.ScaleAnswered:
		s.control.Answer(e.ID, e)
	case control.ReshardAnswered:
		s.control.Answer(e.ID, e)
	case control.NodeDrained:
		s.drains.Done(e.ID)
	case control.CoordinatorsKnown:
		s.coordinators.Store(&e)
	case control.ShardCounts:
		s.inquiry.Answer(e.ID, e)
	case control.MoveEnded:
		s.metrics.Moved(e)
	case control.CoordinatorStopped: // The start of a coordinator is a decision, and logged as such.
		s.log.Info(gossip.Escape("coordinator of "+e.Kind+": stopped"), "kind", e.Kind, "term", e.Term.String())
	case control.Violation:
		s.counters.Violations.Add(1)
		s.log.Error("a state that must not be", "kind", e.Kind, "shard", e.Shard, "detail", e.Detail)
	}
}

// noticed hears of connections: a session that ended may have lost messages, a
// new session takes what waits.
func (s *System) noticed(notice transport.Notice) {
	switch e := notice.(type) {
	case transport.PeerDown:
		if e.Lane == machine.LaneMessage {
			s.runtime.Disconnected(e.Peer)
		}
	case transport.PeerUp:
		if e.Lane == machine.LaneMessage {
			s.runtime.Connected(e.Peer, e.Protocol)
		}
	}
}

// What the runtime has in a process: lanes of the transport, timers and goroutines of Go, the
// log and the counters. Ports are called with the lock of a slot held, so that what takes
// longer is left to other goroutines.

// ports returns the ports of the system's runtime.
func (s *System) ports() runtime.Ports {
	return runtime.Ports{
		Self: s.self, Clock: s.clock, Standing: s.standing, Members: s.node,
		Lane:      func(to gossip.NodeID) runtime.Lane { return s.node.Transport().Lane(to, machine.LaneMessage) },
		AwaitRoom: s.awaitRoom,
		AcksDue:   s.dispatcher.AcksDue,
		// The function runs on a goroutine of the Go runtime for the time of one step.
		AfterFunc: func(after time.Duration, f func()) runtime.Timer { return time.AfterFunc(after, f) },
		Waiter:    func(*cell.Message) runtime.Waiter { return make(room) },
		Crowded:   s.executor.pool.Crowded,
		Report: func(kind string, shard protocol.ShardID, e protocol.CellEvent) {
			s.dispatcher.Report(control.FromShard{Kind: kind, Shard: shard, Event: e})
		},
		Notes: runtime.Notes{
			Malformed: func(from gossip.NodeID, err error) {
				s.counters.Malformed.Add(1)
				s.log.Warn("message dropped", "from", from.String(), "error", err)
			},
			Misdirected: func() { s.counters.Misdirected.Add(1) },
			Forged:      s.forgeries.Note,
			Dropped:     func(why cell.Drop) { s.counters.Dropped[why].Add(1) },
			Lost:        s.losses.Note,
			Forgotten: func(kind string, f protocol.MemoryLost) {
				s.memories.Note(kind, f.Loss.String(), f.Entity, explain.Loss(f.Loss))
			},
			Unsent:   func(frames int) { s.counters.Unsent.Add(uint64(frames)) },
			Stuck:    s.stuck,
			Returned: func() { s.counters.Stuck.Add(-1) },
		},
	}
}

// leasePorts returns what the leases of shards use of the system.
func (s *System) leasePorts() leases.Config {
	return leases.Config{
		Store: s.leasing.store, Times: s.leasing.times, Cluster: s.node.ClusterName(), Owner: s.self.String(), Log: s.log,
		Under: func(kind string, shard protocol.ShardID, held func() bool) {
			if r := s.router(kind); r != nil {
				r.region.Under(shard, held)
			}
		},
		Tell: func(ctx context.Context, in machine.Input) { _ = s.control.PostWait(ctx, in) },
	}
}

// storePorts returns what the calls of stores of remembered entities use of the system.
func (s *System) storePorts() storecalls.Node {
	return storecalls.Node{
		Context: s.ctx, Go: s.goes,
		Post:     func(in machine.Input) { _ = s.control.Post(in) },
		PostWait: func(in machine.Input) { _ = s.control.PostWait(s.ctx, in) }, // Else the node has ended.
	}
}

// censusPorts returns what questions to all nodes use of the system.
func (s *System) censusPorts() census.Config {
	return census.Config{
		Context: s.ctx, Ended: s.ended, Go: s.workers.Go, Standing: s.standing.Held, Drained: s.Drained,
		Kind: func(name string) *census.Kind {
			if r := s.router(name); r != nil {
				return &r.census
			}
			return nil
		},
	}
}

// stuck counts an entity that does not return, and reports it.
func (s *System) stuck(sl *runtime.Slot, e *cell.Entity) {
	s.counters.Stuck.Add(1)
	info := e.Info()
	since := s.clock.Instant().Sub(info.Since)
	// The goroutine is owned by the system and ends when the line is written, which is
	// not done with the lock of the slot held.
	s.workers.Go(func() {
		s.log.Error("entity does not return", "kind", sl.Kind(), "shard", uint32(sl.Shard()), "entity", info.ID,
			"state", info.State, "for", since, "left behind", info.Released)
	})
}

// awaitRoom flushes towards a node when its lane has room again. One goroutine
// waits for each lane that is full.
func (s *System) awaitRoom(to gossip.NodeID) {
	if _, waiting := s.lanes.LoadOrStore(to, struct{}{}); waiting {
		return
	}
	// The goroutine is owned by the system: it ends when the lane has room, or with the
	// system.
	s.workers.Go(func() {
		err := s.node.Transport().Lane(to, machine.LaneMessage).Room(s.ctx)
		s.lanes.Delete(to)
		if err == nil {
			s.runtime.Flush(to)
		}
	})
}
