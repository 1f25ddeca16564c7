// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// lame is a membership machine that some inputs never reach, or that publishes more than
// it should.
type lame struct {
	*protocol.Machine
	deaf func(machine.Input) bool
	says func(machine.Now) any
}

func (l *lame) Membership() *protocol.Machine { return l.Machine }

func (l *lame) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	if l.deaf != nil && l.deaf(in) {
		return
	}
	l.Machine.Step(now, in, out)
	if l.says != nil {
		if e := l.says(now); e != nil {
			out.Publish(e)
		}
	}
}

// planted is a world with the checks of liveness and of one cluster.
type planted struct {
	*simulation.World
	liveness *membershipsim.Liveness
}

// plant starts nodes that are lame in a given way, each with its list of seed nodes.
func plant(nodes int, seeds func(i int) []gossip.Address, lameness func(env simulation.Env, l *lame)) *planted {
	p := &planted{World: simulation.New(simulation.Options{Seed: 5})}
	membershipsim.Serve(p.World)
	d := membershipsim.KeepMajority()
	bounds := membershipsim.BoundsOf(membershipsim.Config{Downing: d}, nodes, time.Second)
	p.liveness = &membershipsim.Liveness{Bounds: bounds, Config: protocol.Default(), MajorityOnly: true}
	p.liveness.Watch(p.World)
	one := &membershipsim.OneCluster{}
	one.Watch(p.World)
	component := membershipsim.Component(membershipsim.Config{Downing: d})
	for i := range nodes {
		n := p.Start(address(i), func(env simulation.Env) []machine.Component {
			c := component(env)
			l := &lame{Machine: c.Machine.(*protocol.Machine)}
			lameness(env, l)
			c.Machine = l
			return []machine.Component{c}
		})
		n.Input(protocol.Service, protocol.Join{Seeds: seeds(i)})
	}
	return p
}

func sameSeeds(int) []gossip.Address { return addresses(0, 1) }

func sound(simulation.Env, *lame) {}

// from says whether the world has come to a time.
func from(env simulation.Env, at time.Duration) bool { return env.World.Now() >= at }

// A world in which nothing is planted is well, whatever is done to it.
//
// covers I13, I27.
func TestChecksOfLivenessFindNothingInASoundCluster(t *testing.T) {
	p := plant(5, sameSeeds, sound)
	require.NoError(t, p.Run(p.liveness.Bounds.Settle+30*time.Second))
	require.Positive(t, p.liveness.Settled)
	p.Network().Split(addresses(0, 2), addresses(2, 5))
	require.NoError(t, p.Run(p.liveness.Bounds.Accuse+p.liveness.Bounds.Remove+5*time.Second))
	require.Equal(t, 1, p.liveness.Splits)
	require.Positive(t, p.liveness.Silences)
	require.Len(t, p.Nodes(), 3)
}

// covers I27: nodes whose timers do not fire any more accuse nobody who dies.
func TestPlantedDeadNodeThatNobodyAccuses(t *testing.T) {
	p := plant(3, sameSeeds, func(env simulation.Env, l *lame) {
		l.deaf = func(in machine.Input) bool {
			_, fired := in.(machine.Fired)
			return fired && from(env, 10*time.Second)
		}
	})
	p.At(20*time.Second, func() { p.Crash(address(2)) })
	err := p.Run(time.Minute)
	require.ErrorContains(t, err, "accused: n000:7946")
	require.ErrorContains(t, err, "has heard nothing of n002:7946")
	require.LessOrEqual(t, p.Now(), 22*time.Second+p.liveness.Bounds.Accuse)
}

// covers I13: a node that takes back at once whom it has accused for the third time.
func TestPlantedNodeThatTakesBackWhoFlaps(t *testing.T) {
	var forgive string
	p := plant(5, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if forgive == "" || env.Self.Address != address(0) {
				return nil
			}
			d := machine.Decide{Topic: "reachability", Subject: forgive, Verdict: "reachable"}
			forgive = ""
			return d
		}
	})
	times := 0
	p.Observe(func(o simulation.Observation) {
		d, is := o.Event.(machine.Decide)
		if is && o.Node.ID().Address == address(0) && d.Verdict == "unreachable" {
			if times++; times == 3 {
				forgive = d.Subject
			}
		}
	})
	p.Network().Lose("by turns", func(from, to gossip.Address, _ any) bool {
		return p.Now() > 20*time.Second && (from == address(4) || to == address(4)) && p.Now()%(7500*time.Millisecond) < 5600*time.Millisecond
	})
	require.ErrorContains(t, p.Run(time.Minute), "flapping: n000:7946")
	require.Equal(t, 3, times)
}

// covers I10: a joiner that never hears of the members stays joining.
func TestPlantedJoinerThatStaysJoining(t *testing.T) {
	p := plant(3, sameSeeds, func(env simulation.Env, l *lame) {
		l.deaf = func(in machine.Input) bool {
			r, is := in.(machine.Received)
			if !is || env.Self.Address != address(2) {
				return false
			}
			switch r.Message.(type) {
			case protocol.GossipDelta, protocol.GossipState, protocol.GossipStatus:
				return true
			}
			return false
		}
	})
	err := p.Run(10 * time.Minute)
	require.ErrorContains(t, err, "settled: nothing has been wrong for")
	require.Equal(t, p.liveness.Bounds.Settle.Truncate(time.Second)+time.Second, p.Now())
}

// A node that hears no answers to its heartbeats, although the others hear it, has no
// standing.
func TestPlantedNodeWithoutStanding(t *testing.T) {
	p := plant(2, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if from(env, 20*time.Second) && env.Self.Address == address(1) {
				return component.Standing{}
			}
			return nil
		}
	})
	require.ErrorContains(t, p.Run(10*time.Minute), "has not been able to host")
}

// covers I13: the majority of a cluster that is cut goes down with the minority.
func TestPlantedMajorityThatDoesNotSurvive(t *testing.T) {
	p := plant(5, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if from(env, time.Minute) {
				return component.Stopping{Reason: component.StopDowned}
			}
			return nil
		}
	})
	p.At(50*time.Second+time.Millisecond, func() { p.Network().Split(addresses(0, 2), addresses(2, 5)) })
	require.ErrorContains(t, p.Run(2*time.Minute), "survives: of [n002:7946")
}

// covers I13: one of the majority of a cluster that is cut goes down with the minority.
func TestPlantedMajorityOfWhichOneDoesNotSurvive(t *testing.T) {
	p := plant(5, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if from(env, time.Minute) && env.Self.Address == address(4) {
				return component.Stopping{Reason: component.StopDowned}
			}
			return nil
		}
	})
	p.At(50*time.Second+time.Millisecond, func() { p.Network().Split(addresses(0, 2), addresses(2, 5)) })
	require.ErrorContains(t, p.Run(2*time.Minute), "survives: of [n002:7946")
}

// A node that ends by itself again and again is found, whoever starts it again.
func TestPlantedNodeThatAlternatesForEver(t *testing.T) {
	p := plant(3, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if env.Self.Address == address(2) && env.World.Node(address(2)) != nil && env.World.Node(address(2)).Age() > 10*time.Second {
				return component.Stopping{Reason: component.StopDowned}
			}
			return nil
		}
	})
	supervisor := &membershipsim.Supervisor{Seeds: addresses(0, 1), Min: time.Second}
	supervisor.Supervise(p.World)
	require.ErrorContains(t, p.Run(10*time.Minute), "endless: nodes at n002:7946 have ended by themselves 5 times")
}

// That nodes do not end again and again is asked of every cluster with the settings of a default,
// and not of one whose stability margin is shorter than news and its answer take.
func TestMarginsThatAreTooShortForAnAnswer(t *testing.T) {
	of := membershipsim.Config{Downing: membershipsim.KeepMajority()}
	for _, settings := range []protocol.Config{membershipsim.Default(), membershipsim.Fast()} {
		of.Config = settings
		for _, nodes := range []int{1, 2, 5, 50, 1_000} {
			require.True(t, membershipsim.BoundsOf(of, nodes, 0).Answered, "%d nodes", nodes)
		}
	}
	of.Config = membershipsim.Default()
	of.Config.PushInterval = 2 * time.Second
	require.False(t, membershipsim.BoundsOf(of, 50, 0).Answered)
}

// A node ends as often as its disk fails. That is no excuse for a node whose disk is
// well.
func TestPlantedNodeThatBlamesItsDiskForEver(t *testing.T) {
	run := func(disk simulation.Writes) error {
		p := plant(3, sameSeeds, func(env simulation.Env, l *lame) {
			l.says = func(machine.Now) any {
				if n := env.World.Node(env.Self.Address); env.Self.Address == address(2) && n != nil && n.Age() > 10*time.Second {
					return component.Stopping{Reason: component.StopDisk}
				}
				return nil
			}
		})
		p.liveness.MayWait = func() bool { return true }
		p.Disks().SetAt(address(2), disk)
		supervisor := &membershipsim.Supervisor{Seeds: addresses(0, 1), Min: time.Second}
		supervisor.Supervise(p.World)
		return p.Run(5 * time.Minute)
	}
	require.NoError(t, run(simulation.Writes{Fail: 0.1}))
	require.NoError(t, run(simulation.Writes{Hang: 0.1}))
	const want = "endless: nodes at n002:7946 have ended by themselves 5 times"
	require.ErrorContains(t, run(simulation.Writes{}), want)
	require.ErrorContains(t, run(simulation.Writes{Max: time.Second, Tear: 1}), want)
}

// A node that ends by itself once in a quiet world is found as well: others miss it for
// longer than for the moment that lost heartbeats cost.
//
// covers I9, I10.
func TestPlantedNodeThatEndsInAQuietWorld(t *testing.T) {
	ended := false
	p := plant(3, sameSeeds, func(env simulation.Env, l *lame) {
		l.says = func(machine.Now) any {
			if env.Self.Address != address(2) || ended || !from(env, 6*time.Minute) {
				return nil
			}
			ended = true
			return component.Stopping{Reason: component.StopDowned}
		}
	})
	supervisor := &membershipsim.Supervisor{Seeds: addresses(0, 1), Min: 5 * time.Second}
	supervisor.Supervise(p.World)
	require.Less(t, p.liveness.Bounds.Settle, 6*time.Minute)
	require.ErrorContains(t, p.Run(8*time.Minute), "settled: nothing has been wrong for 6m")
}

// covers I5, I32: two lists of seed nodes make two clusters.
func TestPlantedSecondClusterIsFound(t *testing.T) {
	p := plant(2, func(i int) []gossip.Address { return addresses(i, i+1) }, sound)
	require.ErrorContains(t, p.Run(time.Minute), "one cluster: n000:7946")

	excused := simulation.New(simulation.Options{Seed: 5})
	membershipsim.Serve(excused)
	one := &membershipsim.OneCluster{Excused: func() bool { return excused.Now() < 20*time.Second }}
	one.Watch(excused)
	component := membershipsim.Component(membershipsim.Config{})
	for i := range 2 {
		n := excused.Start(address(i), func(env simulation.Env) []machine.Component { return []machine.Component{component(env)} })
		n.Input(protocol.Service, protocol.Join{Seeds: addresses(i, i+1)})
	}
	require.NoError(t, excused.Run(19*time.Second))
	require.Zero(t, one.Looks)
	require.ErrorContains(t, excused.Run(time.Minute), "one cluster: n000:7946")
	require.Less(t, excused.Now(), 22*time.Second)
}

// A cluster that is born after another one, by a wall clock that is behind, has lower
// epochs.
func TestPlantedBirthThatGoesBackIsFound(t *testing.T) {
	p := plant(1, sameSeeds, sound)
	require.NoError(t, p.Run(10*time.Second))
	p.Crash(address(0))
	p.Restart(address(0))
	p.SetWall(address(0), -time.Hour)
	p.Input(address(0), protocol.Service, protocol.Join{Seeds: addresses(0, 1)})
	require.ErrorContains(t, p.Run(time.Minute), "births: n000:7946")
}
