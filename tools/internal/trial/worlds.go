// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/fd/fdtest"
	"github.com/quorate/quorate/membership/membershipsim/outcomes"
	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
)

// The checks of sim and trace. Each asks the plugin through an asked, which keeps the first
// question without a right answer: the worlds go on without it.

// worlds runs the checks of the plugin's policy.
func (t *trial) worlds(ctx context.Context) error {
	switch t.Config.Policy {
	case plugins.Downing:
		return t.downing(ctx)
	case plugins.Allocation:
		return t.allocation(ctx)
	case plugins.JoinDecider:
		return t.joinDecider(ctx)
	case plugins.FailureDetector:
		return t.failureDetector(ctx)
	case plugins.Discovery:
		return t.discovery(ctx)
	}
	return nil
}

// asked counts questions, and keeps the first error.
type asked struct {
	questions int
	err       error
}

func (a *asked) note(err error) {
	a.questions++
	if a.err == nil && err != nil {
		a.err = fmt.Errorf("question %d: %w", a.questions, err)
	}
}

// seedError says with which seed a world was violated. flags are those that run the world with this
// seed alone.
type seedError struct {
	seed  uint64
	flags string
	err   error
}

func (e *seedError) Error() string { return fmt.Sprintf("seed %d: %v", e.seed, e.err) }
func (e *seedError) Unwrap() error { return e.err }

// oneRun are the flags that run a simulated world once.
const oneRun = "--for 1ms"

// violation returns the violation of a failure, without its trace.
func violation(err error) error {
	if failure := (*simulation.Failure)(nil); errors.As(err, &failure) {
		return fmt.Errorf("at %v: %w", failure.At, failure.Err)
	}
	return err
}

// seeds runs a world with seed after seed for a part of the time.
func (t *trial) seeds(ctx context.Context, name string, part int, a *asked, run func(seed uint64) error) {
	t.check(name, func() (string, error) {
		over := time.Now().Add(t.For / time.Duration(part))
		seed := t.Seed
		for ; seed == t.Seed || time.Now().Before(over); seed++ {
			err := violation(run(seed))
			if err == nil {
				err = a.err
			}
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return "", &seedError{seed, oneRun, err}
			}
			t.progress("%s: %d runs", name, seed-t.Seed+1)
		}
		if a.questions == 0 {
			return "", &seedError{t.Seed, oneRun, errors.New("the plugin was not asked")}
		}
		return fmt.Sprintf("%d runs, %d questions", seed-t.Seed, a.questions), nil
	})
}

// provider is a downing provider whose errors are kept.
type provider struct {
	downing.Provider
	*asked
}

func (p provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	d, err := p.Provider.Decide(ctx, v)
	p.note(err)
	return d, err
}

func (t *trial) downing(ctx context.Context) error {
	p, err := host.As[downing.Provider](t.plugin)
	if err != nil {
		return err
	}
	t.check("sim/every-fault", func() (string, error) { return t.everyFault(ctx, p) })
	t.check("sim/partitions", func() (string, error) { return t.partitions(ctx, p) })
	worlds := []scenario.Options{{Scenario: "chaos", Nodes: 7}, {Scenario: "split", Nodes: 9}, {Scenario: "chaos", Nodes: 50}}
	for _, world := range worlds {
		a := &asked{}
		world.Strategies = scenario.Strategies{Downing: provider{p, a}}
		t.seeds(ctx, fmt.Sprintf("sim/%s-%d", world.Scenario, world.Nodes), len(worlds), a, func(seed uint64) error {
			world.Seed = seed
			_, err := scenario.Run(world)
			return err
		})
	}
	return nil
}

// everyFault runs every fault of a small cluster.
func (t *trial) everyFault(ctx context.Context, p downing.Provider) (string, error) {
	a, m := &asked{}, t.plugin.Manifest()
	table, err := outcomes.Run(ctx, outcomes.Options{
		Nodes: t.Nodes, Strategy: outcomes.Asked(ctx, m.Name, m.Version, provider{p, a}),
		Progress: func(done, of int) {
			if done%64 == 0 {
				t.progress("sim/every-fault: %d of %d cases", done, of)
			}
		},
	})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return "", violation(err)
	}
	needless := 0
	for _, r := range table.Rows {
		needless += r.Needless
	}
	return fmt.Sprintf("%d cases on %d nodes, two parts never go on; nobody goes on needlessly in %d", len(table.Outcomes), table.Nodes, needless), nil
}

// partitions has the sides of random partitions decide, an hour after the network has split: at most
// one side of each goes on.
func (t *trial) partitions(ctx context.Context, p downing.Provider) (string, error) {
	a := &asked{}
	of := provider{p, a}
	none := 0
	for n := range t.Partitions {
		seed := t.Seed + uint64(n)
		going, sides, err := partition(ctx, of, seed)
		switch {
		case err != nil:
		case going > 1:
			err = fmt.Errorf("%d of %d sides go on", going, sides)
		default:
			err = cmp.Or(a.err, context.Cause(ctx))
		}
		if err != nil {
			return "", &seedError{seed, "--partitions 1", err}
		}
		if going == 0 {
			none++
		}
		if n%256 == 0 {
			t.progress("sim/partitions: %d of %d", n, t.Partitions)
		}
	}
	return fmt.Sprintf("%d partitions, %d questions; at most one side goes on, none in %d", t.Partitions, a.questions, none), nil
}

// partition has the sides of one partition decide, and returns how many go on, of how many.
func partition(ctx context.Context, p downing.Provider, seed uint64) (going, of int, err error) {
	sides := downingtest.RandomSplit(rand.New(rand.NewPCG(seed, 0)))
	for _, v := range sides {
		v.Stable, v.Unstable = time.Hour, time.Hour
		d, err := p.Decide(ctx, v)
		if err != nil {
			return 0, 0, err
		}
		if downingtest.Survives(v, d) && (d.Verdict == downing.KeepSide || len(v.Side().Lost()) == 0) {
			going++
		}
	}
	return going, len(sides), nil
}

// strategy is an allocation strategy whose errors are kept.
type strategy struct {
	allocation.Strategy
	*asked
}

func (s strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	res, err := s.Strategy.Allocate(ctx, r)
	s.note(err)
	return res, err
}

func (s strategy) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	res, err := s.Strategy.Rebalance(ctx, r)
	s.note(err)
	return res, err
}

func (t *trial) allocation(ctx context.Context) error {
	s, err := host.As[allocation.Strategy](t.plugin)
	if err != nil {
		return err
	}
	a := &asked{}
	t.seeds(ctx, "sim/allocation", 1, a, func(seed uint64) error {
		_, err := shardingsim.Strategy(seed, 6, strategy{s, a})
		return err
	})
	return nil
}

// decider is a join decider whose errors are kept.
type decider struct {
	bootstrap.JoinDecider
	*asked
}

func (d decider) Decide(ctx context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	decision, err := d.JoinDecider.Decide(ctx, o)
	d.note(err)
	return decision, err
}

func (t *trial) joinDecider(ctx context.Context) error {
	d, err := host.As[bootstrap.JoinDecider](t.plugin)
	if err != nil {
		return err
	}
	a := &asked{}
	t.seeds(ctx, "sim/bootstrap", 1, a, func(seed uint64) error {
		_, err := scenario.Run(scenario.Options{Scenario: "bootstrap", Nodes: 5, Seed: seed, Strategies: scenario.Strategies{JoinDecider: decider{d, a}}})
		return err
	})
	return nil
}

// finder is a discovery method whose errors are kept.
type finder struct {
	discovery.Discovery
	*asked
}

func (f finder) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	found, err := f.Discovery.Lookup(ctx, q)
	f.note(err)
	return found, err
}

// maxBoot is the largest cluster that finds itself by a method.
const maxBoot = 9

// discovery lets as many nodes as there are contact points find each other, each contact point
// standing for one of them.
func (t *trial) discovery(ctx context.Context) error {
	d, err := host.As[discovery.Discovery](t.plugin)
	if err != nil {
		return err
	}
	a := &asked{}
	t.seeds(ctx, "sim/bootstrap", 1, a, func(seed uint64) error {
		found, err := d.Lookup(ctx, discovery.Query{Service: "quorate"})
		if err == nil && len(found.List) == 0 {
			err = errors.New("no contact point is found for the service quorate: give settings with which some are, which stand for the nodes of a simulated cluster")
		}
		if err != nil {
			return err
		}
		nodes := min(len(found.List), maxBoot)
		_, err = scenario.Run(scenario.Options{Scenario: "bootstrap", Nodes: nodes, Seed: seed, Strategies: scenario.Strategies{Discovery: finder{d, a}}})
		return err
	})
	return nil
}

func (t *trial) failureDetector(ctx context.Context) error {
	j, err := host.As[fd.Judge](t.plugin)
	if err != nil {
		return err
	}
	phi, err := fd.NewFactory(fd.Default())
	if err != nil {
		return err
	}
	traces := fdtest.Traces(t.Seed)
	for _, path := range t.Traces {
		trace, err := readTrace(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotRun, err)
		}
		traces = append(traces, trace)
	}
	for _, trace := range traces {
		t.check("trace/"+trace.Name, func() (string, error) {
			own, err := fdtest.Measure(ctx, j, trace)
			if err != nil {
				return "", err
			}
			other, err := fdtest.Measure(ctx, fd.NewDetectorJudge(phi), trace)
			return fmt.Sprintf("marked after %v, %d false marks; phi %v, %d", own.Detection, own.False, other.Detection, other.False), err
		})
	}
	return nil
}

func readTrace(path string) (trace fdtest.Trace, err error) {
	file, err := os.Open(path)
	if err != nil {
		return trace, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return fdtest.ReadTrace(path, file)
}
