// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/internal/wire"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/grpc"
)

// A node is built without starting anything ([build]), started ([Start]), and taken apart
// by one goroutine when it ends ([Node.run]). In between are its queries and its
// commands, which are inputs to the membership machine ([Node.command]).

// ComponentName is the name of the membership machine among the components of
// a node.
const ComponentName = "membership"

// protocolRange is the range of versions of the protocol between nodes that this
// release speaks.
var protocolRange = gossip.ProtocolRange{Min: 1, Max: 4} //nolint:gochecknoglobals // A constant of struct type.

// Node is one incarnation of one member of a cluster.
type Node struct {
	self      gossip.NodeID
	cluster   string
	dataDir   string
	roles     []string
	log       *slog.Logger
	limited   *slog.Logger // The log for what strangers and other clusters can cause.
	clock     *machine.SystemClock
	driver    *machine.Driver
	transport transport.Transport
	machine   *machine.Handle // Of the membership machine.
	disk      disk
	standing  Standing
	strangers strangerFilter
	hub       hub
	decisions Decisions
	admission admission
	metrics   *metrics
	spans     *spans
	report    searchStatus
	search    search
	judge     fd.Judge // Nil: the failure detectors of the machine decide.
	loaded    downingTable
	builtIns  downing.Catalogue // Strategies that need no provider.

	connections connections
	commands    commands
	attached    sync.Map // Component name to Attachment.

	life     lifecycle
	clients  sync.WaitGroup // Goroutines that serve effects of the machines.
	counters counters
}

// Start makes the process a member: it listens on the configured address and
// begins to join through the seed nodes. It does not wait for the cluster; see
// [Node.AwaitUp]. The context bounds Start alone. The error names what is wrong
// with the configuration, or with the address.
func Start(ctx context.Context, cfg Config, opts ...Option) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o, err := resolve(opts)
	if err != nil {
		return nil, err
	}
	n, meters, err := build(cfg, o)
	if err != nil {
		return nil, err
	}
	if err := n.transport.Start(ctx); err != nil {
		n.discard()
		return nil, fmt.Errorf("membership: %w", err)
	}
	n.disk.warnOfModes(cfg)
	n.driver.Start()
	n.metrics.start(meters, o.meters)
	// Owned by the node; ends when the machine says so or by Close, which
	// waits for it through done.
	go n.run()
	if err := n.begin(ctx, cfg.Membership); err != nil {
		_ = n.Close() // The first error is the one to return.
		return nil, err
	}
	return n, nil
}

// begin begins to look for a cluster, where the configuration says among whom.
func (n *Node) begin(ctx context.Context, cfg ProtocolConfig) error {
	switch {
	case cfg.Discovery.Looks():
		return n.commands.give(ctx, protocol.Discover{})
	case len(cfg.SeedNodes) > 0:
		return n.Join(ctx, cfg.SeedNodes...)
	}
	n.log.InfoContext(ctx, "this node waits until the program lets it join: membership.seed-nodes names nobody, and membership.discovery looks for nobody")
	return nil
}

// resolve fills in what the options leave out.
func resolve(opts []Option) (options, error) {
	o := options{log: slog.Default(), transport: dialGRPC, builtIns: downing.BuiltIns()}
	for _, opt := range opts {
		opt(&o)
	}
	if err := errors.Join(o.detector.validate(), o.judge.validate()); err != nil {
		return o, err
	}
	var seed [24]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return o, fmt.Errorf("membership: no random numbers: %w", err)
	}
	if o.uid == 0 {
		o.uid = gossip.UID(binary.LittleEndian.Uint64(seed[:]) | 1) // Never zero.
	}
	if o.rand == nil {
		o.rand = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[8:]), binary.LittleEndian.Uint64(seed[16:])))
	}
	return o, nil
}

// dialGRPC is the default transport.
func dialGRPC(id transport.Identity, cfg transport.Config, notices func(transport.Notice)) (transport.Transport, error) {
	return grpc.New(id, cfg, grpc.WithNotices(notices))
}

// build makes a node without starting anything.
func build(cfg Config, o options) (*Node, *meter.Meter, error) {
	address, err := gossip.ParseAddress(cfg.Node.Address)
	if err != nil {
		return nil, nil, err
	}
	self := gossip.NodeID{Address: address, UID: o.uid}
	n := &Node{
		self: self, cluster: cfg.Cluster.Name, dataDir: cfg.Node.DataDir, roles: slices.Compact(slices.Sorted(slices.Values(cfg.Node.Roles))), log: o.log.With("node", self.String()), clock: machine.NewSystemClock(),
		builtIns: o.builtIns,
	}
	n.life.begin()
	n.limited = machine.LimitLog(n.log)
	n.admission = admission{ctx: n.life.ctx, limited: n.limited, source: n.Source, view: n.View, large: make(chan struct{}, largeAtATime)}
	n.connections = connections{self: self, log: n.log, limited: n.limited, source: n.Source}
	n.loaded.log = n.log
	n.standing.clock, n.decisions.clock, n.disk.log = n.clock, n.clock, n.log
	n.decisions.journal.log, n.decisions.journal.limited = n.log, n.limited
	n.standing.margin = cfg.Membership.FailureDetector.HeartbeatInterval + machine.FilterMargin
	useCounter(n.clock, cfg.Node, n.log)
	n.strangers.log, n.strangers.source = n.log, n.Source
	metrics, meters := newMetrics(n, o.meters)
	n.metrics, n.spans = metrics, newSpans(o.traces, self.String(), &n.loaded)
	n.hub.view = View{Self: self, State: gossip.New(gossip.ClusterID{})}
	identity := transport.Identity{
		Node: self, Cluster: cfg.Cluster.Name, Protocol: protocolRange,
		ClusterID: func() gossip.ClusterID { return n.View().State.Cluster() },
		Known:     n.admission.known, Roles: n.roles,
	}
	n.driver = machine.NewDriver(n.ports(), 0)
	if err := n.disk.open(cfg); err != nil {
		n.discard()
		return nil, nil, fmt.Errorf("membership: %w", err)
	}
	t, err := o.transport(identity, cfg.Transport, n.connections.noticed)
	if err != nil {
		n.discard()
		return nil, nil, fmt.Errorf("membership: %w", err)
	}
	n.transport = t // Only now: a nil pointer in an interface is not nil.
	if err := optional.Check(t, reflect.TypeFor[transport.Transport](), reflect.TypeFor[transport.Answerer](), reflect.TypeFor[transport.Sourcer]()); err != nil {
		n.discard()
		return nil, nil, fmt.Errorf("membership: transport: %w", err)
	}
	if err := n.attachMembership(cfg, o); err != nil {
		n.discard()
		return nil, nil, fmt.Errorf("membership: %w", err)
	}
	return n, meters, nil
}

// useCounter lets a clock be read by the counter of the processor, where that is wanted
// and possible.
func useCounter(clock *machine.SystemClock, cfg NodeConfig, log *slog.Logger) {
	if !cfg.CycleCounter {
		return
	}
	if err := clock.UseCounter(); err != nil {
		log.Debug("the clock is read in full before each message", "reason", err)
	}
}

// discard releases everything of a node that was not started.
func (n *Node) discard() {
	_ = n.driver.Close() // It never fails.
	n.life.cancel()
	if n.transport != nil {
		_ = n.transport.Close() // The reason for discarding the node is the error to report.
	}
	n.disk.close()
}

// attachMembership builds the membership machine and attaches it to the driver.
func (n *Node) attachMembership(cfg Config, o options) error {
	detects, judge := cfg.Membership.FailureDetector, ""
	if o.judge.judges(detects) {
		n.judge, judge = o.judge.judge, detects.Strategy
		detects.Strategy = fd.StrategyPhiAccrual // Beside the judge.
	}
	detector, err := o.detector.make(detects)
	if err != nil {
		return err
	}
	bootstrapper, err := n.search.open(cfg, o, n.self.Address)
	if err != nil {
		return err
	}
	first, err := o.downing.first(cfg.Downing)
	if err != nil {
		return err
	}
	strategy, err := first.strategy(o.builtIns)
	if err != nil {
		return err
	}
	settings, err := comparedSettings(o.settings)
	if err != nil {
		return err
	}
	member := gossip.Member{
		Node: n.self, Zone: cfg.Node.Zone, Roles: n.roles, AppVersion: cfg.Node.AppVersion, Protocol: protocolRange,
	}
	deps := protocol.Dependencies{
		Rand: o.rand, Detector: detector, Judge: judge, Settings: settings, Bootstrap: bootstrapper,
		Downing: protocol.Downing{
			Config: cfg.Downing, Version: strategy.Version, Parameters: strategy.Parameters, Decide: strategy.Decide,
			Misfit: strategy.Misfit, Keeps: strategy.Keeps,
			Class: downing.Class{Pure: strategy.Pure, MajorityOnly: strategy.MajorityOnly}, Load: n.loaded.add(first),
		},
	}
	deps.Record, deps.Remember = n.disk.remembered()
	m, err := protocol.New(cfg.Membership.Config, member, deps)
	if err != nil {
		return err
	}
	n.machine, err = n.Attach(Attachment{Component: machine.Component{
		Name: ComponentName, Service: protocol.Service, Machine: &countedMachine{m, &n.counters.machine}, Codec: wire.Codec{},
	}})
	n.connections.machine, n.commands = n.machine, commands{machine: n.machine, life: &n.life}
	return err
}

// Self returns the node's identity.
func (n *Node) Self() gossip.NodeID { return n.self }

// ClusterName returns the name of the cluster to which the node belongs.
func (n *Node) ClusterName() string { return n.cluster }

// DataDir returns the directory of the node, empty for none: see [NodeConfig.DataDir]. A
// part of the node that has to keep something keeps it in a directory of its own below.
func (n *Node) DataDir() string { return n.dataDir }

// HasRole reports whether the node was configured with a role.
func (n *Node) HasRole(role string) bool { return slices.Contains(n.roles, role) }

// View returns what the node knows of its cluster now.
func (n *Node) View() View { return n.hub.current() }

// State returns the membership state as the node knows it now.
func (n *Node) State() *gossip.State { return n.View().State }

// Standing returns the node's standing, the same value for the life of the node.
func (n *Node) Standing() *Standing { return &n.standing }

// Subscribe returns a subscription to the events of the cluster, beginning
// with a [Snapshot]. It must be closed.
func (n *Node) Subscribe() *Subscription { return n.hub.subscribe() }

// Stats returns the counters. It waits for nobody.
func (n *Node) Stats() Stats {
	c, m := &n.counters, n.counters.machine.load()
	return Stats{
		Unsent: c.unsent.Load(), Undecodable: n.admission.undecodable.Load(), Oversize: n.admission.oversize.Load(),
		Refused: c.refused.Load(), Unheard: n.connections.unheard.Load(), Strangers: n.strangers.count.Load(),
		Rounds: m.Rounds, Pushes: m.Pushes, Marks: m.Marks, Clears: m.Clears,
		Driver: n.driver.Stats(), Transport: n.transport.Counters(),
	}
}

// Decisions returns the decisions of the node, the same value for its life.
func (n *Node) Decisions() *Decisions { return &n.decisions }

// Join joins the cluster of the seed nodes, for a node whose configuration names none and
// looks for none. If no node remembers a cluster, more than half of the seed nodes form a
// new one. Join returns when the attempt has begun; a member ignores it.
func (n *Node) Join(ctx context.Context, seeds ...string) error {
	addresses, err := parseAddresses(seeds)
	if err != nil {
		return fmt.Errorf("membership: %w", err)
	}
	if n.search.found != nil {
		return errors.New("membership: this node looks contact points up: membership.discovery.methods says how")
	}
	if len(addresses) == 0 {
		return errors.New("membership: no seed node was given to join")
	}
	return n.commands.give(ctx, protocol.Join{Seeds: addresses})
}

// AwaitUp waits until this node is up: a member that takes part in everything. It returns
// the error of ctx, or if the node ends first that of [Node.Err], [ErrClosed] if the node
// left in order.
func (n *Node) AwaitUp(ctx context.Context) error {
	return n.await(ctx, func(m *gossip.Member) bool {
		return m != nil && m.Status.IsUp()
	})
}

// await waits until wished holds for this node's own member, nil before the node has
// joined.
func (n *Node) await(ctx context.Context, wished func(*gossip.Member) bool) error {
	sub := n.Subscribe()
	defer sub.Close()
	for {
		select {
		case <-n.life.stopping: // The last view is outdated.
			<-n.life.done
			return cmp.Or(n.life.err, ErrClosed)
		default:
		}
		if wished(n.View().Member()) {
			return nil
		}
		if _, err := sub.Next(ctx); err != nil && !errors.Is(err, ErrClosed) {
			return err
		}
	}
}

// Leave takes this node out of the cluster in order: its work is handed over, then the
// node is removed. It returns nil when that is done, otherwise the error of ctx or of
// [Node.Err]. A node that is no member yet just ends.
func (n *Node) Leave(ctx context.Context) error {
	if n.View().Member() == nil {
		n.life.end(nil)
	} else if err := n.commands.give(ctx, protocol.Leave{Address: n.self.Address}); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	select {
	case <-n.life.done:
		return n.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// LeaveMember asks a member to leave in order, named as in [ParseMember]. It returns when
// this node has taken the request, not when the member is gone. The error is that of ctx,
// an [*UnknownMemberError], with which nothing has changed, or [ErrClosed].
func (n *Node) LeaveMember(ctx context.Context, member string) error {
	return n.commands.order(ctx, member, func(named gossip.NodeID, id uint64) machine.Input {
		return protocol.Leave{Address: named.Address, UID: named.UID, ID: id}
	})
}

// PrepareShutdown has the whole cluster prepare to be stopped, which cannot be taken back: nobody
// is let in any more, members that are not up yet leave, and nothing is moved between members to
// even out load. Members that are up become [gossip.Preparing], and all at once [gossip.Ready]
// when no other is left. Until then they work as before, and afterwards too: only when one of
// them is asked to leave, all leave together, and hand nothing over. The data of a majority of
// the voters can then start the cluster again. It returns when this node has taken the request;
// the error is that of ctx, [ErrNotUp] or [ErrClosed].
func (n *Node) PrepareShutdown(ctx context.Context) error {
	if m := n.View().Member(); m == nil || m.Status < gossip.Up {
		return ErrNotUp
	}
	return n.commands.give(ctx, protocol.Prepare{})
}

// Down declares a member failed, named as in [ParseMember]: by its id, if another process may have taken its address.
// The member must have stopped or be cut off for good: if it has not, it ends as soon as it hears of this, and what it
// hosts starts elsewhere after its fence. Where the downing strategy may keep a side without a majority, a member that
// does not hear of this is not down until the strategy, which is told, has decided: it may live, and be kept. Down
// returns when this node has taken the request. The error is that of ctx, an [*UnknownMemberError], with which nothing
// has changed, [ErrNotUp] or [ErrClosed].
func (n *Node) Down(ctx context.Context, member string) error {
	return n.commands.order(ctx, member, func(named gossip.NodeID, id uint64) machine.Input {
		return protocol.Down{Address: named.Address, UID: named.UID, ID: id}
	})
}

// Done is closed when the node has ended: it left, was declared down, was
// refused, or was closed.
func (n *Node) Done() <-chan struct{} { return n.life.done }

// Err returns why the node ended: nil when it left in order or has not ended,
// otherwise an error that wraps [ErrDown], [ErrRefused], [ErrJoinFailed] or
// [ErrClosed].
func (n *Node) Err() error { return n.life.why() }

// Close ends the node at once and waits for all its goroutines. The others
// notice it as a failure, unless the node has left. It returns nil, may be
// called again, and must not be called from a strategy or a handler.
func (n *Node) Close() error {
	n.life.end(ErrClosed)
	<-n.life.done
	return nil
}

// run waits for the end of the node and takes it apart. The driver goes first, so that
// nothing is decided any more; the transport then has its linger to deliver the last
// messages.
func (n *Node) run() {
	<-n.life.stopping
	n.metrics.stop()
	n.standing.set(0)
	_ = n.driver.Close() // It never fails.
	n.life.cancel()
	if err := n.transport.Close(); err != nil {
		n.log.Warn("transport closed with an error", "error", err)
	}
	n.loaded.end()
	n.clients.Wait()
	n.disk.close()
	n.strangers.end()
	n.hub.end()
	n.decisions.journal.ended(n.life.err)
	close(n.life.done)
}
