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
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/census"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/dispatch"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/hosting"
	"github.com/quorate/quorate/sharding/internal/leases"
	"github.com/quorate/quorate/sharding/internal/notes"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/internal/strategy"
	"github.com/quorate/quorate/sharding/internal/telemetry"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/sharding/internal/workers"
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
	node       *membership.Node
	self       gossip.NodeID
	clock      *machine.SystemClock
	standing   *membership.Standing
	cfg        Config
	log        *slog.Logger
	strategy   atomic.Pointer[strategy.Chosen] // The strategy that is asked; replaced under mu.
	control    *machine.Handle
	runtime    *runtime.Node
	dispatcher dispatch.Dispatcher

	coordinators atomic.Pointer[control.CoordinatorsKnown] // What the control machine has said of them last.

	routers atomic.Pointer[map[string]*router] // The routers by kind: a map that is replaced under mu, never changed.
	mu      sync.Mutex                         // Guards starting of kinds, reloading, and closing.
	latest  Config                             // The configuration of the last reload; differs from cfg in reloadable settings only.
	closing bool                               // The node has ended: no kind starts any more.

	lanes     sync.Map          // The nodes for whose full lane a goroutine waits.
	contexts  *hosting.Contexts // Those of entities.
	pool      workers.Pool[job]
	workers   sync.WaitGroup        // All goroutines of the system but that of run.
	askPool   sync.Pool             // Asks that have ended, for reuse. A pool of this system alone, since asks hold channels.
	ended     chan struct{}         // Closed when every cell has been abandoned.
	stopped   chan struct{}         // Closed after ended, when every goroutine has ended.
	questions asking.Questions[any] // Those to the control machine.
	drains    *asking.Drains
	surveys   *census.Asker // Asks all nodes, and answers them.
	leasing   leasing
	leases    *leases.Leases
	ctx       context.Context //nolint:containedctx // Ends with the system, and with it what the goroutines wait for.
	cancel    context.CancelFunc
	counters  telemetry.Counters
	losses    *notes.Losses
	memories  *notes.Lines
	forgeries *notes.Forgeries
	metrics   *telemetry.Metrics
	inquiry   meter.Inquiry[control.Examined] // What metrics ask the control machine.
	tracing   *telemetry.Tracing
	providers providers
}

// providers take the metrics and the traces; nil stands for the global provider.
type providers struct {
	meters metric.MeterProvider
	traces trace.TracerProvider
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
	return func(s *System) { s.providers.traces = p }
}

// New puts sharding on a node. It is called once for each node.
func New(node *membership.Node, cfg Config, opts ...Option) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	s := &System{
		node: node, self: node.Self(), clock: node.Clock(), standing: node.Standing(), cfg: cfg, latest: cfg, log: slog.Default(),
		ended: make(chan struct{}), stopped: make(chan struct{}),
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
	s.metrics, s.tracing = telemetry.New(s.ctx, s.providers.meters, s.self), telemetry.NewTracing(s.providers.traces)
	s.drains = asking.NewDrains(ErrUndrained)
	s.losses, s.forgeries = notes.NewLosses(s.log), notes.NewForgeries(s.log, node.Source)
	s.memories = notes.NewLines(s.log, slog.LevelWarn, "entities start without the memory that they had before a move")
	s.leases = leases.New(s.leasePorts())
	s.routers.Store(&map[string]*router{})
	s.contexts = hosting.New(s.ctx, s.standing.Held)
	s.runtime = runtime.NewNode(s.ports())
	s.dispatcher.Init(s.runtime.Acknowledge)
	s.pool.Init(s.startWorker)
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
	s.control = handle
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
	s.workers.Go(func() { s.pool.TrimIdle(s.ctx) })
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

// Drain has this node host nothing, of any kind, while another can: its shards move to other
// nodes with their streams, a few at a time, and it is given no other. It stays a member, and goes on to
// send messages and to coordinate. While all nodes that can host a kind are drained, it
// is as if none was. Drain returns when the node hosts nothing; with the error of ctx
// when that ends before, which takes nothing back; with [ErrUndrained]; or with [ErrClosed]. It may be
// called again to go on waiting. The node is drained until [System.Undrain], or until the process
// ends. A coordinator of a version that does not know of drained nodes ignores it.
func (s *System) Drain(ctx context.Context) error {
	done, err := s.drains.Order(ctx, s.control, true)
	if err != nil {
		return s.unanswered(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		s.drains.Forget(done)
		return context.Cause(ctx)
	case <-s.ended:
		return s.closed()
	}
}

// Undrain has this node host again. It does not wait: shards come when coordinators next
// even out the load. The error is that of ctx, or [ErrClosed].
func (s *System) Undrain(ctx context.Context) error {
	if _, err := s.drains.Order(ctx, s.control, false); err != nil {
		return s.unanswered(ctx)
	}
	return nil
}

// Move has a shard of a kind move to a node, named by its address or its text form, beside the moves that
// even out the load and whatever those permit. Any node may be asked. It returns when the move has begun, which then
// takes as long as the entities take to stop, and may be called off like any other: [System.ExplainShard] says
// what becomes of it. The allocation strategy may move the shard again when it finds the load
// uneven. The error is a [*MoveError] that says why nothing moves, that of ctx, after which the move may have begun, or
// [ErrClosed].
func (s *System) Move(ctx context.Context, kind string, shard int, to string) error {
	refused := func(why string) error { return &MoveError{Kind: kind, Shard: shard, To: to, Reason: why} }
	if shard < 0 || shard >= protocol.MaxShards {
		return refused("there is no such shard")
	}
	target, err := s.node.View().Find(to)
	if err != nil {
		return refused("no member has that address")
	}
	answer, err := s.ask(ctx, func(id uint64) machine.Input {
		return control.Move{Kind: kind, Shard: protocol.ShardID(shard), To: target.Node, ID: id}
	})
	if answered, ok := answer.(control.MoveAnswered); ok && answered.Refusal != "" {
		return refused(answered.Refusal)
	}
	return err
}

// Reshard has a kind have another number of shards, 1 to 65,536, without stopping anything. Any node may be asked. It
// returns when the change has begun: [System.Kinds] says how far it is, and it comes to its end whatever becomes of
// nodes and coordinators meanwhile. A few shards at a time, as many as sharding.rebalance permits to move, are stopped
// as for a move, and their entities live in the new shards from then on. No message is lost, doubled or overtaken by
// that, and the epochs of an entity grow. The load is not evened out, and no shard of the former number moves, until
// the change is over. The memory of [Snapshotter]s does not come along, and counts as lost.
//
// The number of shards in the files of the nodes should be changed afterwards, one restart at a time:
// while a node of the cluster runs, others may have any number that the kind has had. When all nodes
// have stopped, what counts is their files, which must agree as ever.
//
// Entities of [Kind.Permanent], and those of [Kind.Remember], run in their new shards without a message. The latter are
// taken over by the nodes bit by bit, which goes on when the change is over; no other change begins before that has
// ended.
//
// A kind with [Kind.InUse] or [Kind.OnOldest] has its number for good, and so has each kind of a node with
// [WithLeases]: a part of the cluster that had not heard of the change would get the free leases of former shards. The
// error is a [*ReshardError] that says why no change begins, such as that another one is under way, that of ctx, after
// which the change may have begun, or [ErrClosed].
func (s *System) Reshard(ctx context.Context, kind string, shards int) error {
	refused := func(why string) error { return &ReshardError{Kind: kind, Shards: shards, Reason: why} }
	if shards < 1 || shards > protocol.MaxShards {
		return refused(fmt.Sprintf("a kind has 1 to %d shards", protocol.MaxShards))
	}
	answer, err := s.ask(ctx, func(id uint64) machine.Input {
		return control.Reshard{Kind: kind, Shards: uint32(shards), ID: id}
	})
	if answered, ok := answer.(control.ReshardAnswered); ok && answered.Refusal != "" {
		return refused(answered.Refusal)
	}
	return err
}

// Drained reports whether this node was told to host nothing.
func (s *System) Drained() bool { return s.drains.Drained() }

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
	r := newRouter(s, cfg, codec, b, ids, cells)
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

// closed returns the error of calls after the end of the node: [ErrClosed], with the
// reason for which the node ended, when that is known already.
func (s *System) closed() error {
	if err := s.node.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// ask asks the control machine, or by it a coordinator, what it answers under an id. The error is that of ctx, or
// [ErrClosed].
func (s *System) ask(ctx context.Context, input func(id uint64) machine.Input) (any, error) {
	answer, ok := s.questions.Ask(ctx, s.ended, func(id uint64) error { return s.control.PostWait(ctx, input(id)) })
	if !ok {
		return nil, s.unanswered(ctx)
	}
	return answer, nil
}

// unanswered is the error of who got no answer: ctx has ended, or the node.
func (s *System) unanswered(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), s.closed())
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

// wall returns the wall-clock time of an instant of the past.
func (s *System) wall(t machine.Instant) time.Time {
	now := s.clock.Now()
	return now.Wall.Add(-now.Mono.Sub(t))
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
	case control.Relayout:
		if r := s.router(e.Kind); r != nil {
			r.region.Relayout(e.Layouts)
		}
	case control.ToDesk:
		if r := s.router(e.Kind); r != nil {
			r.region.Remembered(e.Input)
		}
	case control.AskLease:
		s.leases.Ask(e)
	case control.GiveLease:
		s.leases.Give(e)
	case control.Scaled:
		if r := s.router(e.Kind); r != nil {
			r.program.scale.Store(&e.Scale)
		}
	case control.Measure:
		if r := s.router(e.Kind); r != nil {
			// A measurement that finds the inbox full is made up for by the next one.
			_ = s.control.Post(control.Measured{Kind: e.Kind, Busy: r.region.Busy(), Processors: goruntime.GOMAXPROCS(0)})
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
	case control.Explained:
		s.questions.Answer(e.ID, e)
	case control.MoveAnswered:
		s.questions.Answer(e.ID, e)
	case control.ScaleAnswered:
		s.questions.Answer(e.ID, e)
	case control.ReshardAnswered:
		s.questions.Answer(e.ID, e)
	case control.Vacated:
		s.drains.Vacated(e.ID)
	case control.CoordinatorsKnown:
		s.coordinators.Store(&e)
	case control.Examined:
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
