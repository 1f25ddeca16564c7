// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/services/internal/reconciler"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport"
)

// The file makes a [PubSub] and ends it, and has what its reconciler asks of it. Publishing is in
// publish.go, subscriptions are in subscription.go, and receive.go has what comes from other
// nodes.

// Prefix is how the keys of the distributed data begin that topics use.
const Prefix = "pubsub/"

// componentName is the name under which a PubSub is a component of its node.
const componentName = "pubsub"

// PubSub is the part of one node in all topics.
type PubSub struct {
	data       *ddata.Replicator
	node       *membership.Node
	self       gossip.NodeID
	log        *slog.Logger
	largest    int
	reconciler *reconciler.Reconciler[content]

	topics sync.Map // From names to *topicState; changed under mu.
	peers  sync.Map // From nodes to *peer.

	ctx     context.Context //nolint:containedctx // Ends with the node, and with it what the goroutines wait for.
	cancel  context.CancelFunc
	stopped chan struct{} // Closed when every goroutine has ended.

	mu      sync.Mutex // Guards what follows; held for bookkeeping only.
	workers sync.WaitGroup
	last    uint64 // The id of the last inbox.
	ticks   int
	ended   bool

	counters counters
	losses   losses
	meters   metric.MeterProvider // Nil stands for the global provider.
}

// counters are the counters of a PubSub.
type counters struct{ published, sent, received, unheard, malformed, undecoded atomic.Uint64 }

// Option is a collaborator that only code can give.
type Option func(*PubSub)

// WithLogger sets where drops are logged. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(p *PubSub) { p.log = l } }

// WithMeterProvider sets where the metrics go. The default is the global provider of
// OpenTelemetry.
func WithMeterProvider(m metric.MeterProvider) Option { return func(p *PubSub) { p.meters = m } }

// WithMaxMessageBytes bounds the encoding of a message. The default is what fits into a
// frame of the default size. Larger frames (transport.max-frame-bytes) allow more.
func WithMaxMessageBytes(n int) Option { return func(p *PubSub) { p.largest = n } }

// New puts topics on a node. A second one is an error, [machine.ErrTaken].
func New(h ddata.Host, opts ...Option) (*PubSub, error) {
	data := h.Data()
	p := &PubSub{
		data: data, node: data.Node(), self: data.Node().Self(), log: slog.Default(), stopped: make(chan struct{}),
		largest: fits(transport.Default()),
	}
	for _, opt := range opts {
		opt(p)
	}
	if p.largest < 1 {
		return nil, fmt.Errorf("%w: messages of at most %d bytes", ErrOption, p.largest)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.log = machine.LimitLog(p.log)
	p.losses.log = p.log
	var err error
	if p.reconciler, err = reconciler.New(data, componentName, Prefix, subject{p}); err != nil {
		p.cancel()
		return nil, fmt.Errorf("pubsub: %w", err)
	}
	p.node.Transport().Handle(component.ServicePubsub, p.receive)
	// The goroutines are owned by the PubSub and end with the node; AwaitEnd waits for them.
	p.reconciler.Run(p.ctx, &p.workers)
	go p.run(p.observe())
	return p, nil
}

// run waits for the end of the node and ends everything, the metrics first.
func (p *PubSub) run(unmeter func()) {
	<-p.node.Done()
	unmeter()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.cancel()
	p.each(func(t *topicState) {
		for _, b := range t.local.Load().all() {
			b.end()
		}
	})
	p.workers.Wait()
	p.losses.flush()
	close(p.stopped)
}

// start starts a goroutine that ends with the node, unless the node has ended.
func (p *PubSub) start(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.workers.Go(f)
	}
}

// AwaitEnd waits until the node has ended and everything of p with it, or ctx ends.
func (p *PubSub) AwaitEnd(ctx context.Context) error {
	select {
	case <-p.stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// each calls f for all topics that this node knows.
func (p *PubSub) each(f func(*topicState)) {
	p.topics.Range(func(_, t any) bool {
		f(t.(*topicState))
		return true
	})
}

// wrap adds the topic to an error of the data.
func wrap(topic string, err error) error {
	if errors.Is(err, ddata.ErrClosed) {
		return fmt.Errorf("%w: topic %q: %w", ErrClosed, topic, err)
	}
	return fmt.Errorf("pubsub: topic %q: %w", topic, err)
}

// subject implements [reconciler.Subject] for a [PubSub].
type subject struct{ *PubSub }

// Changed refreshes the route of a topic that is used here.
func (p subject) Changed(name string) {
	t, ok := p.topics.Load(name)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, pauseFor)
	defer cancel()
	_ = p.refresh(ctx, t.(*topicState)) // The route that is known stays.
}

// Names returns the topics with subscribers or publishers on this node.
func (p subject) Names() (names []string) {
	p.each(func(t *topicState) { names = append(names, t.name) })
	return names
}

// Members refreshes all routes, and drops the peers of nodes that are gone.
func (p subject) Members() {
	state := p.node.State()
	p.peers.Range(func(node, _ any) bool {
		if state.Member(node.(gossip.NodeID)) == nil {
			p.peers.Delete(node)
		}
		return true
	})
	for _, name := range p.Names() {
		p.Changed(name)
	}
}

// idleTicks is for how many ticks a topic is remembered to which nobody publishes.
const idleTicks = 60

// Tick forgets topics that nobody uses, and logs what was dropped.
func (p subject) Tick() {
	p.losses.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks++; p.ticks%idleTicks != 0 {
		return
	}
	p.each(func(t *topicState) {
		if !t.used.Swap(false) && t.local.Load().empty() {
			p.topics.Delete(t.name)
			t.over.Store(true)
			p.peers.Range(func(_, e any) bool {
				e.(*peer).handleSignal(t.name, open)
				return true
			})
		}
	})
}

// Repair makes the value of a topic list the subscribers of this node.
func (p subject) Repair(ctx context.Context, name string) bool {
	c, err := p.content(ctx, name)
	if err != nil {
		return false
	}
	return p.correctionOf(c, name).nothing() || p.tell(ctx, name, ddata.Local()) == nil
}

// correction is a change of the value of a topic, by which it lists the subscribers of this node.
type correction struct {
	add, remove []string // The groups to add this node to, and to remove it from.
}

// nothing reports whether the correction changes nothing.
func (f correction) nothing() bool { return len(f.add) == 0 && len(f.remove) == 0 }

// correctionOf returns the correction of the value of a topic.
func (p *PubSub) correctionOf(c content, name string) (f correction) {
	l, self := new(local), p.self.String()
	if t, ok := p.topics.Load(name); ok {
		l = t.(*topicState).local.Load()
	}
	want := func(group string) {
		if l.has(group) && !c.Has(group, self) {
			f.add = append(f.add, group)
		}
	}
	want("")
	for group := range l.groups {
		want(group)
	}
	for group := range c.Keys() {
		if c.Has(group, self) && !l.has(group) {
			f.remove = append(f.remove, group)
		}
	}
	return f
}

// tell writes into the data which subscribers of a topic this node has. However many do so
// at once, the last one to change the value has looked last.
func (p *PubSub) tell(ctx context.Context, name string, c ddata.Consistency) error {
	self := p.self.String()
	_, err := ddata.Update(ctx, p.data, p.reconciler.Key(name), c, func(at crdt.Origin, v content) (content, error) {
		r := p.correctionOf(v, name)
		for _, group := range r.add {
			v = v.Add(at, group, self)
		}
		for _, group := range r.remove {
			v = v.Remove(group, self)
		}
		return v, nil
	})
	if err != nil {
		return wrap(name, err)
	}
	return nil
}

// Nodes returns the nodes with subscribers in a value.
func (p subject) Nodes(_ string, c content) (nodes []gossip.NodeID) {
	seen := map[string]bool{}
	for _, text := range c.All() {
		if seen[text] {
			continue
		}
		seen[text] = true
		if node, err := gossip.ParseNodeID(text); err == nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Remove removes a node that is gone from a topic.
func (p subject) Remove(ctx context.Context, name string, node gossip.NodeID) error {
	_, err := ddata.Update(ctx, p.data, p.reconciler.Key(name), ddata.Local(), func(_ crdt.Origin, v content) (content, error) {
		for group := range v.Keys() {
			v = v.Remove(group, node.String())
		}
		return v, nil
	})
	return err
}
