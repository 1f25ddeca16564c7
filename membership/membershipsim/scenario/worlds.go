// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// The worlds of storms and calms are listed by [stormScenarios] and set up by [run.prepare].
// [run.storms] runs them; the random settings of drawn worlds are at the end.

// stormOptions set up a world of storms and calms. In a storm faults strike; after one storm in three
// cut links stay cut for a while. In a calm the network is whole, and nothing happens for as long as
// a cluster may take to settle, and a little longer. Liveness is checked in every second.
type stormOptions struct {
	faults func() []simulation.Fault

	// supervised has nodes started again where they stand by supervisors that know
	// nothing of the cluster, with the disks of their addresses. Otherwise an operator
	// sees to the whole.
	supervised bool

	// forgetful has nodes lose their records, so that a cluster may have to wait for an operator to found it, and there
	// may be two: from when on an older disk came back (docs/operations.md, "Never restore it from a backup, never copy
	// it, never clone the disk of a node.") or half of the seed nodes have lost their records (docs/operations.md,
	// "That is safe while a majority of the voters still has its directories.").
	forgetful bool

	// drawn draws all settings from the seed.
	drawn bool

	// judged has failure detectors outside of the nodes judge, calls of which fail, also while
	// nothing else does.
	judged bool
}

// Storms reports whether the scenario is a world of storms and calms, in which liveness
// is checked in every second.
func (s Scenario) Storms() bool { return s.storms != nil }

// stormsTime is for how long storms and calms follow each other: three or four of each with default
// settings.
const stormsTime = 6 * time.Minute

// maxRestart is the longest time until a supervisor starts a node, and the time until an
// operator starts a crashed node.
const maxRestart = 30 * time.Second

// unreliableNetwork is a network that loses and doubles a few messages, with clocks that run at
// different rates.
func unreliableNetwork(o *simulation.Options) {
	o.RatePPM, o.WallSkew, o.CodecEvery = 10_000, time.Second, 20
	o.Network.Loss, o.Network.Double = 0.002, 0.002
}

// usual are the faults of every world, and those of membership.
func usual() []simulation.Fault {
	return append(simulation.Faults(),
		simulation.Fault{Name: "leave", Weight: 1, Inject: leave},
		simulation.Fault{Name: "down", Weight: 1, Inject: down})
}

// lightly returns some of the usual faults, few enough that the given faults are not lost
// among them.
func lightly(with []simulation.Fault) []simulation.Fault {
	for _, f := range simulation.Faults() {
		if slices.Contains([]string{"isolate", "crash", "revive", "heal"}, f.Name) {
			f.Weight = min(f.Weight, 2)
			with = append(with, f)
		}
	}
	return with
}

func allFaults() []simulation.Fault {
	return slices.Concat(usual(), simulation.PauseFaults(), simulation.LossFaults(membershipsim.Traffic()), simulation.LinkFaults(), simulation.OutsideFaults())
}

// stormScenarios are the worlds of storms and calms.
func stormScenarios() []Scenario {
	of := func(name, about string, w stormOptions) Scenario {
		return Scenario{Name: name, About: about, duration: stormsTime, options: unreliableNetwork, downing: sometimesAsked, storms: &w}
	}
	judges := of("judges", "every fault, drawn settings, wild failure detectors outside",
		stormOptions{faults: allFaults, drawn: true, judged: true})
	judges.options, judges.downing = unreliableJudges, decided
	return []Scenario{
		of("pauses", "all nodes, a rack, all but one stand still, and one dies",
			stormOptions{faults: func() []simulation.Fault { return lightly(simulation.PauseFaults()) }}),
		of("lanes", "messages of one type are lost, nodes crash within a step",
			stormOptions{faults: func() []simulation.Fault { return lightly(simulation.LossFaults(membershipsim.Traffic())) }}),
		of("links", "links are slow, lossy or broken for long, nodes are clogged",
			stormOptions{faults: func() []simulation.Fault { return lightly(simulation.LinkFaults()) }}),
		of("settings", "every fault, with settings, zones and roles at random", stormOptions{faults: allFaults, drawn: true}),
		of("supervised", "every fault, no operator: supervisors, disks are kept",
			stormOptions{faults: allFaults, supervised: true}),
		of("founding", "all end, and messages are lost by which they vote and join",
			stormOptions{faults: func() []simulation.Fault { return lightly(membershipsim.FoundingFaults()) }, supervised: true}),
		of("disks", "the same, and disks hang, fail, tear, vanish, get older",
			stormOptions{faults: func() []simulation.Fault { return append(allFaults(), simulation.DiskFaults()...) }, supervised: true, forgetful: true}),
		of("shutdowns", "the whole cluster is stopped in order, and started again",
			stormOptions{faults: func() []simulation.Fault {
				return lightly([]simulation.Fault{membershipsim.ShutdownFault(6)})
			}, supervised: true}),
		judges,
	}
}

// unreliableJudges sets up an unreliable network on which, with every other seed, one call in ten fails. Not with
// every one: a judge whose calls fail now and then is never in force for long.
func unreliableJudges(o *simulation.Options) {
	unreliableNetwork(o)
	if o.Seed%2 == 0 {
		return
	}
	o.Calls = simulation.Calls{Hang: 0.02, Fail: 0.02, Garbage: 0.02, Crash: 0.02, Late: 0.02, Stuck: 0.005}
}

// waversAtOnce is how many moments in which a node that is well is accused may follow each other:
// a judge that accuses everybody does so at each heartbeat that is lost.
const waversAtOnce = 3

// prepare determines the settings of a run and, in a world of storms and calms, adds what only such a world
// has.
func (r *run) prepare(s *Scenario, o *Options) {
	r.config = membershipsim.Default()
	if r.bootstrapWorld != nil && o.Settle == 0 {
		r.bounds = membershipsim.BoundsOf(membershipsim.Config{Config: r.config, Downing: r.downing}, o.Nodes, maxRestart)
		found := r.bootstrapWorld.bootstrap.Config
		o.Settle = max(SettleDefault, r.bounds.Settle+2*found.IntervalMax+found.ResolveTimeout+found.StableMargin)
	}
	if !s.Storms() {
		if o.Settle == 0 {
			o.Settle = SettleDefault
		}
		return
	}
	source := rand.New(rand.NewPCG(o.Seed, 0x5e77))
	if s.storms.drawn {
		r.config = drawConfig(source, o.Nodes)
		r.downing.Config = drawDowning(source, r.downing.Config, r.config)
		r.members = drawMembers(source, r.nodes)
		r.world.Log("settings %+v %+v", r.config.FailureDetector, r.downing.Config)
	}
	r.bounds = membershipsim.BoundsOf(membershipsim.Config{Config: r.config, Downing: r.downing}, o.Nodes, maxRestart)
	if o.Settle == 0 {
		o.Settle = max(SettleDefault, r.bounds.Settle)
	}
	r.liveness = &membershipsim.Liveness{Bounds: r.bounds, Config: r.config, MajorityOnly: r.downing.Class.MajorityOnly}
	r.liveness.Watch(r.world)
	if s.storms.judged {
		r.judged = true
		r.liveness.Bounds.Waver *= waversAtOnce
		(&membershipsim.Judges{Interval: r.config.FailureDetector.HeartbeatInterval}).Serve(r.world)
	}
	events := &membershipsim.Events{}
	events.Watch(r.world)
	if s.storms.supervised {
		one := &membershipsim.OneCluster{}
		if s.storms.forgetful {
			one.Excused = func() bool { return r.world.Disks().Forgetful(r.seeds()) }
			r.liveness.MayWait = one.Excused
		}
		one.Watch(r.world)
	}
}

// seeds are the seed nodes of a world with supervisors: all nodes, or the first three.
func (r *run) seeds() []gossip.Address {
	if r.world.Seed()%2 == 0 {
		return r.nodes[:min(len(r.nodes), 3)]
	}
	return r.nodes
}

// addOperator has supervisors, or an operator, start nodes again that have ended.
func (r *run) addOperator(s *Scenario) {
	if !s.Storms() || !s.storms.supervised {
		operator := &membershipsim.Operator{Seeds: r.nodes[:min(len(r.nodes), 3)], RestartAfter: 2 * time.Second}
		if s.Storms() {
			operator.ReviveAfter = maxRestart
		}
		operator.Operate(r.world)
		return
	}
	supervisor := &membershipsim.Supervisor{
		Seeds: r.seeds(), Min: 500 * time.Millisecond, Max: 3 * time.Second, Slow: 0.1, SlowMax: maxRestart,
	}
	if s.storms.forgetful {
		supervisor.Lose, supervisor.Older = 0.05, 0.05
	}
	supervisor.Supervise(r.world)
}

// builder returns the function that builds a node: the same everywhere, except for what
// is drawn for its address.
func (r *run) builder() simulation.Build {
	of := func(c membershipsim.Config) func(simulation.Env) machine.Component {
		c.Config, c.Downing = r.config, r.downing
		c.Judged = r.judged
		c.Disk = r.bootstrapWorld == nil || r.bootstrapWorld.disks
		if r.bootstrapWorld != nil {
			c.Bootstrap = &r.bootstrapWorld.bootstrap
		}
		return membershipsim.Component(c)
	}
	plain := of(membershipsim.Config{})
	drawn := make(map[gossip.Address]func(simulation.Env) machine.Component)
	for _, a := range r.nodes {
		c, differs := r.members[a]
		var other bool
		if c.Release, other = r.releases[a]; differs || other {
			drawn[a] = of(c)
		}
	}
	return func(env simulation.Env) []machine.Component {
		if component, ok := drawn[env.Self.Address]; ok {
			return []machine.Component{component(env)}
		}
		return []machine.Component{plain(env)}
	}
}

// storms lets storms and calms follow each other.
func (r *run) storms(w stormOptions) {
	var calm, storm func()
	world := r.world
	storm = func() {
		if world.Now() >= r.duration {
			return
		}
		length := between(world.Rand(), 10*time.Second, 40*time.Second)
		world.Chaos(simulation.Chaos{For: length, Every: 3 * time.Second, Faults: w.faults(), Unrepaired: true})
		if world.Rand().IntN(3) == 0 { // Cut links stay cut.
			length += r.bounds.Accuse + r.bounds.Remove + 5*time.Second
		}
		world.After(length, func() {
			r.repair(w)
			calm()
		})
	}
	calm = func() {
		if quiet, ok := world.Quiet(); ok && quiet > r.bounds.Settle+10*time.Second || world.Now() >= r.duration {
			storm()
			return
		}
		world.After(time.Second, calm)
	}
	world.At(15*time.Second, storm) // The cluster forms undisturbed.
	world.At(r.duration, func() { r.repair(w) })
}

// repair makes the network whole, and repairs the nodes that an operator looks after.
func (r *run) repair(w stormOptions) {
	r.world.Network().SetDelivery(r.network)
	r.world.Disks().Set(simulation.Writes{})
	if w.supervised {
		r.world.Network().Heal()
		return
	}
	r.world.Repair()
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(max(most-least, 0))+1))
}

// drawConfig draws settings within their ranges, as an operator could choose for failover
// within a second or within half a minute.
func drawConfig(r *rand.Rand, nodes int) protocol.Config {
	times := func(d time.Duration, least, most float64) time.Duration {
		return time.Duration(float64(d) * (least + (most-least)*r.Float64()))
	}
	c := membershipsim.Default()
	if r.IntN(4) == 0 {
		c = membershipsim.Fast()
	} else {
		d := &c.FailureDetector
		d.HeartbeatInterval = between(r, 100*time.Millisecond, 2*time.Second)
		d.AcceptableHeartbeatPause = times(d.HeartbeatInterval, 1.5, 5)
		d.MaxSilence = d.AcceptableHeartbeatPause + times(d.HeartbeatInterval, 0.5, 4)
		d.ExpectedResponseAfter = times(d.HeartbeatInterval, 0.5, 2)
		d.Threshold = 4 + 12*r.Float64()
		d.Strategy = []string{fd.StrategyPhiAccrual, fd.StrategyDeadline}[r.IntN(2)]
		c.Fence = times(d.HeartbeatInterval, 2.25, 4) + 1 // Not below the least, by rounding.
	}
	c.FailureDetector.MonitoredByNrOfMembers = 9 - r.IntN(2)*r.IntN(7)
	c.GossipInterval = between(r, 200*time.Millisecond, 2*time.Second)
	c.GossipIntervalUnconverged = times(c.GossipInterval, 0.1, 1)
	c.PushInterval = times(c.GossipInterval, 0.02, 0.5)
	c.PushDelay = max(times(c.PushInterval, 0.02, 1), time.Millisecond)
	c.PushFanout = 2 + r.IntN(5)
	c.JoinInterval = between(r, 100*time.Millisecond, 2*time.Second)
	c.JoinIntervalMax = times(c.JoinInterval, 1, 5)
	c.RetryUnsuccessfulJoinAfter = between(r, 3*time.Second, 15*time.Second)
	c.ProbeTimeout = between(r, 500*time.Millisecond, 3*time.Second)
	c.MinNrOfMembers = 1 + r.IntN(min(nodes, 3))
	c.AllowWeaklyUpMembers = time.Duration(r.IntN(2)) * between(r, time.Second, 10*time.Second)
	c.LeaveTimeout = between(r, time.Second, 30*time.Second)
	c.ExitTimeout = between(r, 2*time.Second, 10*time.Second)
	return c
}

// drawDowning draws the times at which a strategy is asked.
func drawDowning(r *rand.Rand, d downing.Config, c protocol.Config) downing.Config {
	if r.IntN(2) == 0 {
		d.StableAfter = downing.AutoDuration(between(r, c.Fence, 2*c.Fence))
	}
	d.DownOwnSideAfter = between(r, 5*time.Second, time.Minute)
	return d
}

// drawMembers draws zone, roles and version of each node.
func drawMembers(r *rand.Rand, nodes []gossip.Address) map[gossip.Address]membershipsim.Config {
	members, zones := make(map[gossip.Address]membershipsim.Config), 1+r.IntN(3)
	for _, a := range nodes {
		c := membershipsim.Config{Zone: fmt.Sprintf("z%d", r.IntN(zones)), AppVersion: fmt.Sprintf("1.%d.0", r.IntN(12))}
		for _, role := range []string{"edge", "worker"} {
			if r.IntN(2) == 0 {
				c.Roles = append(c.Roles, role)
			}
		}
		members[a] = c
	}
	return members
}
