// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

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
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
)

// The file makes a [Registry], finds entries and ends. Registrations are in registration.go,
// subscriptions in subscription.go, and subject.go has what the reconciler asks of the registry.

// Prefix is how the keys of the distributed data begin that the registry uses.
const Prefix = "registry/"

// componentName is the name under which the registry is a component of its node.
const componentName = "registry"

var (
	// ErrClosed is returned, wrapped, when a registration, a subscription or the node has
	// ended.
	ErrClosed = errors.New("registry: closed")
	// ErrEntry is wrapped by the error about an entry that cannot be registered, with a
	// [field.Error] for each fault.
	ErrEntry = errors.New("registry: the entry is refused")
)

// Registry is the registry of one node.
type Registry struct {
	data        *ddata.Replicator
	node        *membership.Node
	log         *slog.Logger
	consistency ddata.Consistency
	reconciler  *reconciler.Reconciler[content]

	ctx     context.Context //nolint:containedctx // Ends with the node, and with it what the goroutines wait for.
	cancel  context.CancelFunc
	workers sync.WaitGroup
	stopped chan struct{} // Closed when every goroutine has ended.

	mu    sync.Mutex                 // Guards own, subs, last and ended; never held while something is waited for.
	own   map[uint64]*Registration   // The registrations of this node, by number.
	subs  map[string][]*Subscription // By the name that is subscribed to.
	last  uint64                     // The number of the last registration.
	ended bool

	counters counters
	meters   metric.MeterProvider // Nil stands for the global provider.
}

// counters are the counters of a registry.
type counters struct{ restored, removed, malformed atomic.Uint64 }

// Option is a collaborator that only code can give.
type Option func(*Registry)

// WithLogger sets where the registry logs. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(r *Registry) { r.log = l } }

// WithMeterProvider sets where the metrics go. The default is the global provider of
// OpenTelemetry.
func WithMeterProvider(p metric.MeterProvider) Option { return func(r *Registry) { r.meters = p } }

// WithConsistency sets for how many nodes registering and updating wait. The default is
// [ddata.Local]: an entry is of no use longer than its node lives.
func WithConsistency(c ddata.Consistency) Option { return func(r *Registry) { r.consistency = c } }

// New puts a registry on a node. A second one is an error, [machine.ErrTaken].
func New(h ddata.Host, opts ...Option) (*Registry, error) {
	data := h.Data()
	r := &Registry{
		data: data, node: data.Node(), log: slog.Default(), stopped: make(chan struct{}),
		own: map[uint64]*Registration{}, subs: map[string][]*Subscription{},
	}
	for _, opt := range opts {
		opt(r)
	}
	r.log = machine.LimitLog(r.log)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	var err error
	if r.reconciler, err = reconciler.New(data, componentName, Prefix, subject{r}); err != nil {
		r.cancel()
		return nil, fmt.Errorf("registry: %w", err)
	}
	// The goroutines are owned by the registry and end with the node; AwaitEnd waits for them.
	r.reconciler.Run(r.ctx, &r.workers)
	go r.run(r.observe())
	return r, nil
}

// run waits for the end of the node and ends everything, the metrics first.
func (r *Registry) run(unmeter func()) {
	<-r.node.Done()
	unmeter()
	r.mu.Lock()
	r.ended = true
	for _, all := range r.subs {
		for _, s := range all {
			s.notify()
		}
	}
	r.mu.Unlock()
	r.cancel()
	r.workers.Wait()
	close(r.stopped)
}

// AwaitEnd waits until the node has ended and everything of the registry with it, or ctx
// ends.
func (r *Registry) AwaitEnd(ctx context.Context) error {
	select {
	case <-r.stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Find returns what is registered under a name, ordered by node and number; none is no
// error. On a node that holds the name it asks no other node. Errors: [ErrEntry] for a name
// that nothing can have; those of [ddata.Get].
func (r *Registry) Find(ctx context.Context, name string) ([]Entry, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	all, err := r.all(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.visible(all), nil
}

// checkName returns an error for a name that no entry can have.
func checkName(name string) error {
	if err := (Entry{Name: name, Address: "any"}).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrEntry, err)
	}
	return nil
}

// all returns the entries of a name, whether their nodes are members or not.
func (r *Registry) all(ctx context.Context, name string) ([]Entry, error) {
	c, err := r.content(ctx, name)
	if err != nil {
		return nil, err
	}
	all, malformed := roll(name, c)
	if malformed > 0 {
		r.counters.malformed.Add(uint64(malformed))
	}
	return all, nil
}

// content returns the value of a name, empty if there is none.
func (r *Registry) content(ctx context.Context, name string) (content, error) {
	return contentOf(ctx, r.data, name)
}

// contentOf returns the value of a name, empty if there is none.
func contentOf(ctx context.Context, data *ddata.Replicator, name string) (content, error) {
	c, err := ddata.Get(ctx, data, ddata.NewKey[content](Prefix+name), ddata.Local())
	if errors.Is(err, ddata.ErrNotFound) || errors.Is(err, ddata.ErrDeleted) {
		return content{}, nil
	}
	if err != nil {
		err = fmt.Errorf("registry: name %q: %w", name, err)
	}
	return c, err
}

// visible returns the entries whose nodes are members and not downed.
func (r *Registry) visible(all []Entry) []Entry {
	state := r.node.State()
	var seen []Entry
	for _, e := range all {
		if hidden(state, e.Node) == "" {
			seen = append(seen, e)
		}
	}
	return seen
}

// change changes the value of a name.
func (r *Registry) change(ctx context.Context, name string, c ddata.Consistency, f func(crdt.Origin, content) content) error {
	_, err := ddata.Update(ctx, r.data, r.reconciler.Key(name), c, func(at crdt.Origin, v content) (content, error) {
		return f(at, v), nil
	})
	if err != nil {
		return fmt.Errorf("registry: name %q: %w", name, err)
	}
	return nil
}
