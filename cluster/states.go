// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// States of entities and reminders share a store: a program links the stores that its files may name
// ([WithStates]); the one that states.store names is opened with its section when the node starts
// ([startStates]), is used by the keeper of the node and by its reminders, and is closed after both.

// StatesConfig says where entities keep what must survive, and how the store is called. See [Node.States].
type StatesConfig struct {
	// Store is the name of the store, one that the program links by [WithStates]. Its settings are the
	// section "state-NAME". Empty: the node has none.
	Store string `koanf:"store"`

	// Config says how the store is called.
	state.Config `koanf:",squash"`
}

// WithStates adds a store of states, such as one of the modules below sharding/state. States.store selects the store by
// its name. The settings of the store are the section "state-NAME" of the files, as [WithDiscovery] has it. Start calls
// open with them; a store that is down must not make open fail, or it keeps the node from starting. A store that is an
// [io.Closer] is closed when the node has ended and all its entities have stopped.
//
//	cluster.WithStates("bolt", Files{Path: "states"}, func(f Files) (store.Store, error) { return bolt.Open(f.Path, bolt.Options{}) })
func WithStates[T any](name string, defaults T, open func(T) (store.Store, error)) Option {
	return func(o *options) {
		o.states = append(o.states, newChoice(o, stateSection, name, defaults, open, "states.store"))
	}
}

// stateSection begins the name of the section of a store.
const stateSection = "state-"

// ErrNoStates is returned, wrapped, by [Node.Reminders] when states.store names no store.
var ErrNoStates = errors.New("cluster: the node has no store of states: set states.store, and link a store by cluster.WithStates")

// states is what a node has of states and reminders.
type states struct {
	store     store.Store   // Nil if the node has none, as is keeper.
	keeper    *state.Keeper // Measured until stop is called.
	stop      func()
	reminders lazyPart[reminder.Service]

	closing *given // The store.
}

// chooseStates tells each store whether a configuration selects it, or the file that will be laid
// over that configuration.
func (o *options) chooseStates(f *config.File, c Config) {
	name := c.States.Store
	read := map[string]any{}
	if err := f.Decode("states", &read); err == nil { // What is wrong is reported when all is read.
		if given, ok := read["store"].(string); ok {
			name = given
		}
	}
	for _, s := range o.states {
		s.choose([]string{name})
	}
}

// linkedStates reports a store that the configuration names and the program did not link.
func (o *options) linkedStates(c Config) error {
	name := c.States.Store
	linked := namesOf(o.states)
	// Whoever links everything links no store of states: how one is opened is the program's own.
	if name == "" || o.own.Whole || slices.Contains(linked, name) || slices.Contains(o.own.Strategies, name) {
		return nil
	}
	return &field.Error{
		Key: "states.store", Err: config.ErrNotLinked,
		Reason: fmt.Sprintf("the store %q is %v, which links %q: open it, such as one of the modules below github.com/quorate/quorate/sharding/state, "+
			"by the option cluster.WithStates(%[1]q, ...)", name, config.ErrNotLinked, linked),
	}
}

// strangeStates is the section of the store that a configuration names, for a check by whoever does not link
// it: it may hold anything.
func (o *options) strangeStates(f *config.File) []config.Section {
	read := map[string]any{}
	if err := f.Decode("states", &read); err != nil {
		return nil // What is wrong is reported when all is read.
	}
	name, _ := read["store"].(string)
	if name == "" || slices.Contains(namesOf(o.states), name) {
		return nil
	}
	return []config.Section{{Name: stateSection + name, Into: new(any)}}
}

// startStates opens the store.
func startStates(_ context.Context, b *builder) error {
	section := b.cfg.States
	b.states.reminders.open = func() (*reminder.Service, error) { return nil, ErrNoStates }
	i := slices.IndexFunc(b.options.states, func(c linkedChoice[store.Store]) bool { return c.called() == section.Store })
	if i < 0 {
		return nil // It was checked that a store that is named is linked.
	}
	opened, err := b.options.states[i].make(b.cfg, b.resolve())
	if err != nil {
		return fmt.Errorf("cluster: %s%s: %w", stateSection, section.Store, err)
	}
	closing := newGiven("the store of states "+section.Store, opened)
	keeper, err := state.NewKeeper(opened, section.Config, state.WithLogger(b.log))
	if err != nil {
		return errors.Join(err, closing.drop())
	}
	b.states.store, b.states.keeper, b.states.closing = opened, keeper, closing
	b.states.stop = sync.OnceFunc(keeper.Measure(b.meters, b.Self()))
	log, node, cfg := b.log, b.Node, b.cfg.Reminders
	b.states.reminders.open = func() (*reminder.Service, error) {
		return reminder.Start(node, opened, cfg, reminder.WithLogger(log))
	}
	return nil
}

// stopStates closes the store, once no entity can use it any more: they end with sharding, which
// ends with the membership.
func stopStates(ctx context.Context, n *Node) error {
	if n.states.store == nil {
		return nil
	}
	err := errors.Join(n.member.Close(), n.sharding.AwaitEnd(ctx)) // An entity that does not return finds the store closed.
	n.states.stop()
	return errors.Join(err, n.states.closing.close(ctx))
}
