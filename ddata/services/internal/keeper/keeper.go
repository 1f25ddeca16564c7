// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package keeper keeps values of the distributed data in order that list what is on which
// node: it says which of them have changed, has a node put right what the values say of it,
// and removes what they say of nodes that are gone.
package keeper

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

// New makes the keeper a component of the node, by which it hears of members. Run starts two
// goroutines. The one of follow hears of changes of all values that this node holds. The one
// of tend hears that members have changed, does once a beat what changes cannot do for
// values that this node does not hold, and from time to time removes what is said of nodes
// that are gone (sweep).

const (
	// beat is how often names are looked at that this node does not hold, and those that
	// could not be put right.
	beat = time.Second
	// sweepBeats is how many beats lie between two looks for nodes that are gone.
	sweepBeats = 10
	// patience bounds how long one name that other nodes hold may keep the rest waiting.
	patience = 2 * time.Second
)

// Ward is the part of a service that knows what its values mean. Heard, Mend, Members and
// Beat are called on the keeper's goroutines, and may read and change the data.
type Ward[V any] interface {
	// Heard says that the value of a name may have changed.
	Heard(name string)
	// Mend puts right what the value of a name says of this node, and reports whether it
	// is right now. If not, it is called again with the next beat.
	Mend(ctx context.Context, name string) bool
	// Names returns the names in which the service is interested, with values that say
	// something of this node or that are to be known to it.
	Names() []string
	// Members says that members of the cluster have changed.
	Members()
	// Beat is called once a second.
	Beat()
	// Nodes returns the nodes of which a value says something.
	Nodes(name string, v V) []gossip.NodeID
	// Remove removes what the value of a name says of a node.
	Remove(ctx context.Context, name string, node gossip.NodeID) error
}

// Keeper keeps the values whose keys begin with a prefix. The rest of a key is called name.
type Keeper[V crdt.Value[V]] struct {
	data   *ddata.Replicator
	prefix string
	key    func(name string) ddata.Key[V]
	follow func(context.Context)
	ward   Ward[V]

	members  chan struct{} // Holds one token when the members may have changed.
	absences Absences      // Belongs to the goroutine of tend.

	mu    sync.Mutex          // Guards what follows; held for bookkeeping only.
	held  map[string]struct{} // All names that this node holds.
	amiss map[string]struct{} // Names that are yet to be put right.
}

// decoder is *V.
type decoder[V any] interface {
	*V
	UnmarshalBinary(b []byte) error
}

// New returns a keeper, which is a component of the node by the name that is given, so that
// there can be only one: the error is [machine.ErrTaken] otherwise.
func New[V crdt.Value[V], P decoder[V]](data *ddata.Replicator, component, prefix string, ward Ward[V]) (*Keeper[V], error) {
	k := &Keeper[V]{
		data: data, prefix: prefix, ward: ward, members: make(chan struct{}, 1), held: map[string]struct{}{}, amiss: map[string]struct{}{},
	}
	k.key = func(name string) ddata.Key[V] { return ddata.NewKey[V, P](prefix + name) }
	k.follow = func(ctx context.Context) {
		sub := ddata.SubscribePrefix[V, P](data, prefix)
		defer sub.Close()
		k.hear(ctx, sub)
	}
	_, err := data.Node().Attach(membership.Attachment{Component: machine.Component{Name: component, Machine: watch{k.members}}})
	return k, err
}

// Run starts the goroutines of the keeper. They end with ctx.
func (k *Keeper[V]) Run(ctx context.Context, workers *sync.WaitGroup) {
	workers.Go(func() { k.follow(ctx) })
	workers.Go(func() { k.tend(ctx) })
}

// Key returns the key of a name.
func (k *Keeper[V]) Key(name string) ddata.Key[V] { return k.key(name) }

// Held returns how many names this node holds.
func (k *Keeper[V]) Held() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.held)
}

// Amiss says that a name is to be put right with the next beat.
func (k *Keeper[V]) Amiss(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.amiss[name] = struct{}{}
}

// watch hears from the node that the members have changed.
type watch struct{ changed chan<- struct{} }

// Step passes the news on. It runs on the goroutine of the node's driver.
func (w watch) Step(_ machine.Now, in machine.Input, _ *machine.Outbox) {
	if _, ok := in.(component.Changed); !ok {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// hear hears of changes, until ctx or the node ends.
func (k *Keeper[V]) hear(ctx context.Context, sub *ddata.PrefixSubscription[V]) {
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return
		}
		if e.Kind == ddata.Missed {
			continue // All names follow anew.
		}
		name := e.Key.Name()[len(k.prefix):]
		k.note(name, e.Kind == ddata.Changed)
		k.ward.Heard(name)
		k.inspect(ctx, name)
	}
}

// note notes whether a name has a value.
func (k *Keeper[V]) note(name string, there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if there {
		k.held[name] = struct{}{}
	} else {
		delete(k.held, name)
	}
}

// inspect has a name put right.
func (k *Keeper[V]) inspect(ctx context.Context, name string) {
	k.mu.Lock()
	delete(k.amiss, name) // Who says that it is amiss from here on is heard with the next beat.
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !k.ward.Mend(ctx, name) {
		k.Amiss(name)
	}
}

// tend does what is to be done from time to time, until ctx ends.
func (k *Keeper[V]) tend(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	changed := true
	for beats := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-k.members:
			changed = true
			k.ward.Members()
		case <-ticker.C:
			if beats++; beats%sweepBeats == 0 && changed {
				changed = k.sweep(ctx)
			}
			k.look(ctx)
			k.ward.Beat()
		}
	}
}

// look looks at the names of which changes do not tell.
func (k *Keeper[V]) look(ctx context.Context) {
	for _, name := range k.ward.Names() {
		if _, here := k.data.Homes(k.prefix + name); !here {
			k.ward.Heard(name)
			k.inspect(ctx, name)
		}
	}
	k.mu.Lock()
	amiss := slices.Collect(maps.Keys(k.amiss))
	k.mu.Unlock()
	for _, name := range amiss {
		k.inspect(ctx, name)
	}
}

// sweep removes what is said of nodes that are gone, from the names for which this is the
// first node (see [Keeper.first]), and reports whether there is more to do.
func (k *Keeper[V]) sweep(ctx context.Context) (more bool) {
	state := k.data.Node().State()
	k.mu.Lock()
	held := slices.Sorted(maps.Keys(k.held))
	k.mu.Unlock()
	for _, name := range held {
		v, err := ddata.Get(ctx, k.data, k.key(name), ddata.Local())
		if err != nil {
			continue // It is gone, or goes with the node.
		}
		for _, node := range k.ward.Nodes(name, v) {
			if k.absences.Gone(node, state.Member(node) != nil) && k.first(state, name) {
				_ = k.ward.Remove(ctx, name, node) // What fails is found again by the next sweep.
			}
		}
	}
	return k.absences.Round()
}

// first reports whether this node is the first of those that hold a name and are members.
// Views that differ do no harm: removing twice is removing once.
func (k *Keeper[V]) first(state *gossip.State, name string) bool {
	homes, _ := k.data.Homes(k.prefix + name)
	for _, node := range homes {
		if state.Member(node) == nil {
			continue
		}
		return node == k.data.Node().Self()
	}
	return false
}
