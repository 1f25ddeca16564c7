// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/telemetry"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/transport"
)

// A node is the table of its parts ([parts]). The builder starts, stops and asks all of
// them in its order; below it are the functions of each row.

// part is a part of a node: a row of the table [parts]. Functions that a part does not
// need are nil.
type part struct {
	// name is the name of the part, for the log.
	name string

	// defaults sets the non-zero defaults of the part's sections.
	defaults func(*Config)

	// resolve makes the paths in the part's sections relative to the file.
	resolve func(c *Config, path func(string) string)

	// check reports conflicts between the part's sections and others. The Validate of a
	// section reports its own faults.
	check func(Config) error

	// linked reports what the part's sections need and the program did not link.
	linked func(*options, Config) error

	// settings are the part's settings that members compare when a node joins.
	settings func(configuration) []membership.Setting

	// start starts the part on top of the parts before it in the table. After an error
	// nothing of the part is left.
	start func(context.Context, *builder) error

	// stop ends the part, and waits for its end within the context. The parts after it in
	// the table have ended. stop may be called again.
	stop func(context.Context, *Node) error

	// routes show the part over HTTP. They are requested when all parts before management
	// have started.
	routes func(*Node) []management.Route

	// unready returns the reason why the part keeps the node from being ready; empty if
	// it does not.
	unready func(*Node) []string

	// prepare prepares the part for another configuration.
	prepare prepare

	// prepareLast is prepare for a step that can fail and cannot be taken back: it is
	// called when all other parts are prepared, those of the program too.
	prepareLast prepare
}

// prepare prepares a part of a node for the step from one configuration to another, see
// [Prepare].
type prepare func(ctx context.Context, n *Node, from, to configuration) (Prepared, error)

// parts are the parts of a node in the order in which they start; they stop in the
// reverse order. A new subsystem is a row here, and a field of [Config] for its section.
func parts() []part {
	return []part{
		{name: "shutdown", defaults: func(c *Config) { c.Shutdown = defaultShutdown() }, unready: func(n *Node) []string { return n.ends.unready() }},
		{name: "log", defaults: func(c *Config) { c.Log = defaultLog() }, prepare: prepareLog},
		{
			name: "telemetry", defaults: func(c *Config) { c.Telemetry = telemetry.Default() },
			check: Config.validateTelemetry, linked: (*options).linkedTelemetry, start: startTelemetry, stop: stopTelemetry, routes: (*Node).metricRoutes,
		},
		{
			name: "plugins", resolve: resolvePlugins, check: Config.validatePlugins, linked: (*options).linkedStrategies, start: startPlugins, stop: stopPlugins,
			routes: (*Node).pluginRoutes, unready: (*Node).waitsForLease, prepare: prepareDowning, prepareLast: prepareSwaps,
		},
		{name: "discovery", linked: (*options).linkedDiscovery, start: openDiscovery, stop: stopDiscovery},
		{
			name: "membership", defaults: defaultMembership, resolve: resolveMembership,
			check: func(c Config) error { return c.membership().ValidateAcross() },
			start: startMembership, stop: func(_ context.Context, n *Node) error { return n.member.Close() }, routes: (*Node).memberRoutes,
		},
		{name: "certificates", start: startCertificates, stop: stopCertificates, routes: certificateRoutes},
		{
			name: "sharding", defaults: func(c *Config) { c.Sharding = sharding.Default() }, linked: (*options).linkedShardLeases, start: startSharding, stop: stopSharding,
			routes: (*Node).shardRoutes, unready: (*Node).refused, prepare: prepareSharding,
		},
		{
			name: "states", defaults: defaultStates, linked: (*options).linkedStates, start: startStates, stop: stopStates,
		},
		{
			name: "ddata", defaults: func(c *Config) { c.Data = ddata.Default() }, resolve: resolveData, check: Config.validateData,
			linked: (*options).linkedData, settings: dataSettings, start: startData, stop: stopData, unready: func(n *Node) []string { return n.data.Unready() },
			routes: func(n *Node) []management.Route { return n.shown.all() },
		},
		{
			name: "registry", defaults: func(c *Config) { c.Registry = registry.Default() }, start: startRegistry, stop: stopRegistry,
			routes: func(n *Node) []management.Route { return registryRoutes{n}.all() },
		},
		{
			name: "pubsub", defaults: func(c *Config) { c.PubSub = pubsub.Default() }, check: Config.validateTopics, start: startTopics, stop: stopTopics,
			routes: func(n *Node) []management.Route { return topicRoutes{n}.all() },
		},
		{
			name: "gateway", defaults: func(c *Config) { c.Gateway = gateway.Default() }, resolve: resolveGateway, start: startGateway, stop: stopGateway,
		},
		{name: "reload", start: startReloader, stop: stopReloader, routes: reloadRoutes}, // Before management, whose routes use it.
		{
			name: "management", defaults: func(c *Config) { c.Management = management.Default() }, resolve: resolveManagement,
			start: startManagement, stop: stopManagement,
		},
	}
}

// builder is a node that is being started, with everything that it is started with.
type builder struct {
	*Node

	options options
	cfg     configuration
	file    *config.File // Nil if the node was configured in code.
	log     *slog.Logger // It has the attribute node as soon as the node has an identity.
}

// resolve returns what makes the paths of the files absolute; nil if there are no files.
func (b *builder) resolve() func(string) string {
	if b.file == nil {
		return nil
	}
	return b.file.Resolve
}

// locate adds the file and the line to the error of a part that names a setting by its whole key,
// such as that of a strategy which the program has not given.
func (b *builder) locate(err error) error {
	if b.file == nil {
		return new(config.File).Locate(err)
	}
	return b.file.Locate(err)
}

// start starts all parts. When one cannot start, those before it are stopped.
func (b *builder) start(ctx context.Context) error {
	for _, p := range b.parts {
		if p.start == nil {
			continue
		}
		if err := p.start(ctx, b); err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = b.stop(ctx) // The reason why the node did not start is the error to report.
			if ended := b.ended(); ended != nil {
				return ended
			}
			return err
		}
		b.started = append(b.started, p)
	}
	return nil
}

// ended returns why the membership of a node that was stopped had ended by itself before, nil
// if it had not. The cluster may refuse a node while its later parts start, and what these say
// then is that it is closed.
func (b *builder) ended() error {
	if b.member == nil {
		return nil
	}
	if err := b.member.Err(); !errors.Is(err, membership.ErrClosed) {
		return err
	}
	return nil
}

// stop stops the parts that have started, in the reverse order.
func (n *Node) stop(ctx context.Context) error {
	var faults []error
	for _, p := range slices.Backward(n.started) {
		if p.stop != nil {
			faults = append(faults, p.stop(ctx, n))
		}
	}
	return errors.Join(faults...)
}

// routes returns the routes of all parts.
func (n *Node) routes() []management.Route {
	var all []management.Route
	for _, p := range n.parts {
		if p.routes != nil {
			all = append(all, p.routes(n)...)
		}
	}
	return all
}

// unready returns the reasons why parts keep the node from being ready.
func (n *Node) unready() []string {
	var why []string
	for _, p := range n.parts {
		if p.unready != nil {
			why = append(why, p.unready(n)...)
		}
	}
	return why
}

// compared returns the settings of all parts that members compare.
func (b *builder) compared() []membership.Setting {
	var all []membership.Setting
	for _, p := range b.parts {
		if p.settings != nil {
			all = append(all, p.settings(b.cfg)...)
		}
	}
	return all
}

// startTelemetry sends the metrics to where the configuration says.
func startTelemetry(ctx context.Context, b *builder) error {
	if b.options.meters != nil && b.cfg.Telemetry.Metrics != telemetry.None {
		return field.Errorf("telemetry.metrics", "set both by the option WithMeterProvider and by the configuration")
	}
	b.meters = b.options.meters
	if b.cfg.Telemetry.Metrics == telemetry.None {
		return nil
	}
	metrics, err := b.options.metrics.Open(b.cfg.Telemetry, b.cfg.Cluster.Name, b.cfg.Node.Address, b.log)
	if err != nil {
		b.log.WarnContext(ctx, "the node runs without metrics", "error", err)
		return nil
	}
	b.metrics, b.meters = metrics, metrics.MeterProvider()
	return nil
}

func stopTelemetry(_ context.Context, n *Node) error {
	if n.metrics == nil {
		return nil
	}
	return n.metrics.Close()
}

// metricRoutes returns the route of the metrics.
func (n *Node) metricRoutes() []management.Route {
	if n.metrics == nil {
		return nil
	}
	return []management.Route{{Path: "/metrics", Summary: "The metrics of the node", Handler: n.metrics}}
}

// defaultMembership sets the defaults of the sections that make a node a member.
func defaultMembership(c *Config) {
	m := membership.Default()
	c.Cluster, c.Node, c.Membership, c.Transport, c.Downing = m.Cluster, m.Node, m.Membership, m.Transport, m.Downing
}

func resolveMembership(c *Config, path func(string) string) {
	c.Node.DataDir = path(c.Node.DataDir)
	resolveTLS(&c.Transport.TLS, path)
}

func resolveTLS(files *transport.TLSFiles, path func(string) string) {
	for _, name := range files.Paths() {
		*name = path(*name)
	}
}

// startMembership starts the membership, with the plugin of its downing strategy.
func startMembership(ctx context.Context, b *builder) error {
	decides, err := b.plugins.forMembership(ctx, b.cfg)
	if err != nil {
		return err
	}
	opts := slices.Concat([]membership.Option{
		membership.WithLogger(b.log), membership.WithMeterProvider(b.meters), membership.WithTracerProvider(b.options.traces), membership.WithSettings(b.compared()...),
	}, decides, b.looksUp(), b.options.membership)
	if b.member, err = membership.Start(ctx, b.cfg.membership(), opts...); err != nil {
		return b.locate(err)
	}
	b.log = b.log.With("node", b.Self().String())
	return nil
}

// memberRoutes returns the routes about members and about the node's health.
func (n *Node) memberRoutes() []management.Route {
	return slices.Concat(n.healthRoutes(), management.Members(n.member), management.Decisions(n.member), management.Bootstrap(n.member), management.Operations(n.member), management.Akka(n.member))
}

// healthRoutes returns the routes of health checks.
func (n *Node) healthRoutes() []management.Route {
	return management.Health(n.member, n.warnings, n.reasons)
}

// warnings returns what an operator should know of although the node is ready.
func (n *Node) warnings() []string { return append(n.data.Warnings(), n.certificates.warnings()...) }

// reasons returns why parts, or the program, keep the node from being ready.
func (n *Node) reasons() []string {
	why := n.unready()
	for _, check := range n.checks {
		why = append(why, check()...)
	}
	return why
}

// startSharding starts sharding on the membership, with the plugin of its allocation
// strategy.
func startSharding(_ context.Context, b *builder) error {
	allocates, err := b.plugins.forSharding(b.Node, b.cfg.Config)
	if err != nil {
		return err
	}
	leases, err := b.openShardLeases()
	if err != nil {
		return err
	}
	opts := slices.Concat([]sharding.Option{
		sharding.WithLogger(b.log), sharding.WithMeterProvider(b.meters), sharding.WithTracerProvider(b.options.traces),
		sharding.WithPropagator(b.options.propagator),
	}, allocates, leases, b.options.sharding)
	b.sharding, err = sharding.New(b.member, b.cfg.Sharding, opts...)
	if err != nil {
		return errors.Join(b.locate(err), b.shardLeases.drop())
	}
	return nil
}

// stopSharding waits for the end of sharding, which ends with the membership below it: of
// the two, membership ends first.
func stopSharding(ctx context.Context, n *Node) error {
	return errors.Join(n.member.Close(), n.sharding.AwaitEnd(ctx), n.shardLeases.close(ctx))
}

// shardRoutes returns the routes about kinds, shards and entities.
func (n *Node) shardRoutes() []management.Route {
	return append(management.Explanations(n.Self().String(), explainer{n}), slices.Concat(hostRoutes{n}.all(), locationRoutes{n}.all(), everywhereRoutes{n}.all(), akkaRoutes{n}.all())...)
}

func defaultStates(c *Config) {
	c.States.Config, c.Reminders = state.Default(), reminder.Default()
}

// refused names the kinds of this node that coordinators refuse.
func (n *Node) refused() []string {
	var why []string
	for _, err := range n.sharding.Refused() {
		why = append(why, "the coordinator refuses "+err.Error())
	}
	slices.Sort(why)
	return why
}

// prepareSharding has sharding take over its section, with another strategy if that has changed.
// The section was checked, so this can fail only when the node has ended, and then it does not
// matter.
func prepareSharding(ctx context.Context, n *Node, from, to configuration) (Prepared, error) {
	if to.Sharding.Allocation.Strategy == allocation.ExternalName {
		return prepareFollowing(n, from, to)
	}
	if from.Sharding.Allocation.Strategy == to.Sharding.Allocation.Strategy {
		return Prepared{Commit: func() { _ = n.sharding.Reload(to.Sharding) }}, nil
	}
	strategy, opened, err := n.plugins.openAllocation(ctx, from, to)
	if err != nil {
		return Prepared{}, err
	}
	return Prepared{
		Discard: opened.Discard,
		Commit: func() {
			n.follows.Store(false)
			_ = n.sharding.ReloadAllocation(to.Sharding, strategy)
			opened.Commit()
		},
	}, nil
}

func resolveGateway(c *Config, path func(string) string) {
	resolveTLS(&c.Gateway.TLS, path)
	c.Gateway.TokenFile = path(c.Gateway.TokenFile)
}

// startGateway lets clients in, if that is configured.
func startGateway(ctx context.Context, b *builder) (err error) {
	opts := append([]gateway.Option{gateway.WithLogger(b.log), gateway.WithMeterProvider(b.meters, b.Self())}, b.options.gateway...)
	b.gateway, err = gateway.Serve(ctx, b.cfg.Gateway, b.sharding, opts...)
	return err
}

func stopGateway(_ context.Context, n *Node) error { return n.gateway.Close() }

func resolveManagement(c *Config, path func(string) string) {
	resolveTLS(&c.Management.TLS, path)
	c.Management.Operators.Socket = path(c.Management.Operators.Socket)
	c.Management.Operators.TokenFile = path(c.Management.Operators.TokenFile)
}

// operated adds what operators have asked for over HTTP to the decisions of the node.
func (n *Node) operated(c management.Change) {
	d := machine.Decide{Topic: "operation", Subject: c.Path, Verdict: c.Operation, Reason: "asked for by " + c.By}
	if c.Query != "" {
		d.Reason += ", with " + c.Query
	}
	if c.Err != nil {
		d.Verdict, d.Reason = c.Operation+" failed", d.Reason+": "+c.Err.Error()
	}
	n.member.Decisions().Record("management", d)
}

// startManagement serves the routes of all parts over HTTP.
func startManagement(ctx context.Context, b *builder) (err error) {
	protocol := b.cfg.Membership
	why := management.Why(b.member, management.Requirement{Members: protocol.MinNrOfMembers, OfRole: protocol.MinNrOfMembersOfRole})
	form := management.Form(b.member, b.cfg.Management.AllowForm, b.cfg.Management.Operators)
	routes := slices.Concat(b.routes(), form, why, b.options.routes)
	if b.cfg.Management.Serves() {
		b.feed = management.OpenFeed(b.member)
		routes = append(routes, b.feed.Routes()...)
	}
	b.management, err = management.Serve(ctx, b.cfg.Management, routes, management.WithLogger(b.log), management.WithChanges(b.operated))
	if err != nil {
		return errors.Join(err, b.feed.Close())
	}
	health := b.healthRoutes()
	if b.cfg.Management.Health.Metrics {
		health = append(health, b.metricRoutes()...)
	}
	b.health, err = management.ServeHealth(ctx, b.cfg.Management.Health, health, management.WithLogger(b.log))
	if err != nil {
		return errors.Join(err, b.management.Close(), b.feed.Close())
	}
	b.watched = measureStreams(b.meters, b.Self(), b.management, b.log)
	return nil
}

// stopManagement ends the listeners.
func stopManagement(_ context.Context, n *Node) error {
	n.watched()
	return errors.Join(n.management.Close(), n.health.Close(), n.feed.Close())
}

// startReloader begins to watch the files, if that is configured.
func startReloader(ctx context.Context, b *builder) error {
	b.reloader = newReloader(b)
	if err := b.reloader.watch(); err != nil {
		return errors.Join(err, b.reloader.close(ctx))
	}
	return nil
}

func stopReloader(ctx context.Context, n *Node) error { return n.reloader.close(ctx) }
