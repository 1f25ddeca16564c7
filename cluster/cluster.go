// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"

	"github.com/quorate/quorate/config/field"
)

// Node is a node with everything on it. It is a [sharding.Host].
type Node struct {
	member     *membership.Node
	sharding   *sharding.System
	management *management.Server
	reloader   *reloader
	telemetry  *telemetry.Telemetry
	meters     metric.MeterProvider
	plugins    *strategies
	leave      time.Duration
}

var _ sharding.Host = (*Node)(nil)

// Option says where the configuration comes from, or is a collaborator that
// only code can give.
type Option func(*options)

// options are the arguments of Start.
type options struct {
	files      []string
	config     *Config
	changes    []func(*Config)
	log        *slog.Logger
	membership []membership.Option
	sharding   []sharding.Option
	routes     []management.Route
	prepares   []Prepare
	meters     metric.MeterProvider
	traces     trace.TracerProvider
}

// WithFile reads the configuration from a file. Given several times, later files
// override earlier ones.
func WithFile(path string) Option { return func(o *options) { o.files = append(o.files, path) } }

// WithConfig uses a configuration made in code; [Default] is where to start. The
// environment is then not looked at, and a file besides is an error.
func WithConfig(c Config) Option { return func(o *options) { o.config = &c } }

// WithChange changes the configuration after it was read, as for a flag of the
// program's own.
func WithChange(f func(*Config)) Option { return func(o *options) { o.changes = append(o.changes, f) } }

// WithLogger sets where the node logs. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// WithMembership passes options to the membership of the node.
func WithMembership(opts ...membership.Option) Option {
	return func(o *options) { o.membership = append(o.membership, opts...) }
}

// WithSharding passes options to the sharding of the node.
func WithSharding(opts ...sharding.Option) Option {
	return func(o *options) { o.sharding = append(o.sharding, opts...) }
}

// WithRoutes adds routes of the program to the node's HTTP interface.
func WithRoutes(routes ...management.Route) Option {
	return func(o *options) { o.routes = append(o.routes, routes...) }
}

// WithMeterProvider sets where the metrics of the node go, for a program with an SDK of
// OpenTelemetry of its own. It excludes metrics by the section telemetry. The
// default is the global provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithTracerProvider sets where the traces of messages go. The default is the global
// provider of OpenTelemetry, which does nothing until the program sets it.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.traces = p } }

// Start starts a node: it listens, and begins to join the cluster of its seed
// nodes or, as the first of them, to form it. It does not wait for the
// cluster; see [Node.AwaitUp]. The context bounds Start alone. The error says
// what is wrong with the configuration, or with the address.
func Start(ctx context.Context, opts ...Option) (*Node, error) {
	o := options{log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	cfg, file, err := o.load()
	if err != nil {
		return nil, err
	}
	if o.meters != nil && cfg.Telemetry.Metrics != telemetry.None {
		return nil, field.Errorf("telemetry.metrics", "set both by the option WithMeterProvider and by the configuration")
	}
	shown := telemetry.New(cfg.Telemetry, cfg.Cluster.Name, cfg.Node.Address, o.log)
	o = o.observed(shown)
	node := &Node{meters: o.meters, telemetry: shown, leave: cfg.Membership.LeaveTimeout + cfg.Membership.ExitTimeout}
	if err := node.start(ctx, &o, cfg, file); err != nil {
		node.discard() // The first error is the one to return.
		return nil, err
	}
	return node, nil
}

// observed has metrics go to where the configuration says, and shows them.
func (o options) observed(shown *telemetry.Telemetry) options {
	if p := shown.MeterProvider(); p != nil {
		o.meters = p
		o.routes = append(slices.Clip(o.routes), management.Route{Path: "/metrics", Handler: shown.Handler()})
	}
	return o
}

// start starts the parts of the node, one on top of the other.
func (n *Node) start(ctx context.Context, o *options, cfg Config, file *config.File) (err error) {
	if n.plugins, err = openStrategies(ctx, cfg, o.meters, o.log); err != nil {
		return err
	}
	decides, err := n.plugins.forMembership(ctx, cfg)
	if err != nil {
		return err
	}
	member := slices.Concat([]membership.Option{membership.WithLogger(o.log), membership.WithMeterProvider(o.meters)}, decides, o.membership)
	if n.member, err = membership.Start(ctx, cfg.membership(), member...); err != nil {
		return err
	}
	log := o.log.With("node", n.Self().String())
	allocates, err := n.plugins.forSharding()
	if err != nil {
		return err
	}
	shards := slices.Concat([]sharding.Option{
		sharding.WithLogger(log), sharding.WithMeterProvider(o.meters), sharding.WithTracerProvider(o.traces),
	}, allocates, o.sharding)
	if n.sharding, err = sharding.New(n.member, cfg.Sharding, shards...); err != nil {
		return err
	}
	routes := slices.Concat(management.Health(n.member, n.refused), management.Members(n.member), management.Decisions(n.member),
		management.Form(n.member, cfg.Management.AllowForm), management.Explanations(n.Self().String(), explainer{n.sharding}), n.pluginRoutes(), o.routes)
	if n.management, err = management.Serve(ctx, cfg.Management, routes, management.WithLogger(log)); err != nil {
		return err
	}
	n.reloader = newReloader(o, file, cfg, log, reloadSharding(n.sharding), n.plugins.reloadDowning(n.member))
	n.reloader.last = []Prepare{n.plugins.swapAllocation}
	return n.reloader.watch()
}

// discard ends what has started of a node that could not start whole.
func (n *Node) discard() {
	if n.reloader != nil {
		n.reloader.close()
	}
	if n.management != nil {
		_ = n.management.Close() // Why the node did not start is what to report.
	}
	if n.member != nil {
		_ = n.member.Close() // The same.
	}
	if n.plugins != nil {
		n.plugins.end()
	}
	_ = n.telemetry.Close() // The same.
}

// load returns the configuration that the options describe, and what was read
// for it, nil if nothing was.
func (o *options) load() (Config, *config.File, error) {
	if o.config != nil {
		if len(o.files) > 0 {
			return Config{}, nil, fmt.Errorf("cluster: both WithConfig and WithFile(%q) were given: use WithChange to change what a file says", o.files[0])
		}
		cfg, err := changed(*o.config, o.changes)
		return cfg, nil, err
	}
	file, err := config.Load(o.files...)
	if err != nil {
		return Config{}, nil, err
	}
	cfg, err := finish(file, o.changes)
	return cfg, file, err
}

// finish makes a configuration of what was read.
func finish(file *config.File, changes []func(*Config)) (Config, error) {
	cfg, err := decode(file)
	if err != nil {
		return Config{}, err
	}
	return changed(cfg, changes)
}

// changed returns a configuration with the changes of the program, checked.
func changed(cfg Config, changes []func(*Config)) (Config, error) {
	for _, change := range changes {
		change(&cfg)
	}
	return cfg, cfg.check()
}

// Self returns the node's identity.
func (n *Node) Self() gossip.NodeID { return n.member.Self() }

// Membership returns the node's membership.
func (n *Node) Membership() *membership.Node { return n.member }

// Sharding returns the node's sharding.
func (n *Node) Sharding() *sharding.System { return n.sharding }

// AwaitUp waits until the node is up. It returns the error of ctx, or that of
// [Node.Err] when the node ends first.
func (n *Node) AwaitUp(ctx context.Context) error { return n.member.AwaitUp(ctx) }

// refused says which kinds of this node the coordinators refuse.
func (n *Node) refused() []string {
	var why []string
	for _, err := range n.sharding.Refused() {
		why = append(why, "the coordinator refuses "+err.Error())
	}
	slices.Sort(why)
	return why
}

// ManagementAddress returns the "host:port" of the node's HTTP interface, ""
// when it has none.
func (n *Node) ManagementAddress() string { return n.management.Address() }

// MeterProvider returns where the metrics of the node go. What the program measures
// there itself is shown beside them.
func (n *Node) MeterProvider() metric.MeterProvider {
	if n.meters == nil {
		return otel.GetMeterProvider()
	}
	return n.meters
}

// Leave hands over what the node hosts, takes it out of the cluster and ends
// it. The error is that of ctx, or of [Node.Err].
func (n *Node) Leave(ctx context.Context) error {
	if err := n.member.Leave(ctx); err != nil {
		return err
	}
	return n.end(ctx)
}

// end waits for what ends with the membership, and closes what does not.
func (n *Node) end(ctx context.Context) error {
	n.reloader.close()
	err := errors.Join(n.sharding.AwaitEnd(ctx), n.management.Close(), n.telemetry.Close())
	n.plugins.end()
	return err
}

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.member.Done() }

// Err returns why the node ended; see [membership.Node.Err].
func (n *Node) Err() error { return n.member.Err() }

// Close leaves the cluster in order, within the configured leave-timeout and
// exit-timeout, and ends the node in any case. It may be called again.
func (n *Node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.leave)
	defer cancel()
	select {
	case <-n.Done():
		return n.end(ctx)
	default:
	}
	_ = n.Leave(ctx) // What could not be done in order is done by force.
	if err := n.member.Close(); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return n.end(ctx)
}
