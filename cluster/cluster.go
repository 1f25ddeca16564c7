// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/knadh/koanf/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/cluster/locations"
	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/shutdown"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// The options say what a node is started with, [Start] starts its parts one after the
// other (parts.go), and the methods of [Node] lead to them and end them.

// Node is a node with all its parts. It is a [sharding.Host] and a
// [ddata.Host].
type Node struct {
	member       *membership.Node
	sharding     *sharding.System
	data         *ddata.Replicator
	registry     lazyPart[registry.Registry]
	topics       lazyPart[pubsub.PubSub]
	states       states
	shardLeases  *given // The store of the leases of shards; nil if the configuration names none.
	gateway      *gateway.Server
	management   *management.Server
	health       *management.Server // For health checks alone.
	feed         *management.Feed   // Nil if nothing listens.
	watched      func()             // Ends the metrics of management.
	checks       []management.Check
	reloader     *reloader
	metrics      telemetry.Metrics // Nil if the node serves no metrics.
	meters       metric.MeterProvider
	plugins      *strategies
	certificates *certificates

	discovery   []discovery.Method // Methods that the node asks.
	asked       []*given           // The same, to be closed.
	dataStarted chan struct{}      // Closed when data is set.
	follows     atomic.Bool        // The allocation strategy is that which follows the map of locations.

	log     logging
	ends    *nodeShutdown
	parts   []part // All parts, the sections of the program included.
	started []part // Parts that have started, in that order.
	leave   time.Duration

	shown dataRoutes
}

var (
	_ sharding.Host = (*Node)(nil)
	_ ddata.Host    = (*Node)(nil)
)

// Option says where the configuration comes from, or gives a collaborator that only code
// can give.
type Option func(*options)

// options are the arguments of Start.
type options struct {
	files      []string
	formats    []config.Format
	providers  []config.Provider
	config     *Config
	sections   []ownSection
	methods    []linkedChoice[discovery.Discovery]
	stores     []linkedChoice[lease.Store]
	states     []linkedChoice[store.Store]
	changes    []func(*Config)
	log        *slog.Logger
	ownLog     bool // The program has given log.
	membership []membership.Option
	sharding   []sharding.Option
	gateway    []gateway.Option
	data       []ddata.Option
	registry   []registry.Option
	topics     []pubsub.Option
	store      openStore // Nil if the program has none.
	routes     []management.Route
	checks     []management.Check
	prepares   []Prepare
	plugins    openPlugin
	unenforced askable // Nil if the host of plugins cannot say.
	startable  askable // Likewise.
	metrics    telemetry.Endpoint
	meters     metric.MeterProvider
	traces     trace.TracerProvider
	propagator propagation.TextMapPropagator

	own    Extensions // What [Check] was told besides; empty for a start.
	starts bool       // A node is about to start: what that would find is looked for.
}

func optionsOf(opts []Option) *options {
	o := &options{log: slog.Default()}
	for _, opt := range opts {
		opt(o)
	}
	o.withFileLeases()
	return o
}

// WithFile reads the configuration from a file. If the option is given several times,
// later files override earlier ones.
func WithFile(path string) Option { return func(o *options) { o.files = append(o.files, path) } }

// WithFormat reads files in a further format, such as toml.Format() of the module
// config/toml. Without it they are YAML or JSON. It may be given several times.
func WithFormat(f config.Format) Option { return func(o *options) { o.formats = append(o.formats, f) } }

// WithProvider has settings of a provider of koanf lie over those of the files: of a key of
// etcd, of flags, of values of the program. Faults name it in the place of a file; it may be
// given several times, the later over the earlier. With it no file is needed. The parser is
// that of what the provider's ReadBytes gives, nil if its Read gives maps; [config.Provider]
// tells how values are read then, and how long a provider may take. A provider that fails
// keeps the node from starting; when it fails later, the node goes on with what it has and
// logs that. Where section reload has watch, providers are watched like files.
func WithProvider(name string, p koanf.Provider, parser koanf.Parser) Option {
	return withProvider(config.Provider{Name: name, Source: p, Parser: parser})
}

// WithKoanf is [WithProvider] for what an instance of koanf has, all of which counts as
// settings of the node and of the sections of the program: a key that is none is refused. Give
// the node's part of a larger configuration, such as k.Cut("cluster"). The instance may be
// changed while the node runs; [Node.Reload] takes that over.
func WithKoanf(k *koanf.Koanf) Option { return withProvider(config.Koanf("koanf", k)) }

func withProvider(p config.Provider) Option {
	return func(o *options) { o.providers = append(o.providers, p) }
}

// WithConfig uses a configuration made in code; start from [Default]. The environment is
// then ignored, and a file or a provider besides is an error.
func WithConfig(c Config) Option { return func(o *options) { o.config = &c } }

// WithChange changes the configuration after it was read, such as for a flag of the
// program.
func WithChange(f func(*Config)) Option { return func(o *options) { o.changes = append(o.changes, f) } }

// WithLogger sets where the node logs, within the level of the section log. The default is [slog.Default], or what that
// section says.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log, o.ownLog = l, true } }

// WithMembership passes options to the membership of the node. A method of discovery is given
// by [WithDiscovery] instead: the names in the configuration are checked against those.
func WithMembership(opts ...membership.Option) Option {
	return func(o *options) { o.membership = append(o.membership, opts...) }
}

// WithSharding passes options to the sharding of the node.
func WithSharding(opts ...sharding.Option) Option {
	return func(o *options) { o.sharding = append(o.sharding, opts...) }
}

// WithGateway passes options to the gateway of the node, which listens for clients if the configuration says so.
func WithGateway(opts ...gateway.Option) Option {
	return func(o *options) { o.gateway = append(o.gateway, opts...) }
}

// WithRoutes adds routes of the program to the node's HTTP interface.
func WithRoutes(routes ...management.Route) Option {
	return func(o *options) { o.routes = append(o.routes, routes...) }
}

// WithCheck adds a reason of the program why the node is not ready, see [Node.Ready].
func WithCheck(c management.Check) Option { return func(o *options) { o.checks = append(o.checks, c) } }

// WithMetrics sets where the metrics of the node can be fetched when the section telemetry
// asks for it, such as prometheus.Endpoint() of the module cluster/prometheus. Without it a
// configuration that asks for metrics is refused.
func WithMetrics(e telemetry.Endpoint) Option { return func(o *options) { o.metrics = e } }

// WithMeterProvider sets where the metrics of the node go, for a program with an SDK of
// OpenTelemetry of its own. It excludes metrics by the section telemetry. The
// default is the global provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithPropagator sets what travels with a message from its sender to its entity, such as a trace context and baggage;
// it is used as it is. The default is the global propagator of OpenTelemetry; while the program has set none, the
// trace context of W3C travels and nothing else. See [sharding.WithPropagator].
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(o *options) { o.propagator = p }
}

// WithTracerProvider sets where the traces of messages, and of questions to strategies and plugins, go. The default is
// the global provider of OpenTelemetry, which does nothing until the program sets it.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.traces = p } }

// Start starts a node: it listens, and begins to join the cluster of its seed nodes or,
// as the first of them, to form it. It does not wait for the cluster; see [Node.AwaitUp].
// The context bounds Start alone. The error says what is wrong with the configuration, or
// with the address; or, if the cluster has refused the node already, why.
func Start(ctx context.Context, opts ...Option) (*Node, error) {
	o := optionsOf(opts)
	o.starts = true
	cfg, file, err := o.load()
	if err != nil {
		return nil, err
	}
	o.starts = false // A reload binds and opens nothing of that.
	node := &Node{parts: parts(), checks: o.checks, dataStarted: make(chan struct{}), leave: cfg.Membership.LeaveTimeout + cfg.Membership.ExitTimeout}
	for i, section := range o.sections {
		section.fill(cfg.own[i])
		node.parts = append(node.parts, section.part(i))
	}
	b := &builder{Node: node, cfg: cfg, file: file}
	if o.log, err = node.log.open(cfg.Log, o.log, o.ownLog); err != nil {
		return nil, b.locate(err)
	}
	b.options, b.log = *o, o.log
	if node.ends, err = newEnding(node, cfg.Shutdown, b.log); err != nil {
		return nil, err
	}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	return node, nil
}

// Self returns the node's identity.
func (n *Node) Self() gossip.NodeID { return n.member.Self() }

// Membership returns the node's membership.
func (n *Node) Membership() *membership.Node { return n.member }

// Sharding returns the node's sharding.
func (n *Node) Sharding() *sharding.System { return n.sharding }

// Data returns the node's replicated data.
func (n *Node) Data() *ddata.Replicator { return n.data }

// Gateway returns the gateway of the node, which listens for clients if the configuration says so.
func (n *Node) Gateway() *gateway.Server { return n.gateway }

// Registry returns the registry of services of the node, which the first call starts. Until
// then it costs nothing, and what other nodes have registered is there without it. The error
// says that the node has ended, or that the program has put a registry on it by itself.
func (n *Node) Registry() (*registry.Registry, error) { return n.registry.get() }

// Topics returns the part of the node in topics, which the first call starts: until then it
// costs nothing. The error says that the node has ended, or that the program has put topics
// on it by itself.
func (n *Node) Topics() (*pubsub.PubSub, error) { return n.topics.get() }

// Locations returns the map that says where the shards of the cluster should live, which the allocation
// strategy "external" follows.
func (n *Node) Locations() *locations.Map { return locations.New(n) }

// States returns the keeper of the states of entities, for package sharding/state, over the store that
// states.store names; nil if it names none. Its metrics go where those of the node go.
func (n *Node) States() *state.Keeper { return n.states.keeper }

// Reminders returns the reminders of the cluster, which the first call starts: each node of the cluster calls it, or
// buckets live only where it was called. They are in the store that states.store names; without one
// the error wraps [ErrNoStates].
func (n *Node) Reminders() (*reminder.Service, error) { return n.states.reminders.get() }

// AwaitUp waits until the node is up. It returns the error of ctx, or that of [Node.Err]
// if the node ends first.
func (n *Node) AwaitUp(ctx context.Context) error { return n.member.AwaitUp(ctx) }

// ManagementAddress returns the "host:port" of the node's HTTP interface, "" if there is
// none.
func (n *Node) ManagementAddress() string { return n.management.Address() }

// HealthAddress returns the "host:port" at which the node answers health checks alone, "" if
// there is none.
func (n *Node) HealthAddress() string { return n.health.Address() }

// Ready returns the reasons why the node cannot serve, each a sentence; none if it can: it is
// up, has standing, no kind of it is refused, its replicas of the data count or did not within a minute
// ([ddata.Replicator.Unready]), and no check of [WithCheck] has a reason.
func (n *Node) Ready() []string {
	return management.Ready(n.member, n.reasons)
}

// Health returns a handler of the health checks for a server of the program's own: /health/live,
// /health/ready and /health/startup, see [management.Health]. It answers whoever asks.
func (n *Node) Health() http.Handler {
	return management.HealthHandler(n.member, n.warnings, n.reasons)
}

// MeterProvider returns where the metrics of the node go. Metrics of the program's own
// that go there are shown beside them.
func (n *Node) MeterProvider() metric.MeterProvider {
	if n.meters == nil {
		return otel.GetMeterProvider()
	}
	return n.meters
}

// Leave hands over what the node hosts, takes the node out of the cluster and ends it.
// The error is that of ctx, or of [Node.Err].
func (n *Node) Leave(ctx context.Context) error {
	if err := n.member.Leave(ctx); err != nil {
		return err
	}
	return n.stop(ctx)
}

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.member.Done() }

// Err returns why the node ended; see [membership.Node.Err].
func (n *Node) Err() error { return n.member.Err() }

// Close leaves the cluster in order, within the configured leave-timeout and
// exit-timeout, and ends the node in any case, without the tasks of [Node.OnShutdown]. What has not ended a second
// after that, such as an entity that does not return, is left behind. It may be called again, and after [Node.Run].
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.leave)
	defer cancel()
	select {
	case <-n.Done():
		if !n.ends.Begun() { // Who waited in Shutdown has waited long enough.
			return n.stop(ctx)
		}
	default:
		_ = n.Leave(ctx) // What cannot be done in order is done by force.
	}
	if err := n.member.Close(); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return n.stop(ctx)
}

// Run waits until ctx ends, as by a signal, or the node has ended by itself, as one that was declared down, and then
// ends everything in its order: see [Node.Shutdown]. It returns nil if the node has left in order, and all tasks have
// done what they had to.
//
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
//	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
//	os.Exit(cluster.ExitStatus(node.Run(ctx)))
func (n *Node) Run(ctx context.Context) error {
	return verdict(n.Shutdown(context.WithoutCancel(ctx), n.ends.await(ctx)))
}

// Shutdown ends the node in the phases of package shutdown, within the section shutdown: it says that it is not ready,
// servers end, the node hands over what it hosts and leaves, and what entities have used is closed. A node that has
// ended already goes through the same phases. Who calls it again gets the report of the first call.
func (n *Node) Shutdown(ctx context.Context, reason string) shutdown.Report {
	return n.ends.Run(ctx, reason)
}

// OnShutdown gives a phase of the end of the node a task: [shutdown.Serve] for a server of the program,
// [shutdown.Close] for what entities have used. It runs in [Node.Run] and [Node.Shutdown], not in [Node.Close]. The
// error is that of [shutdown.Sequence.Add].
func (n *Node) OnShutdown(phase, name string, task func(context.Context) error) (remove func(), err error) {
	return n.ends.Add(phase, name, task)
}
