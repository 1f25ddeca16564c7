// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/plugins/sdk"
)

// Strategies that run as plugins, first the table: the time from nothing to the first decision ([measureLaunch]),
// decisions one after the other ([decide]), the placement of many shards ([measureAllocate]), swaps while a plugin
// is asked, and the processor time that heartbeats cost; the last two have files of their own.
//
// The plugins are this program in another role, with built-in strategies ([strategies]): the
// way to the other process and back is measured, not the strategy.

// pluginsGroup is the launch, the decisions and the placements of plugins.
func pluginsGroup() harness.Group {
	about := func(nodes int) harness.Spec { return harness.Spec{Size: 64, Senders: 1, Entities: 1, Nodes: nodes} }
	floors := []string{"floor-grpc-", "floor-of-two-"}
	return harness.Group{
		Name: "plugins", About: "strategies in another process: launch, decisions, swaps, heartbeats",
		Experiments: slices.Concat([]harness.Experiment{{
			Measure: measureLaunch, Spec: harness.Spec{Nodes: 100},
			Figures: []figure.Figure{
				{Name: "first-decision", Value: "launch", Unit: "ms", Better: figure.Lower, Target: 100},
			},
		}}, harness.WithAwake(
			harness.Latency(harness.GRPCAsk, about(0), "floor-grpc-").AsFloor(),
			harness.Latency(decide(false), about(2), "floor-of-two-").AsFloor(), // Only the way to the other process and back.
			harness.Latency(decide(false), about(100), "decision-", floors...).Aim(150),
			harness.Latency(decide(false), about(1000), "decision-of-1000-", floors...).Aim(1000),
			harness.Latency(decide(true), about(100), "changed-decision-", floors...),
		), []harness.Experiment{{
			Measure: withPlugin(plugins.Allocation, measureAllocate), Spec: harness.Spec{Nodes: 100, Entities: 100_000, Batch: 10_000},
			Figures: []figure.Figure{
				{Name: "all-allocated", Value: "took", Unit: "s", Better: figure.Lower, Target: 5},
				{Name: "longest-batch", Value: "longest", Unit: "ms", Better: figure.Lower},
			},
		}}, swaps(), []harness.Experiment{
			second(parts{node: true}, figure.Figure{Name: "floor-heartbeats-cpu"}).AsFloor(),
			second(parts{node: true, judge: true, plugin: true}, figure.Figure{Name: "heartbeats-cpu", Floors: []string{"floor-heartbeats-cpu"}, OfFloor: 2}),
			second(parts{judge: true}, figure.Figure{Name: "floor-judge-cpu"}).AsFloor(),
			second(parts{judge: true, plugin: true}, figure.Figure{Name: "judge-cpu", Floors: []string{"floor-judge-cpu"}}),
		}),
	}
}

// heartbeats is how many nodes answer once a second.
const heartbeats = 1000

// second is the processor time of a second of heartbeats.
func second(of parts, f figure.Figure) harness.Experiment {
	f.Value, f.Unit, f.Better = "cpu", "us", figure.Lower
	return harness.Experiment{Measure: of.measure, Spec: harness.Spec{Nodes: heartbeats}, Figures: []figure.Figure{f}}
}

// swaps are swaps of a plugin of each policy while it is asked.
func swaps() []harness.Experiment {
	all := make([]harness.Experiment, 0, len(plugins.Policies()))
	for _, policy := range plugins.Policies() {
		all = append(all, harness.Experiment{Measure: withPlugin(policy, measureSwap), Figures: []figure.Figure{
			{Name: "swap-" + string(policy), Value: "took", Unit: "ms", Better: figure.Lower},
			{Name: "missed-in-swaps-" + string(policy), Value: "missed", Unit: "decisions", Better: figure.Lower, Zero: true},
		}})
	}
	return all
}

// strategies returns the plugins that this program can be, by their roles. They are built-in
// strategies, so that the way to the other process is measured.
func strategies() map[string]sdk.Strategy {
	return map[string]sdk.Strategy{
		pluginRole(plugins.Downing): sdk.Downing(func(struct{}) (downing.Provider, error) { return downing.KeepMajority{}, nil }),
		pluginRole(plugins.Allocation): sdk.Allocation(func(struct{}) (allocation.Strategy, error) {
			return allocation.NewLeastShard(allocation.Default().LeastShard)
		}),
		pluginRole(plugins.FailureDetector): sdk.FailureDetector(func(struct{}) (fd.Factory, error) { return fd.NewFactory(fd.Default()) }),
		pluginRole(plugins.JoinDecider):     sdk.JoinDecider(func(struct{}) (bootstrap.JoinDecider, error) { return bootstrap.LowestAddress{}, nil }),
		pluginRole(plugins.Discovery):       sdk.Discovery(func(struct{}) (discovery.Discovery, error) { return place{}, nil }),
	}
}

// place is a discovery that knows one contact point.
type place struct{}

// Lookup answers with the contact point.
func (place) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	t, err := discovery.ParseTarget("127.0.0.1:7946")
	return discovery.Targets{List: []discovery.Target{t}, Reason: "there is no other"}, err
}

// pluginRole is the role of this program as a plugin of a policy.
func pluginRole(policy plugins.Policy) string { return string(policy) + "-plugin" }

// pluginOf returns the configuration of a plugin of a policy that is this program.
func pluginOf(l harness.Launcher, policy plugins.Policy) (plugins.Config, error) {
	text, err := os.ReadFile(l.Program)
	if err != nil {
		return plugins.Config{}, err
	}
	says, err := json.Marshal(harness.Spec{Role: pluginRole(policy)})
	if err != nil {
		return plugins.Config{}, err
	}
	sum := sha256.Sum256(text)
	return plugins.Config{
		Policy: policy, Path: l.Program, SHA256: plugins.Checksums{hex.EncodeToString(sum[:])},
		Args: slices.Concat(l.Args, []string{harness.RoleFlag, string(says)}),
	}, nil
}

// openPlugin starts this program as a plugin of a policy. Its caller shuts it.
func openPlugin(ctx context.Context, l harness.Launcher, policy plugins.Policy) (*host.Plugin, plugins.Config, error) {
	cfg, err := pluginOf(l, policy)
	if err != nil {
		return nil, cfg, err
	}
	p, err := host.Open(ctx, "bench", cfg)
	return p, cfg, err
}

// withPlugin measures a plugin of a policy that runs.
func withPlugin(policy plugins.Policy, measure func(context.Context, harness.Spec, *host.Plugin, plugins.Config) (figure.Outcome, error)) harness.MeasureFunction {
	return func(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
		p, cfg, err := openPlugin(ctx, k.Launcher, policy)
		if err != nil {
			return out, err
		}
		defer shut(p, &err)
		return measure(ctx, s, p, cfg)
	}
}

// shut ends a plugin and joins the error to err.
func shut(p *host.Plugin, err *error) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	*err = errors.Join(*err, p.Close(ctx))
}

// measureLaunch launches a plugin again and again, each time from nothing to its first
// decision: the copy of the executable, its checksum twice, certificates, handshake,
// settings, and the call.
func measureLaunch(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	cfg, err := pluginOf(k.Launcher, plugins.Downing)
	if err != nil {
		return out, err
	}
	var took []time.Duration // Without what the end of a plugin takes.
	_, err = harness.Repeat(s.Time, func() error {
		once, err := launchOnce(ctx, cfg, split(s.Nodes))
		took = append(took, once)
		return err
	})
	if err != nil {
		return out, err
	}
	info, err := os.Stat(cfg.Path)
	if err != nil {
		return out, err
	}
	return figure.Outcome{
		Values: map[string]float64{"launch": harness.Microseconds(figure.Percentile(took, 0.5)) / 1000},
		Note:   fmt.Sprintf("%d launches of an executable of %d MB", len(took), info.Size()/1_000_000),
	}, nil
}

// launchOnce returns the time from nothing to the first decision.
func launchOnce(ctx context.Context, cfg plugins.Config, v downing.View) (took time.Duration, err error) {
	began := time.Now()
	p, err := host.Open(ctx, "bench", cfg)
	if err != nil {
		return 0, err
	}
	defer shut(p, &err)
	provider, err := p.Downing()
	if err != nil {
		return 0, err
	}
	err = decideOnce(ctx, provider, v)
	return time.Since(began), err
}

// decideOnce asks for a decision and checks it.
func decideOnce(ctx context.Context, provider downing.Provider, v downing.View) error {
	d, err := provider.Decide(ctx, v)
	if err == nil && len(d.Down) != len(v.Unreachable) {
		err = fmt.Errorf("bench: %d of %d unreachable members are to go down: %s", len(d.Down), len(v.Unreachable), d.Reason)
	}
	return err
}

// decide measures decisions of a plugin that runs, one after the other. With changed members every
// view has other members than the one before, so that none of them can be left out of a question.
func decide(changed bool) harness.MeasureFunction {
	return withPlugin(plugins.Downing, func(ctx context.Context, s harness.Spec, p *host.Plugin, _ plugins.Config) (figure.Outcome, error) {
		return measureDecide(ctx, s, p, changed)
	})
}

func measureDecide(ctx context.Context, s harness.Spec, p *host.Plugin, changed bool) (out figure.Outcome, err error) {
	provider, err := p.Downing()
	if err != nil {
		return out, err
	}
	views := []downing.View{split(s.Nodes)}
	if changed {
		views = append(views, split(s.Nodes))
		views[1].Members[0].UpNumber = gossip.UpNumber(s.Nodes + 1)
	}
	asked := 0
	took, err := harness.Repeat(s.Time, func() error {
		asked++
		return decideOnce(ctx, provider, views[asked%len(views)])
	})
	if err != nil {
		return out, err
	}
	if resent := p.Status().Resent; resent > 0 {
		return out, fmt.Errorf("bench: %d questions were sent twice to one process", resent)
	}
	out.Values = map[string]float64{"p50": harness.Microseconds(figure.Percentile(took, 0.5)), "p99": harness.Microseconds(figure.Percentile(took, 0.99))}
	return out, nil
}

// split is the view of a cluster with one unreachable member.
func split(members int) downing.View {
	v := downing.View{Stable: time.Minute, Unstable: time.Minute}
	var voters []gossip.NodeID
	for i := range members {
		id := gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: uint16(harness.FirstPort + i)}, UID: gossip.UID(i + 1)}
		v.Members = append(v.Members, &gossip.Member{Node: id, Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1), Roles: []string{}})
		voters = append(voters, id)
	}
	last := len(voters) - 1
	v.Self, v.Seen, v.Base = voters[0], voters[:last], gossip.Base{voters}
	v.Unreachable = []gossip.Record{{Observer: voters[0], Subject: voters[last], Status: gossip.Unreachable, Version: 1}}
	return v
}

// measureAllocate has a plugin place many shards without a home, in batches: each batch
// sees where the earlier ones were placed.
func measureAllocate(ctx context.Context, s harness.Spec, p *host.Plugin, _ plugins.Config) (out figure.Outcome, err error) {
	strategy, err := p.Allocation()
	if err != nil {
		return out, err
	}
	regions := make([]allocation.RegionState, s.Nodes)
	for i := range regions {
		regions[i].ID = allocation.Region(fmt.Sprintf("127.0.0.1:%d", harness.FirstPort+i))
	}
	var longest time.Duration
	began := time.Now()
	for first := 0; first < s.Entities; first += s.Batch {
		asked := time.Now()
		if err := placeBatch(ctx, strategy, regions, first, min(s.Batch, s.Entities-first)); err != nil {
			return out, err
		}
		longest = max(longest, time.Since(asked))
	}
	out.Values = map[string]float64{"took": time.Since(began).Seconds(), "longest": harness.Microseconds(longest) / 1000}
	return out, even(regions, s.Entities)
}

// placeBatch has n shards from first on placed, and writes down where they are.
func placeBatch(ctx context.Context, strategy allocation.Strategy, regions []allocation.RegionState, first, n int) error {
	r := allocation.AllocateRequest{Kind: "bench", Regions: regions, Shards: make([]allocation.Pending, n)}
	for i := range r.Shards {
		r.Shards[i].Shard = allocation.Shard(first + i)
	}
	result, err := strategy.Allocate(ctx, r)
	if err != nil {
		return err
	}
	for _, p := range result.Placements {
		at, found := slices.BinarySearchFunc(regions, p.Region, func(r allocation.RegionState, id allocation.Region) int {
			return cmp.Compare(r.ID, id)
		})
		if !found {
			return fmt.Errorf("bench: shard %d is placed on %s, which nobody knows", p.Shard, p.Region)
		}
		regions[at].Shards = append(regions[at].Shards, p.Shard)
	}
	return nil
}

// even returns an error unless each region has its share of the shards.
func even(regions []allocation.RegionState, shards int) error {
	for _, r := range regions {
		if n := len(r.Shards); n != shards/len(regions) && n != shards/len(regions)+1 {
			return fmt.Errorf("bench: %s has %d of %d shards on %d regions", r.ID, n, shards, len(regions))
		}
	}
	return nil
}
