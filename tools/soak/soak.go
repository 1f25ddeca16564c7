// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package soak runs the worlds of the simulations, one seed after the other, for as
// long as it is given, and goes on after a violation. It is what quorate soak does.
//
// A run is a function of its world, its seed and its number of nodes, so that the
// command with these three repeats it exactly, whatever ran before or beside it; but for the world
// [WholeNodes], whose goroutines the Go scheduler orders, and whose runs are processes of their own: a program that
// runs it calls [Main] first.
// The package has no state; a [Plan] uses a goroutine for each of its jobs, which
// has ended when [Plan.Run] returns.
package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster/locations/locationssim"
	"github.com/quorate/quorate/ddata/ddatasim"
	"github.com/quorate/quorate/gateway/gatewaysim"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/sharding/delivery/deliverysim"
	"github.com/quorate/quorate/sharding/reminder/remindersim"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/sharding/state/statesim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/tools/internal/acceptance"
)

// A plan draws a world and a size for each seed ([Plan.one]), runs them on its jobs
// ([Plan.Run]) and reports every run; [Run.Repeat] is the command that repeats one.

// The numbers of nodes that are drawn.
const (
	NodesLeast = 2
	MaxNodes   = 15
)

// World is a simulation that can be run with a seed and a number of nodes.
type World struct {
	Name  string
	About string

	most int // The largest number of nodes that is drawn.
	run  func(seed uint64, nodes int) (Outcome, error)
}

// Outcome is what a run has shown, besides a violation.
type Outcome struct {
	// Virtual is how much time passed in the world, up to a violation if there was one.
	Virtual time.Duration
}

// WholeNodes is the name of the world whose nodes are those of programs, with all their goroutines.
const WholeNodes = "whole-nodes"

// Main does the work of a process that a run of [WholeNodes] has started, and does not return then. In every other
// process it does nothing.
func Main() { acceptance.Main() }

// Worlds returns all worlds: the scenarios of membership, of sharding, of distributed data, of clients
// and of locations, and whole nodes.
func Worlds() []World {
	var worlds []World
	for _, s := range scenario.All() {
		worlds = append(worlds, World{Name: s.Name, About: s.About, most: MaxNodes, run: func(seed uint64, nodes int) (Outcome, error) {
			r, err := scenario.Run(scenario.Options{Scenario: s.Name, Seed: seed, Nodes: nodes})
			return Outcome{r.Virtual}, err
		}})
	}
	components := slices.Concat(
		shardingsim.Scenarios(), statesim.Scenarios(), deliverysim.Scenarios(), remindersim.Scenarios(),
		ddatasim.Scenarios(), gatewaysim.Scenarios(), locationssim.Scenarios(),
	)
	for _, s := range components {
		worlds = append(worlds, timed(s))
	}
	return append(worlds, World{
		Name: WholeNodes, About: "real nodes, judged by what users were told", most: acceptance.MaxNodes,
		run: func(seed uint64, nodes int) (Outcome, error) {
			virtual, err := acceptance.Process(seed, max(nodes, acceptance.NodesLeast))
			return Outcome{virtual}, err
		},
	})
}

// timed returns a world of which a run says only how long it took in virtual time.
func timed(s simulation.Scenario) World {
	return World{Name: s.Name, About: s.About, most: s.Nodes + 2, run: func(seed uint64, nodes int) (Outcome, error) {
		w, err := s.Run(seed, nodes)
		return Outcome{Virtual: w.Now()}, err
	}}
}

// Choose returns the worlds with the given names, all worlds for no names. The error
// names the first unknown name.
func Choose(names []string) ([]World, error) {
	all := Worlds()
	if len(names) == 0 {
		return all, nil
	}
	chosen := make([]World, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(all, func(w World) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("soak: there is no world %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// Plan says which worlds a soak runs, and how often.
type Plan struct {
	// Worlds are run by turns.
	Worlds []World

	// First is the first seed; each run has the next one.
	First uint64

	// Nodes is how many nodes each run has; 0 means drawn from the run's seed.
	Nodes int

	// Runs is how many runs there are at most; 0 means as many as the time allows.
	Runs int

	// Jobs is how many runs go on at the same time, at least one.
	Jobs int
}

// Run is one run and its result.
type Run struct {
	Outcome
	World string
	Seed  uint64
	Nodes int
	Err   error // The violation, nil for none.
}

// Repeat returns the command that repeats the run.
func (r Run) Repeat() string {
	return fmt.Sprintf("quorate soak -world %s -nodes %d -seed %d -runs 1", r.World, r.Nodes, r.Seed)
}

// Violation returns the violation in one line, without the trace that led to it.
func (r Run) Violation() string {
	if r.Err == nil {
		return ""
	}
	err := r.Err
	at := ""
	if failure := (*simulation.Failure)(nil); errors.As(err, &failure) {
		at, err = fmt.Sprintf("at %v: ", failure.At), failure.Err
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return at + first
}

// Run runs the plan until the context ends or all its runs are done, and calls report
// with each run, one at a time, in the order in which they end. A run that has begun is
// finished.
func (p Plan) Run(ctx context.Context, report func(Run)) {
	var next atomic.Int64
	var reports sync.Mutex
	var jobs sync.WaitGroup
	for range max(p.Jobs, 1) {
		// Owned by this call, which waits for all; each ends with the plan.
		jobs.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if p.Runs > 0 && i >= int64(p.Runs) {
					return
				}
				r := p.one(i)
				reports.Lock()
				report(r)
				reports.Unlock()
			}
		})
	}
	jobs.Wait()
}

// one returns the result of the i-th run.
func (p Plan) one(i int64) (r Run) {
	w := p.Worlds[int(i)%len(p.Worlds)]
	r = Run{World: w.Name, Seed: p.First + uint64(i), Nodes: p.Nodes}
	if r.Nodes == 0 {
		source := rand.New(rand.NewPCG(r.Seed, 0x50a4))
		r.Nodes = NodesLeast + source.IntN(w.most-NodesLeast+1)
	}
	defer func() { // A machine asserts its invariants, also while a world is built.
		if v := recover(); v != nil {
			r.Err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	r.Outcome, r.Err = w.run(r.Seed, r.Nodes)
	if failure := (*simulation.Failure)(nil); errors.As(r.Err, &failure) {
		r.Virtual = failure.At
	}
	return r
}
