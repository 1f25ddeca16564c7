// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciler keeps values of the distributed data that list what is on which node in
// agreement with the nodes: it says which values have changed, has each node repair what they say
// of it, and removes what they say of nodes that are gone.
package reconciler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership"
)

// New makes the reconciler a component of the node, by which it learns of members. Run starts two
// goroutines. The one of follow receives the changes of all values that this node holds. The one
// of maintain learns that members have changed, checks once a tick the values that this node does
// not hold, and from time to time removes what is said of nodes that are gone (sweep).

const (
	// tick is how often names are looked at that this node does not hold, and those that
	// could not be repaired.
	tick = time.Second
	// sweepTicks is how many ticks lie between two looks for nodes that are gone.
	sweepTicks = 10
	// repairTimeout bounds how long one name that other nodes hold may keep the rest waiting.
	repairTimeout = 2 * time.Second
)

// Subject is the part of a service that knows what its values mean. Changed, Repair, Members and
// Tick are called on the reconciler's goroutines, and may read and change the data.
type Subject[V any] interface {
	// Changed says that the value of a name may have changed.
	Changed(name string)
	// Repair corrects what the value of a name says of this node, and reports whether it
	// is right now. If not, it is called again with the next tick.
	Repair(ctx context.Context, name string) bool
	// Names returns the names in which the service is interested, with values that say
	// something of this node or that are to be known to it.
	Names() []string
	// Members says that members of the cluster have changed.
	Members()
	// Tick is called once a second.
	Tick()
	// Nodes returns the nodes of which a value says something.
	Nodes(name string, v V) []gossip.NodeID
	// Remove removes what the value of a name says of a node.
	Remove(ctx context.Context, name string, node gossip.NodeID) error
}

// Reconciler keeps the values whose keys begin with a prefix. The rest of a key is called name.
type Reconciler[V crdt.Value[V]] struct {
	data    *ddata.Replicator
	prefix  string
	key     func(name string) ddata.Key[V]
	follow  func(context.Context)
	subject Subject[V]

	members  chan struct{}  // Holds one token when the members may have changed.
	absences AbsenceTracker // Belongs to the goroutine of maintain.

	mu      sync.Mutex          // Guards what follows; held for bookkeeping only.
	held    map[string]struct{} // All names that this node holds.
	pending map[string]struct{} // Names to be repaired with the next tick.
}

// decoder is *V.
type decoder[V any] interface {
	*V
	UnmarshalBinary(b []byte) error
}

// New returns a reconciler, which is a component of the node by the name that is given, so that
// there can be only one: the error is [machine.ErrTaken] otherwise.
func New[V crdt.Value[V], P decoder[V]](data *ddata.Replicator, component, prefix string, subject Subject[V]) (*Reconciler[V], error) {
	r := &Reconciler[V]{
		data: data, prefix: prefix, subject: subject, members: make(chan struct{}, 1), held: map[string]struct{}{}, pending: map[string]struct{}{},
	}
	r.key = func(name string) ddata.Key[V] { return ddata.NewKey[V, P](prefix + name) }
	r.follow = func(ctx context.Context) {
		sub := ddata.SubscribePrefix[V, P](data, prefix)
		defer sub.Close()
		r.receive(ctx, sub)
	}
	_, err := data.Node().Attach(membership.Attachment{Component: machine.Component{Name: component, Machine: memberWatcher{r.members}}})
	return r, err
}

// Run starts the goroutines of the reconciler. They end with ctx.
func (r *Reconciler[V]) Run(ctx context.Context, workers *sync.WaitGroup) {
	workers.Go(func() { r.follow(ctx) })
	workers.Go(func() { r.maintain(ctx) })
}

// Key returns the key of a name.
func (r *Reconciler[V]) Key(name string) ddata.Key[V] { return r.key(name) }

// Held returns how many names this node holds.
func (r *Reconciler[V]) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

// RepairLater has a name repaired with the next tick.
func (r *Reconciler[V]) RepairLater(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[name] = struct{}{}
}

// memberWatcher is a machine of the node that reports changes of the members.
type memberWatcher struct{ changed chan<- struct{} }

// Step reports a change of the members. It runs on the goroutine of the node's driver.
func (w memberWatcher) Step(_ machine.Now, in machine.Input, _ *machine.Outbox) {
	if _, ok := in.(component.Changed); !ok {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// receive handles the changes of the values that this node holds, until ctx or the node ends.
func (r *Reconciler[V]) receive(ctx context.Context, sub *ddata.PrefixSubscription[V]) {
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return
		}
		if e.Kind == ddata.Missed {
			continue // All names follow anew.
		}
		name := e.Key.Name()[len(r.prefix):]
		r.note(name, e.Kind == ddata.Changed)
		r.subject.Changed(name)
		r.inspect(ctx, name)
	}
}

// note records whether a name has a value.
func (r *Reconciler[V]) note(name string, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if there {
		r.held[name] = struct{}{}
	} else {
		delete(r.held, name)
	}
}

// inspect has the subject repair a name, and again with the next tick if that fails.
func (r *Reconciler[V]) inspect(ctx context.Context, name string) {
	r.mu.Lock()
	delete(r.pending, name) // A RepairLater from here on counts for the next tick.
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	if !r.subject.Repair(ctx, name) {
		r.RepairLater(name)
	}
}

// maintain does the work of each tick, and handles changes of the members, until ctx ends.
func (r *Reconciler[V]) maintain(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	changed := true
	for ticks := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-r.members:
			changed = true
			r.subject.Members()
		case <-ticker.C:
			if ticks++; ticks%sweepTicks == 0 && changed {
				changed = r.sweep(ctx)
			}
			r.checkUnheld(ctx)
			r.subject.Tick()
		}
	}
}

// checkUnheld repairs the names whose changes this node does not receive, and those that could not be repaired before.
func (r *Reconciler[V]) checkUnheld(ctx context.Context) {
	for _, name := range r.subject.Names() {
		if _, here := r.data.Homes(r.prefix + name); !here {
			r.subject.Changed(name)
			r.inspect(ctx, name)
		}
	}
	r.mu.Lock()
	pending := slices.Collect(maps.Keys(r.pending))
	r.mu.Unlock()
	for _, name := range pending {
		r.inspect(ctx, name)
	}
}

// sweep removes what is said of nodes that are gone, from the names for which this is the
// first node (see [Reconciler.first]), and reports whether there is more to do.
func (r *Reconciler[V]) sweep(ctx context.Context) (more bool) {
	state := r.data.Node().State()
	r.mu.Lock()
	held := slices.Sorted(maps.Keys(r.held))
	r.mu.Unlock()
	for _, name := range held {
		v, err := ddata.Get(ctx, r.data, r.key(name), ddata.Local())
		if err != nil {
			continue // It is gone, or goes with the node.
		}
		for _, node := range r.subject.Nodes(name, v) {
			if r.absences.Gone(node, state.Member(node) != nil) && r.first(state, name) {
				_ = r.subject.Remove(ctx, name, node) // What fails is found again by the next sweep.
			}
		}
	}
	return r.absences.Round()
}

// first reports whether this node is the first of those that hold a name and are members.
// Views that differ do no harm: removing twice is removing once.
func (r *Reconciler[V]) first(state *gossip.State, name string) bool {
	homes, _ := r.data.Homes(r.prefix + name)
	for _, node := range homes {
		if state.Member(node) == nil {
			continue
		}
		return node == r.data.Node().Self()
	}
	return false
}
