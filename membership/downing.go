// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A strategy of a node becomes one of the machine ([Downing.strategy]) and gets a number
// under which the machine names it ([downingTable]). [Node.SetDowning] gives the node
// another one while it runs.

// builtInVersion is the version of the built-in strategies, and of a provider that has
// none of its own.
const builtInVersion = "1"

// Downing is a downing strategy of a node: the one that the node begins with, see
// [WithDowning], or one that it is given while it runs, see [Node.SetDowning].
type Downing struct {
	// Name, Version and Parameters, together with the class of the provider, identify the
	// strategy: nodes on which they are equal decide alike, and members compare them.
	// Name and Version are at most 128 bytes of printable text each; an empty Version
	// means "1". Parameters is the canonical text of the settings, at most 4096 bytes. A
	// built-in strategy has no other version, and states its parameters itself.
	Name, Version, Parameters string

	// Provider decides. It is asked on a goroutine of its own and may block; it has five
	// seconds for an answer. Nil means the built-in strategy with the name.
	Provider downing.Provider

	// Config is the section from which a built-in strategy is made, whatever strategy it
	// names, and which says of every strategy whether it acts or only reports. The zero value
	// means the default of each setting; for the strategy that a node begins with it means the
	// section of the node's configuration.
	Config downing.Config

	// Release is called once, on a goroutine of its own, when the node will not ask the
	// provider again: another strategy took its place and all nodes know, or the node
	// ended. A call that the provider has not answered may still run. A node that ends waits
	// ten seconds for it, and then goes on without. Nil means nothing is to be released.
	Release func()
}

// first returns the strategy that a node begins with.
func (d Downing) first(cfg downing.Config) (Downing, error) {
	if d.Name != "" && d.Name != cfg.Strategy {
		return d, fmt.Errorf("WithDowning gives the downing strategy %q, and downing.strategy names %q", d.Name, cfg.Strategy)
	}
	d.Name, d.Config = cfg.Strategy, cfg
	return d, nil
}

// strategy returns the identity of d, with its rule if d is a built-in strategy.
func (d Downing) strategy(builtIns downing.Catalogue) (protocol.Strategy, error) {
	s := protocol.Strategy{DowningStrategy: gossip.DowningStrategy{
		Name: d.Name, Version: cmp.Or(d.Version, builtInVersion), Parameters: d.Parameters,
	}}
	class := downing.Class{}
	switch {
	case d.Name == "":
		return s, errors.New("membership: a downing strategy needs a name")
	case d.Provider != nil:
		if err := optional.Check(d.Provider, reflect.TypeFor[downing.Provider](),
			reflect.TypeFor[downing.Holder](), reflect.TypeFor[downing.Fitted](), reflect.TypeFor[downing.Immediate]()); err != nil {
			return s, fmt.Errorf("membership: downing strategy: %w", err)
		}
		class = d.Provider.Class()
		s.Parameters = d.section().Identify(d.Parameters)
		if holder, ok := d.Provider.(downing.Holder); ok {
			s.Keeps = holder.Keeps()
		}
		if fitted, ok := d.Provider.(downing.Fitted); ok {
			s.Misfit = fitted.Misfit
		}
	default:
		builtIn, parameters, err := builtIns.New(d.section())
		if errors.Is(err, downing.ErrUnknownStrategy) {
			err = unknown("downing.strategy", d.Name, builtIns.Names(), "WithDowning or SetDowning", err)
		}
		if err != nil {
			return s, fmt.Errorf("membership: %w", err)
		}
		if s.Version != builtInVersion || d.Parameters != "" && d.Parameters != parameters {
			return s, fmt.Errorf("membership: the built-in downing strategy %s has no version %q with parameters %q: its version is %q, its parameters are %q",
				d.Name, d.Version, d.Parameters, builtInVersion, parameters)
		}
		s.Decide, s.Parameters, class = builtIn.DecideNow, parameters, builtIn.Class()
		if fitted, ok := builtIn.(downing.Fitted); ok {
			s.Misfit = fitted.Misfit
		}
	}
	class = d.section().Promise(class)
	s.Pure, s.MajorityOnly = class.Pure, class.MajorityOnly
	if err := s.Validate(); err != nil {
		return s, fmt.Errorf("membership: downing strategy: %w", err)
	}
	return s, nil
}

// section returns the section from which a built-in strategy with the name of d is made.
func (d Downing) section() downing.Config {
	c := d.Config
	if c.Strategy == "" { // No section was given: a section has the name of a strategy.
		c = downing.Default()
	}
	c.Strategy = d.Name
	return c
}

// SetDowning gives the node another downing strategy. The cluster changes to it when
// every member has it, which [DowningChanged] announces. Until then, and for as long as
// some members may not know of the change, the strategy before is used and kept. So an
// operator gives the new strategy to all nodes, one after the other, in any order.
//
// A strategy that was given earlier and that the cluster does not use is released. A
// strategy with the identity of one that the node has takes its place at once. A node
// that starts later needs the new strategy from the start, or it is refused.
//
// SetDowning returns when this node has loaded the strategy, with an error that says what
// is wrong with the strategy, the error of ctx, or [ErrClosed]; after an error Release is
// not called. A node that cannot release earlier strategies, since the cluster has not
// converged, keeps at most eight; further ones are released at once and reported by
// [Refused].
func (n *Node) SetDowning(ctx context.Context, d Downing) error {
	strategy, err := d.strategy(n.builtIns)
	if err != nil {
		return err
	}
	strategy.Load = n.loaded.add(d)
	err = n.commands.give(ctx, protocol.LoadDowning{Strategy: strategy})
	if err != nil {
		n.loaded.take(strategy.Load)
	}
	return err
}

// releaseTimeout is how long a node waits for [Downing.Release].
const releaseTimeout = 10 * time.Second

// release calls Release, which is code of the program, and waits for it no longer than releaseTimeout.
func (d Downing) release(log *slog.Logger) {
	done := make(chan struct{})
	// Ends with Release: the strategy owns it when that takes too long.
	go func() {
		defer close(done)
		d.Release()
	}()
	limit := time.NewTimer(releaseTimeout)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		log.Warn("a downing strategy is left behind, since its release does not return", "strategy", d.Name, "after", releaseTimeout)
	}
}

// downingTable are the downing strategies that the machine may name, by the number with
// which the machine was given them.
type downingTable struct {
	log      *slog.Logger
	releases sync.WaitGroup // Goroutines that release strategies.

	mu   sync.Mutex // Guards all below.
	last uint64
	all  map[uint64]Downing
}

// add keeps a strategy and returns its number, from 1.
func (l *downingTable) add(d Downing) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[uint64]Downing)
	}
	l.last++
	l.all[l.last] = d
	return l.last
}

// get returns a strategy by its number, the zero value if there is none.
func (l *downingTable) get(load uint64) Downing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[load]
}

// settled tells the strategy with a number that its decision is settled.
func (l *downingTable) settled(load uint64) {
	if holder, ok := l.get(load).Provider.(downing.Holder); ok {
		holder.Settled()
	}
}

// take removes a strategy and returns it.
func (l *downingTable) take(load uint64) Downing {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.all[load]
	delete(l.all, load)
	return d
}

// unload releases a strategy that is not asked any more.
func (l *downingTable) unload(load uint64) {
	if d := l.take(load); d.Release != nil {
		// Owned by the node, which waits for it (end). Ends within releaseTimeout.
		l.releases.Go(func() { d.release(l.log) })
	}
}

// end releases all strategies, and waits for that.
func (l *downingTable) end() {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.all))
	l.mu.Unlock()
	for _, load := range all {
		l.unload(load)
	}
	l.releases.Wait()
}

// decide asks the provider that a request names.
func (l *downingTable) decide(ctx context.Context, r protocol.DowningRequest) (downing.Decision, error) {
	d := l.get(r.Load)
	if d.Provider == nil {
		return downing.Decision{}, fmt.Errorf("membership: downing strategy %v is not loaded any more", r.Strategy)
	}
	return d.Provider.Decide(ctx, r.View)
}
