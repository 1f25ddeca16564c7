// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The rules of the control machine, one by one. First what a whole fleet does: recovery from
// dead hosts and coordinators, leaves, refusals and the first allocation. Then what is made of
// reports and promises, with puppets for the other nodes. Then nodes that coordinate or use a
// kind and do not run it, and the region: lookups, maps, orders to host, and the loss of
// standing. Last the end of a node, inputs that are ignored, bounds, and a birth that is raised.

// term returns the start-th term of the member with the up-number up. The tests number the
// members in the order in which they come up.
func term(up gossip.UpNumber, start uint64) protocol.Term {
	return protocol.Term{UpNumber: up, UID: gossip.UID(up), Start: start}
}

// The shards of a dead host wait until the host is fenced. Then they get new homes at once,
// where their streams begin anew. The shards of other hosts do not move.
// covers F34, I1.
func TestShardsOfADeadHostWaitForItsFence(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	dead, homes := nodes[2], nodes[0].Inspect("k").Homes
	lost := dead.hosts()
	dead.dead = true
	f.set(gossip.Down, dead)
	f.run(10 * time.Second)
	f.remove(dead)
	f.run(10 * time.Second)
	require.Equal(t, homes, nodes[0].Inspect("k").Homes, "removed is not fenced")
	f.fence(dead)
	f.run(20 * time.Millisecond)
	f.settled(6, nodes[0], nodes[1])
	for _, h := range nodes[0].Inspect("k").Homes {
		if old := homes[h.Shard]; old.Node != dead.id {
			require.Equal(t, old, h)
			continue
		}
		require.Contains(t, lost, h.Shard)
		require.Equal(t, h.Epoch, h.Base, "the streams begin anew")
		require.True(t, homes[h.Shard].Epoch.Less(h.Epoch))
	}
}

// A new coordinator takes over the homes that regions report, with their epochs. A shard that
// it allocates itself has an epoch of its own term, with a version of its own map.
// covers F34, I3, I22.
func TestNewCoordinatorRecoversFromTheRegions(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	homes := nodes[1].Inspect("k").Homes
	nodes[0].dead = true
	f.set(gossip.Down, nodes[0])
	f.remove(nodes[0])
	f.run(5 * time.Second)
	require.False(t, nodes[1].Inspect("k").Coordinating, "the old one may still be running")
	f.fence(nodes[0])
	f.run(20 * time.Millisecond)
	f.settled(6, nodes[1], nodes[2])
	i := nodes[1].Inspect("k")
	require.True(t, i.Coordinating && i.Opened)
	require.Equal(t, term(2, 1), i.Term)
	for _, h := range i.Homes {
		if old := homes[h.Shard]; old.Node != nodes[0].id {
			require.Equal(t, old, h, "a reported shard keeps its home and its epoch")
			continue
		}
		require.Equal(t, term(2, 1), h.Epoch.Term)
		require.EqualValues(t, 7, h.Epoch.Born)
		require.LessOrEqual(t, h.Epoch.N, i.Version)
	}
	require.Equal(t, term(2, 1), nodes[2].Inspect("k").Promise)
}

// A node that leaves stops its shards and hands them over: their streams go on at the new
// homes where they were. The node tells membership when it has no shard any more.
// covers F34, F35, I20, I21.
func TestLeavingHandsShardsOver(t *testing.T) {
	for name, leaver := range map[string]int{"member": 2, "coordinator": 0} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			nodes := f.cluster(3, six())
			before, given := nodes[0].Inspect("k").Homes, nodes[leaver].hosts()
			require.NotEmpty(t, given)
			f.set(gossip.Leaving, nodes[leaver])
			f.run(5 * time.Millisecond)
			require.False(t, nodes[leaver].left, "the shards are still stopping")
			f.run(3 * time.Second)
			require.True(t, nodes[leaver].left)
			require.Empty(t, nodes[leaver].hosts())
			rest := append(append([]*peer{}, nodes[:leaver]...), nodes[leaver+1:]...)
			f.settled(6, rest...)
			for _, s := range given {
				h := rest[0].Inspect("k").Homes[s]
				require.True(t, before[s].Epoch.Less(h.Epoch))
				require.Equal(t, before[s].Base, h.Base, "the streams go on")
				for _, n := range rest {
					if n.id == h.Node {
						require.Equal(t, []protocol.Position{{Origin: writer, Seq: uint64(s) + 1}}, n.hosting[s].Positions)
					}
				}
			}
			require.Empty(t, published[control.CoordinatorStopped](rest[0]))
		})
	}
}

// The shards of a node that leaves get their next homes by one decision, and move in waves.
func TestHandedBackShardsAreAllocatedInOneBatch(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Settings.Shards = 300
	nodes := f.cluster(3, kind)
	f.stops = func(s protocol.ShardID) time.Duration { return time.Duration(s%40) * time.Millisecond }
	first, most := len(nodes[0].decided("allocation")), 0
	f.set(gossip.Leaving, nodes[1])
	for range 200 {
		f.run(time.Millisecond)
		most = max(most, nodes[0].Inspect("k").Moving)
	}
	f.settled(300, nodes[0], nodes[2])
	batches := nodes[0].decided("allocation")[first:]
	require.Len(t, batches, 1)
	require.Equal(t, 1, strings.Count(batches[0], "least-shard"), batches[0])
	require.Contains(t, batches[0], "k: 100 shards: 50 to "+nodes[0].id.String()+", 50 to "+nodes[2].id.String())
	require.Contains(t, batches[0], "shards on 2 regions")
	require.Equal(t, 32, most, "at one time")
	moves := nodes[0].Moves("k")
	require.Len(t, moves, 100)
	for _, m := range moves {
		require.Equal(t, control.OutcomeMoved, m.Outcome)
		require.Less(t, m.Ended.Sub(m.Started), 45*time.Millisecond, "each shard is away only while it stops")
	}
}

// The last node of a cluster stops its shards at once when it leaves, since no node is left
// to take them.
// covers F28.
func TestLastNodeStopsItsShards(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(1, six())
	f.set(gossip.Leaving, nodes[0])
	require.False(t, nodes[0].left)
	require.False(t, nodes[0].Inspect("k").Coordinating)
	f.run(15 * time.Millisecond)
	require.Empty(t, nodes[0].hosts())
	require.True(t, nodes[0].left)
}

// When a shard does not stop in time, its move is called off, and is tried again some time
// later.
// covers F39, I21.
func TestHandoffTimeout(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.stops = func(protocol.ShardID) time.Duration { return -1 }
	f.set(gossip.Leaving, nodes[1])
	f.run(2900 * time.Millisecond)
	require.Equal(t, 3, nodes[0].Inspect("k").Moving)
	f.run(200 * time.Millisecond)
	require.Zero(t, nodes[0].Inspect("k").Moving, "called off")
	require.Contains(t, nodes[0].decided("handoff"), "k: called off: "+nodes[1].id.String()+" did not stop 3 shards within the handoff timeout")
	require.IsType(t, protocol.ResumeHosting{}, nodes[1].told[len(nodes[1].told)-1])
	require.False(t, nodes[1].left)
	f.stops = func(protocol.ShardID) time.Duration { return 2 * time.Second }
	f.run(2 * time.Second)
	require.Zero(t, nodes[0].Inspect("k").Moving, "not at once again")
	f.run(4 * time.Second)
	f.settled(6, nodes[0])
	require.True(t, nodes[1].left)
}

// When a shard has stopped before its home is told to take the stop back, the stop counts.
func TestLateStopIsAccepted(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.stops = func(protocol.ShardID) time.Duration { return 100 * time.Millisecond }
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		_, stopped := m.(control.ShardsStopped)
		return stopped
	}
	f.set(gossip.Leaving, nodes[1])
	f.run(2990 * time.Millisecond)
	require.Empty(t, nodes[1].hosts())
	require.Equal(t, 3, nodes[0].Inspect("k").Moving)
	f.drop = nil
	f.run(time.Second)
	f.settled(6, nodes[0])
}

// A region whose settings differ from the coordinator's is told the setting and both values,
// and gets neither shards nor the map.
func TestSettingsThatDifferAreRefused(t *testing.T) {
	f := newFleet(t)
	other := six()
	other.Settings.Codec = "other"
	good, bad := f.start(1, six()), f.start(2, other)
	f.run(6 * time.Second)
	refusals := published[control.KindRefused](bad)
	require.Len(t, refusals, 1, "said once")
	require.Equal(t, control.SettingsRefused{Kind: "k", Setting: "codec", Coordinator: "c", Region: "other"}, refusals[0].Refusal)
	require.Len(t, good.hosts(), 6)
	require.Empty(t, bad.hosts())
	require.Empty(t, bad.Inspect("k").Homes, "it is not told where shards live either")
	bad.step(machine.Received{From: good.id, Message: control.SettingsRefused{Kind: "k", Setting: "hash"}})
	require.Len(t, published[control.KindRefused](bad), 2)
	accepted := published[control.KindAccepted](good)
	require.Equal(t, []control.KindAccepted{{Kind: "k"}}, accepted, "said once")
	good.step(machine.Received{From: bad.id, Message: control.SettingsRefused{Kind: "k", Setting: "hash"}})
	require.Empty(t, published[control.KindRefused](good), "the coordinator alone refuses")
}

// No shard is allocated before every member has answered the coordinator, or is fenced.
// covers F34.
func TestNothingIsAllocatedBeforeAllHaveAnswered(t *testing.T) {
	f := newFleet(t)
	silent, other := f.puppet(1), f.puppet(2)
	silent.puppet = true
	n := f.start(3, six())
	f.set(gossip.Leaving, silent)
	f.set(gossip.Leaving, other)
	f.run(3 * latency)
	require.Equal(t, control.SingletonMessage{Kind: "k", Settings: six().Settings, Message: singleton.Request{}}, last[control.SingletonMessage](t, silent))
	silent.say(n, control.SingletonMessage{Kind: "k", Settings: six().Settings, Message: singleton.Done{}})
	require.False(t, n.Inspect("k").Coordinating)
	other.say(n, control.SingletonMessage{Kind: "k", Settings: six().Settings, Message: singleton.Done{}})
	require.Equal(t, term(3, 1), n.Inspect("k").Term)
	require.Equal(t, control.Query{Kind: "k", Term: term(3, 1)}, last[control.Query](t, silent))
	other.say(n, control.NoRegion{Kind: "k", Term: term(3, 1)})
	f.run(10 * time.Second)
	last[control.Query](t, silent) // The coordinator repeats its query.
	require.False(t, n.Inspect("k").Opened)
	require.Contains(t, n.String(), "silent 1")
	silent.say(n, control.NoRegion{Kind: "k", Term: term(2, 9)})
	require.False(t, n.Inspect("k").Opened, "an answer to another term")
	f.remove(silent)
	f.run(10 * time.Second)
	require.False(t, n.Inspect("k").Opened, "removed is not fenced")
	f.fence(silent)
	require.True(t, n.Inspect("k").Opened)
	f.run(10 * time.Millisecond)
	require.Len(t, n.hosts(), 6)
}

// A node that joined after another node was removed does not allocate before that node is
// fenced, although it never knew it as a member.
// covers I1, I3.
func TestJoinerWaitsForTheFenceOfWhomItNeverKnew(t *testing.T) {
	f := newFleet(t)
	gone := f.puppet(1)
	f.set(gossip.Down, gone)
	f.remove(gone)
	n := f.start(2, six())
	f.run(10 * time.Second)
	require.False(t, n.Inspect("k").Coordinating)
	late := six()
	late.Name = "late"
	f.fence(gone)
	require.True(t, n.Inspect("k").Coordinating)
	n.step(control.AddKind{Kind: late})
	require.True(t, n.Inspect("late").Opened, "a kind that comes later knows the fences")
	f.edit(func(e *gossip.Edit) bool { return e.SetPrunedBefore(time.Unix(100, 0)) })
	f.publish()
	f.run(5 * time.Second)
	f.settled(6, n)
}

// report returns the report of a region that hosts shards, for the coordinator with a term.
func report(to protocol.Term, hosted ...control.Hosted) control.Report {
	return control.Report{Kind: "k", Term: to, Registration: control.Registration{Settings: six().Settings}, Hosted: hosted}
}

func hosted(s protocol.ShardID, e protocol.Epoch, state control.HostState) control.Hosted {
	return control.Hosted{Shard: s, Epoch: e, Base: e, State: state}
}

// When two regions report the same shard, the one with the higher epoch stays its home, in
// whichever order the reports come, and a violation is published. A second report of a
// region in the same term is ignored.
// covers I22.
func TestTwoHostsOfAShard(t *testing.T) {
	low := protocol.Epoch{Born: 7, Term: term(0, 1), N: 2} // An epoch that an earlier coordinator gave out.
	high := protocol.Epoch{Born: 7, Term: term(0, 1), N: 3}
	for name, order := range map[string][2]protocol.Epoch{"low first": {low, high}, "high first": {high, low}} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			n := f.start(1, six())
			a, b := f.puppet(2), f.puppet(3)
			f.run(2 * latency)
			a.say(n, report(term(1, 1), hosted(0, order[0], control.Serving), hosted(99, low, control.Serving)))
			b.say(n, report(term(1, 1), hosted(0, order[1], control.Serving)))
			a.say(n, report(term(1, 1), hosted(1, order[1], control.Serving)))
			v := published[control.Violation](n)
			require.Len(t, v, 1)
			require.EqualValues(t, 0, v[0].Shard)
			homes := n.Inspect("k").Homes
			require.Equal(t, high, homes[0].Epoch)
			require.Equal(t, order[1] == high, homes[0].Node == b.id)
		})
	}
}

// A report that comes after its shards were handed back takes no shard back, neither from
// its next home, nor while that is being looked for. A report that agrees with the
// coordinator changes nothing.
// covers F37, I22.
func TestLateReportTakesNothingBack(t *testing.T) {
	for name, wait := range map[string]time.Duration{"being allocated": 0, "allocated": time.Second} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			n := f.start(1, six())
			f.run(time.Second)
			p := f.puppet(2)
			p.say(n, control.Register{Kind: "k", Registration: control.Registration{Settings: six().Settings}})
			f.run(4 * time.Second)
			told, late := last[control.Host](t, p), report(term(1, 1))
			var stopped []control.StoppedShard
			for _, h := range told.Shards {
				late.Hosted = append(late.Hosted, control.Hosted{Shard: h.Shard, Epoch: h.Epoch, Base: h.Base, State: control.Serving})
				stopped = append(stopped, control.StoppedShard{Shard: h.Shard, Epoch: h.Epoch, Base: h.Base})
			}
			require.Len(t, stopped, 3)
			f.set(gossip.Leaving, p)
			p.say(n, control.ShardsStopped{Kind: "k", Term: term(1, 1), Shards: stopped})
			f.run(wait)
			p.say(n, late)
			f.run(time.Second)
			require.Len(t, n.hosts(), 6)
			f.settled(6, n)
		})
	}

	f := newFleet(t)
	n := f.start(1, six())
	p := f.puppet(2)
	p.say(n, control.Register{Kind: "k", Registration: control.Registration{Settings: six().Settings}})
	f.run(4 * time.Second)
	told := last[control.Host](t, p)
	before := n.Inspect("k")
	p.say(n, report(term(1, 1), hosted(told.Shards[0].Shard, told.Shards[0].Epoch, control.Serving)))
	require.Equal(t, before.Version, n.Inspect("k").Version)
}

// A shard that is reported as stopping is told to stop until it has stopped, and gets
// another home then.
func TestReportedShardThatIsStopping(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, six())
	a := f.puppet(2)
	f.run(2 * latency)
	e := protocol.Epoch{Born: 7, Term: term(1, 1), N: 1}
	a.say(n, report(term(1, 1), hosted(0, e, control.Stopping)))
	f.run(time.Second)
	require.Equal(t, []control.ShardEpoch{{Shard: 0, Epoch: e}}, last[control.Stop](t, a).Shards)
	a.say(n, control.ShardsStopped{Kind: "k", Term: term(1, 1), Shards: []control.StoppedShard{
		{Shard: 0, Epoch: epoch(99), Base: e}, {Shard: 99, Epoch: e},
	}})
	f.run(time.Second)
	last[control.Stop](t, a) // The answer above was about another epoch, and about a shard that the kind does not have.
	a.say(n, control.ShardsStopped{Kind: "k", Term: term(1, 1), Shards: []control.StoppedShard{{Shard: 0, Epoch: e, Base: e}}})
	f.run(time.Second)
	_, stops := find[control.Stop](a)
	require.False(t, stops)
	require.True(t, e.Less(n.Inspect("k").Homes[0].Epoch), "it has a home again")
}

// A region that promised a term refuses every command of a lower term, and does nothing.
// covers F38, I3.
func TestPromiseRefusesLowerTerms(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	high, low := term(1, 5), term(1, 4)
	p.say(n, control.Query{Kind: "k", Term: high})
	require.Equal(t, high, last[control.Report](t, p).Term)
	e := protocol.Epoch{Born: 7, Term: low, N: 50}
	for _, m := range []control.Message{
		control.Query{Kind: "k", Term: low},
		control.Host{Kind: "k", Term: low, Shards: []control.HostShard{{Shard: 1, Epoch: e, Base: e}}},
		control.Stop{Kind: "k", Term: low},
		control.Resume{Kind: "k", Term: low},
		control.Map{Kind: "k", Term: low, To: 9, Homes: []control.Home{{Shard: 1, Node: p.id, Epoch: e, Base: e}}},
	} {
		p.say(n, m)
		require.Equal(t, high, last[control.Refused](t, p).Promise, "%T", m)
	}
	require.Empty(t, n.hosts())
	require.Empty(t, n.Inspect("k").Homes)
	require.Equal(t, high, n.Inspect("k").Promise)
}

// A coordinator retires when another node has promised a higher term, and never comes back
// under a term below that.
// covers I3.
func TestRefusedCoordinatorRetires(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, six())
	p := f.puppet(2)
	f.run(2 * latency)
	p.say(n, control.Refused{Kind: "k", Promise: term(1, 1)})
	require.True(t, n.Inspect("k").Coordinating, "a promise that is not above is no reason")
	p.say(n, control.Refused{Kind: "k", Promise: term(2, 1)})
	require.False(t, n.Inspect("k").Coordinating)
	require.Equal(t, []control.CoordinatorStopped{{Kind: "k", Term: term(1, 1)}}, published[control.CoordinatorStopped](n))
	p.say(n, control.Refused{Kind: "k", Promise: term(2, 1)})
	f.run(10 * time.Second)
	require.False(t, n.Inspect("k").Coordinating)
	p.say(n, control.Query{Kind: "k", Term: term(2, 1)})
	f.run(time.Second)
	require.Equal(t, "k", last[control.Register](t, p).Kind, "the region serves the other")
}

// The oldest node coordinates a kind even if it does not run the kind itself: it takes the
// settings from registrations.
func TestCoordinatorWithoutARegion(t *testing.T) {
	f := newFleet(t)
	old := f.start(1)
	young := f.start(2, six())
	f.run(5 * time.Second)
	require.True(t, old.Inspect("k").Coordinating)
	require.Empty(t, old.hosts())
	require.Len(t, young.hosts(), 6)
	require.Equal(t, control.Inspection{}, old.Inspect("unknown"))
	f.set(gossip.Leaving, old)
	f.run(3 * latency)
	require.True(t, old.left, "the coordinator stops when the next one asks")
	f.run(time.Second)
	require.True(t, young.Inspect("k").Coordinating)
	f.settled(6, young)
}

// A proxy gets the map, and hosts no shard, even if it is told to.
func TestProxy(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, six())
	kind := six()
	kind.Proxy = true
	p := f.start(2, kind)
	f.run(5 * time.Second)
	require.Len(t, n.hosts(), 6)
	require.Empty(t, p.hosts())
	require.Len(t, p.Inspect("k").Homes, 6)
	e := protocol.Epoch{Born: 7, Term: term(1, 1), N: 99}
	f.send(n.id, p.id, control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{{Shard: 1, Epoch: e, Base: e}}})
	f.run(time.Second)
	require.Empty(t, p.hosts())
}

// The first allocation waits until the kind has its least number of regions, and no longer
// than three seconds.
func TestFirstAllocationWaitsForRegions(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.MinRegions = 3
	a, b := f.start(1, kind), f.start(2, kind)
	f.run(time.Second)
	require.Zero(t, a.Inspect("k").Serving)
	c := f.start(3, kind)
	f.run(20 * time.Millisecond)
	f.settled(6, a, b, c)

	f = newFleet(t)
	a = f.start(1, kind)
	f.run(3*time.Second + 10*time.Millisecond)
	f.settled(6, a)
}

// A lookup is answered from the map of the region. Lookups that the map cannot answer are
// gathered for a moment, and sent to the coordinator in one message.
func TestLookups(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	p.heard = nil
	for _, s := range []protocol.ShardID{4, 1, 99} {
		n.step(control.FromShard{Kind: "k", Shard: s, Event: protocol.Lookup{}})
	}
	n.step(control.FromShard{Kind: "none", Event: protocol.Lookup{}})
	f.run(4 * time.Millisecond)
	_, sent := find[control.Register](p)
	require.False(t, sent)
	f.run(3 * time.Millisecond)
	require.Equal(t, []protocol.ShardID{1, 4}, last[control.Register](t, p).Wanted)
	e := protocol.Epoch{Born: 7, Term: term(1, 1), N: 2}
	home := control.Home{Shard: 4, Node: p.id, Epoch: e, Base: e}
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), To: 2, Homes: []control.Home{home, {Shard: 77, Node: p.id, Epoch: e}}})
	require.Equal(t, []protocol.CellInput{protocol.SetRoute{Home: p.id, Epoch: e, Base: e}}, n.told[1:])
	n.step(control.FromShard{Kind: "k", Shard: 4, Event: protocol.Lookup{}})
	require.Len(t, n.told, 3, "answered at once")
	n.step(control.FromShard{Kind: "k", Shard: 4, Event: protocol.Lookup{Above: e}})
	f.run(10 * time.Millisecond)
	require.Equal(t, []protocol.ShardID{1, 4}, last[control.Register](t, p).Wanted)
}

// After a change of the map that leaves a gap, the region asks for the whole map. It ignores
// changes that are older than its map.
// covers F37, I22.
func TestMapsWithGaps(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	entry := func(n uint64) control.Home {
		e := protocol.Epoch{Born: 7, Term: term(1, 1), N: n}
		return control.Home{Shard: 0, Node: p.id, Epoch: e, Base: e}
	}
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), From: 3, To: 4, Homes: []control.Home{entry(4)}})
	require.Equal(t, control.NeedMap{Kind: "k", Term: term(1, 1)}, last[control.NeedMap](t, p))
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), To: 4, Homes: []control.Home{entry(4)}})
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), From: 1, To: 3, Homes: []control.Home{entry(3)}})
	require.EqualValues(t, 4, n.Inspect("k").MapVersion)
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), From: 4, To: 5, Homes: []control.Home{entry(2)}})
	i := n.Inspect("k")
	require.EqualValues(t, 5, i.MapVersion)
	require.Equal(t, []control.Home{entry(4)}, i.Homes, "the epoch of an entry never falls")

	f = newFleet(t)
	c := f.start(1, six())
	q := f.puppet(2)
	f.run(5 * time.Second)
	q.say(c, report(term(1, 1)))
	f.run(5 * time.Second)
	q.heard = nil
	q.say(c, control.NeedMap{Kind: "k", Term: term(1, 1)})
	require.Len(t, last[control.Map](t, q).Homes, 6)
	q.say(c, control.Register{Kind: "k", Registration: control.Registration{Settings: six().Settings}, Term: term(1, 1), Version: 1})
	require.Len(t, last[control.Map](t, q).Homes, 6, "an old version gets the whole")
}

// A region that is told to host, to stop or to resume obeys only if the epoch permits it,
// and answers the same order again if it comes again.
// covers F38, I1, I22.
func TestHostingRules(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	e := func(n uint64) protocol.Epoch { return protocol.Epoch{Born: 7, Term: term(1, 1), N: n} }
	host := func(n uint64) control.Host {
		return control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{{Shard: 0, Epoch: e(n), Base: e(n)}, {Shard: 66, Epoch: e(n)}}}
	}
	hosting := func(n uint64) []control.ShardEpoch { return []control.ShardEpoch{{Shard: 0, Epoch: e(n)}} }
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), To: 3, Homes: []control.Home{{Shard: 0, Node: p.id, Epoch: e(3), Base: e(3)}}})
	p.heard = nil
	p.say(n, host(2))
	p.say(n, host(3))
	require.Empty(t, n.hosts(), "the map knows a home that is not below")
	require.Empty(t, p.heard)
	p.say(n, host(4))
	p.say(n, host(4))
	require.Equal(t, hosting(4), last[control.Hosting](t, p).Shards, "answered again, hosted once")
	p.say(n, host(3))
	require.Empty(t, p.heard)
	require.Empty(t, published[control.Violation](n))
	p.say(n, host(5))
	require.Equal(t, hosting(5), last[control.Hosting](t, p).Shards)
	require.Len(t, published[control.Violation](n), 1, "it hosts under another epoch")

	stop := control.Stop{Kind: "k", Term: term(1, 1), Shards: append(hosting(4), hosting(5)...)}
	resume := control.Resume{Kind: "k", Term: term(1, 1), Shards: append(hosting(4), hosting(5)...)}
	p.say(n, resume)
	require.Equal(t, hosting(5), last[control.Resumed](t, p).Shards, "it was never stopped")
	p.say(n, stop)
	p.say(n, resume)
	require.Equal(t, hosting(5), last[control.Resumed](t, p).Shards)
	p.say(n, stop)
	f.run(20 * time.Millisecond)
	require.Len(t, last[control.ShardsStopped](t, p).Shards, 1)
	p.say(n, stop)
	require.Equal(t, e(5), last[control.ShardsStopped](t, p).Shards[0].Epoch, "said again")
	p.say(n, resume)
	require.Equal(t, e(5), last[control.ShardsStopped](t, p).Shards[0].Epoch, "too late to resume")
	p.say(n, host(5))
	require.Empty(t, p.heard, "what has stopped is not hosted again under its epoch")
	n.step(control.FromShard{Kind: "k", Shard: 0, Event: protocol.ShardStopped{Epoch: e(2)}})
	require.Empty(t, p.heard, "an event of another epoch")
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	require.Empty(t, last[control.Report](t, p).Hosted)
	p.say(n, resume)
	require.Equal(t, e(5), last[control.ShardsStopped](t, p).Shards[0].Epoch, "a query that comes late changes nothing")
	p.say(n, control.Query{Kind: "k", Term: term(1, 2)})
	require.Empty(t, last[control.Report](t, p).Hosted, "positions are passed on once")
	p.say(n, control.Resume{Kind: "k", Term: term(1, 2), Shards: hosting(5)})
	require.Empty(t, p.heard)
}

// A region that hosts a shard which the map gives to another node gives the shard up, and
// publishes a violation.
func TestPassedOverRegionReports(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	e := func(n uint64) protocol.Epoch { return protocol.Epoch{Born: 7, Term: term(1, 1), N: n} }
	p.say(n, control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{{Shard: 0, Epoch: e(2), Base: e(2)}}})
	require.Len(t, n.hosts(), 1)
	p.say(n, control.Map{Kind: "k", Term: term(1, 1), To: 3, Homes: []control.Home{{Shard: 0, Node: p.id, Epoch: e(3), Base: e(3)}}})
	require.Len(t, published[control.Violation](n), 1)
	require.Zero(t, n.Inspect("k").Hosting)
	require.Empty(t, n.hosts())
}

// A node without standing gets no shards, its coordinator decides nothing, and its cells
// wait. All of this ends when the node has standing again.
// covers F24, I14.
func TestSuspendedNode(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, six())
	m := f.start(2, six())
	m.step(component.Standing{Until: machine.Instant(f.now + time.Second)})
	require.False(t, m.suspended)
	f.run(1100 * time.Millisecond)
	require.True(t, m.suspended, "by the timer")
	f.run(4 * time.Second)
	require.Len(t, n.hosts(), 6)
	late := f.start(3, six())
	f.run(time.Second)
	require.Len(t, late.hosts(), 3)
	require.Empty(t, m.hosts(), "the load is evened out without it")

	n.step(component.Standing{Until: 0})
	require.True(t, n.suspended)
	f.set(gossip.Down, late)
	f.remove(late)
	f.fence(late)
	f.set(gossip.Leaving, m)
	f.run(5 * time.Second)
	require.Empty(t, n.decided("handoff"))
	require.Len(t, n.hosts(), 3, "suspended is not stopped")
	n.step(component.Standing{Until: machine.Never})
	require.False(t, n.suspended)
	f.run(time.Second)
	require.Len(t, n.hosts(), 6)

	n.step(component.Standing{Until: machine.Instant(f.now + time.Second)})
	f.now += time.Hour // The node was frozen: its timer is late, and another input comes first.
	n.step(control.FromShard{Kind: "k", Event: protocol.Lookup{}})
	require.True(t, n.suspended)
}

// The cell of a shard that comes to a node without standing is suspended before it hosts.
func TestHostWithoutStanding(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	n.step(component.Standing{Until: 0})
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	require.True(t, last[control.Report](t, p).Registration.Suspended)
	n.told = nil
	e := protocol.Epoch{Born: 7, Term: term(1, 1), N: 2}
	p.say(n, control.Host{Kind: "k", Term: term(1, 1), Shards: []control.HostShard{{Shard: 0, Epoch: e, Base: e}}})
	require.Equal(t, []protocol.CellInput{protocol.SuspendHosting{}, protocol.StartHosting{Epoch: e, Base: e}}, n.told)
}

// The end of a node ends its hosting and its coordinators at once, and no input has an
// effect after it.
func TestStopping(t *testing.T) {
	f := newFleet(t)
	n := f.cluster(1, six())[0]
	n.step(component.Stopping{Reason: component.StopDowned})
	require.Empty(t, n.hosts())
	require.Equal(t, protocol.AbandonHosting{}, n.told[len(n.told)-1])
	require.Len(t, published[control.CoordinatorStopped](n), 1)
	require.Empty(t, n.timers)
	told := len(n.told)
	n.step(control.AddKind{Kind: six()})
	n.step(component.Standing{Until: 0})
	require.Len(t, n.told, told)
}

// Inputs that are not valid, from a stranger, or about something unknown are ignored.
func TestWhatIsIgnored(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2, six())
	p.say(n, control.Query{Kind: "k", Term: term(1, 1)})
	p.heard = nil
	bad := six()
	bad.Name, bad.MinRegions = "bad", -1
	n.step(control.AddKind{Kind: bad})
	require.Equal(t, 1, strings.Count(n.String(), "region map"))
	n.step(control.AddKind{Kind: six()})
	n.step(machine.Received{From: member(55), Message: control.Query{Kind: "k", Term: term(9, 9)}})
	n.step(machine.Received{From: p.id, Message: "no message of ours"})
	n.step(machine.Received{From: p.id, Message: control.Query{Term: term(9, 9)}})
	n.step(machine.Received{From: p.id, Message: control.Query{Kind: strings.Repeat("x", 200), Term: term(9, 9)}})
	n.step(machine.Received{From: p.id, Message: control.Report{Kind: "k"}})
	n.step(machine.Called{ID: 5})
	for timer := range f.start(3, six()).timers {
		n.step(machine.Fired{Timer: timer}) // A timer that another node has armed changes nothing.
	}
	require.Equal(t, term(1, 1), n.Inspect("k").Promise)
	p.say(n, control.Query{Kind: "other", Term: term(1, 1)})
	require.Equal(t, control.NoRegion{Kind: "other", Follows: true, Term: term(1, 1)}, last[control.NoRegion](t, p))
	require.Equal(t, term(1, 1), n.Inspect("other").Promise, "the promise is kept for a kind that may come")
	n.step(machine.Received{From: p.id, Message: control.SettingsRefused{Kind: "other", Setting: "s"}})
	require.Empty(t, published[control.KindRefused](n))

	require.Panics(t, func() { control.New(control.Config{}) })
	require.Panics(t, func() {
		c := allocation.Default()
		c.LeastShard.RebalanceAbsoluteLimit = -1
		control.New(control.Config{Self: member(1), Allocation: c})
	})
}

// A node keeps promises for a bounded number of kinds.
func TestKindsAreBounded(t *testing.T) {
	f := newFleet(t)
	p := f.puppet(1)
	n := f.start(2)
	for i := range protocol.MaxKinds + 1 {
		n.step(machine.Received{From: p.id, Message: control.Query{Kind: "k" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), Term: term(1, 1)}})
	}
	require.Equal(t, protocol.MaxKinds, strings.Count(n.String(), "kind "))
}

func TestHostStatesHaveNames(t *testing.T) {
	require.Equal(t, "serving stopping stopped none", control.Serving.String()+" "+control.Stopping.String()+" "+
		control.Halted.String()+" "+control.HostState(9).String())
	for _, m := range []control.Message{
		control.Query{Kind: "k"},
		control.Refused{Kind: "k"},
		control.NoRegion{Kind: "k"},
		control.Report{Kind: "k"},
		control.Register{Kind: "k"},
		control.SettingsRefused{Kind: "k"},
		control.Map{Kind: "k"},
		control.NeedMap{Kind: "k"},
		control.Host{Kind: "k"},
		control.Hosting{Kind: "k"},
		control.Stop{Kind: "k"},
		control.ShardsStopped{Kind: "k"},
		control.Resume{Kind: "k"},
		control.Resumed{Kind: "k"},
		control.SingletonMessage{Kind: "k"},
	} {
		require.Equal(t, "k", m.KindName())
	}
}

// When the birth in the state is raised, because a node has come that was in a cluster with
// later epochs, the coordinator begins a new term. Every home that it gives from then on has
// an epoch above all that a storage can have seen. Shards that have a home keep its epoch.
// covers I20, I22.
func TestARaisedBirthBeginsANewTerm(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	before := nodes[0].Inspect("k")
	f.edit(func(e *gossip.Edit) bool { return e.RaiseEpochs(100) })
	f.publish()
	f.run(3 * time.Second)
	f.settled(6, nodes...)
	i := nodes[0].Inspect("k")
	require.Equal(t, term(1, 2), i.Term)
	require.Equal(t, before.Homes, i.Homes)
	require.NotEmpty(t, nodes[0].decided("coordinator"))
	given := nodes[2].hosts()
	f.set(gossip.Leaving, nodes[2])
	f.run(3 * time.Second)
	f.settled(6, nodes[0], nodes[1])
	for _, s := range given {
		h := nodes[0].Inspect("k").Homes[s]
		require.EqualValues(t, 100, h.Epoch.Born)
		require.True(t, before.Homes[s].Epoch.Less(h.Epoch))
	}
}
