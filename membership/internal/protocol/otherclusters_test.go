// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// The first part is a world in which nodes have lists, disks and deployments of their own:
// the machines know nothing of deployments, the oracles know nothing but what was set up. The
// second part is what happens to clusters of one name in it.

// resident is what an operator gave to the node at an address.
type resident struct {
	deployment int
	list       []int // Seed nodes, or what its lookups find.
	found      bool  // The list is looked up.
	forgets    bool  // It has no disk: a restart forgets.
}

// land is a world of several deployments of one name. All nodes that end are started again
// after a second, unless they are off.
type land struct {
	*loop
	residents map[int]*resident
	disks     map[gossip.Address]protocol.Record
	off       map[int]bool
	ended     map[*node]time.Duration
	uid       gossip.UID

	// yields is to which cluster each cluster has yielded.
	yields map[gossip.ClusterID]gossip.ClusterID
	// read is how many events of a node the oracles have looked at.
	read map[*node]int
	// twice says for how long two clusters of one deployment hosted.
	twice time.Duration
}

func newLand(t *testing.T) *land {
	t.Helper()
	w := &land{
		loop: newLoop(t), residents: map[int]*resident{}, disks: map[gossip.Address]protocol.Record{}, off: map[int]bool{},
		ended: map[*node]time.Duration{}, uid: 100, yields: map[gossip.ClusterID]gossip.ClusterID{}, read: map[*node]int{},
	}
	w.calls = w.answer
	return w
}

// answer is what disks and discovery answer.
func (w *land) answer(n *node, call machine.Call) {
	called := machine.Called{ID: call.ID}
	switch call.Port {
	case protocol.CallRemember:
		w.disks[n.id.Address] = call.Request.(protocol.Record)
	case protocol.CallLookup:
		var found discovery.Targets
		for _, i := range w.residents[w.number(n)].list {
			found.List = append(found.List, targetOf(i))
		}
		called.Result = found
	default:
		w.t.Fatalf("no such port: %s", call.Port)
	}
	w.after(2*time.Millisecond, func() { n.step(called) })
}

func (w *land) number(n *node) int {
	for i := range w.residents {
		if address(i) == n.id.Address {
			return i
		}
	}
	return 0
}

// lives starts a node of a kind at each address.
func (w *land) lives(r resident, at ...int) {
	for _, i := range at {
		own := r
		own.list = slices.Clone(r.list)
		w.residents[i] = &own
		w.boot(i)
	}
}

func (w *land) boot(i int) {
	w.uid++
	r := w.residents[i]
	w.off[i] = false
	n := w.start(i, w.uid, func(_ *protocol.Config, deps *protocol.Dependencies) {
		if !r.forgets {
			deps.Record, deps.Remember = w.disks[address(i)], true
		}
		if r.found {
			deps.Bootstrap = &protocol.Bootstrap{Config: bootstrap.Default(), Limit: 3 * time.Second}
		}
	})
	if r.found {
		n.step(protocol.Discover{})
		return
	}
	var seeds []gossip.Address
	for _, s := range r.list {
		seeds = append(seeds, address(s))
	}
	n.step(protocol.Join{Seeds: seeds})
}

// kill ends a node for good; its address may be given to another one.
func (w *land) kill(at ...int) {
	for _, i := range at {
		w.nodes[address(i)].dead, w.off[i] = true, true
		delete(w.disks, address(i))
	}
}

// live runs the world for some time under the oracles.
func (w *land) live(d time.Duration) {
	w.t.Helper()
	for end := w.now + d; w.now < end; w.run(100 * time.Millisecond) {
		for i := range 40 {
			n := w.nodes[address(i)]
			if n == nil || !n.dead || w.off[i] {
				continue
			}
			if at, ok := w.ended[n]; !ok {
				w.ended[n] = w.now
			} else if w.now-at >= time.Second {
				w.boot(i)
			}
		}
		w.judge()
	}
}

// judge holds the oracles against the present moment.
func (w *land) judge() {
	w.t.Helper()
	hosts := map[int]map[gossip.ClusterID]bool{}
	for i, r := range w.residents {
		n := w.nodes[address(i)]
		w.judgeYields(n)
		if !n.hosts() {
			continue
		}
		if hosts[r.deployment] == nil {
			hosts[r.deployment] = map[gossip.ClusterID]bool{}
		}
		hosts[r.deployment][n.machine.State().Cluster()] = true
		for j, other := range w.residents {
			m := w.nodes[address(j)]
			if m.hosts() && m.machine.State().Cluster() == n.machine.State().Cluster() {
				require.Equal(w.t, r.deployment, other.deployment, "O4: nodes %d and %d of two deployments are in one cluster", i, j)
			}
		}
	}
	for _, clusters := range hosts {
		if len(clusters) > 1 {
			w.twice += 100 * time.Millisecond
		}
	}
}

// judgeYields looks at what a node has heard of yields since it was looked at last.
func (w *land) judgeYields(n *node) {
	w.t.Helper()
	for _, e := range n.events[w.read[n]:] {
		yielded, ok := e.(protocol.Yielded)
		if !ok {
			continue
		}
		own := n.machine.State().Cluster()
		if _, again := w.yields[own]; again {
			continue
		}
		w.yields[own] = yielded.To
		_, both := w.yields[yielded.To]
		require.False(w.t, both, "O3: both yield")
		mine, theirs := w.voters(own), w.voters(yielded.To)
		require.NotEmpty(w.t, theirs, "O2: it yields to a cluster of which nobody is left")
		require.GreaterOrEqual(w.t, w.size(theirs), w.size(mine), "O2: it yields to a cluster with fewer present voters: %v, %v", mine, theirs)
		require.Equal(w.t, w.residents[w.number(n)].deployment, w.residents[theirs[0]].deployment, "O4: ended by another deployment")
		hosts := slices.ContainsFunc(theirs, func(i int) bool { return w.nodes[address(i)].hosts() })
		require.True(w.t, hosts, "O2: it yields to a cluster without standing")
	}
	w.read[n] = len(n.events)
}

// voters returns the nodes of a cluster that run.
func (w *land) voters(c gossip.ClusterID) []int {
	var all []int
	for i := range 40 {
		if n := w.nodes[address(i)]; n != nil && !n.dead && n.machine.State().Cluster() == c {
			all = append(all, i)
		}
	}
	return all
}

// size is the largest number of voters that are members, as one of these nodes knows it.
func (w *land) size(of []int) int {
	most := 0
	for _, i := range of {
		s, n := w.nodes[address(i)].machine.State(), 0
		for _, v := range s.Config().Voters {
			if s.Member(v) != nil {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// requireOne fails when the nodes at these addresses are not all up in one cluster, which
// it returns.
func (w *land) requireOne(at ...int) gossip.ClusterID {
	w.t.Helper()
	var c gossip.ClusterID
	for k, i := range at {
		n := w.nodes[address(i)]
		require.True(w.t, n.sees(len(at), gossip.Up), "O1, O6: node %d of %v\n%s", i, at, w.describe())
		if k == 0 {
			c = n.machine.State().Cluster()
		}
		require.Equal(w.t, c, n.machine.State().Cluster(), "O1: two clusters")
		require.True(w.t, n.hosts(), "node %d hosts", i)
	}
	return c
}

// formed waits until the nodes at these addresses are one cluster.
func (w *land) formed(at ...int) gossip.ClusterID {
	w.t.Helper()
	w.until(30*time.Second, func() bool {
		return !slices.ContainsFunc(at, func(i int) bool { return !w.nodes[address(i)].sees(len(at), gossip.Up) })
	})
	w.live(10 * time.Second)
	return w.requireOne(at...)
}

// clusterAt returns the cluster of the node at an address.
func (w *land) clusterAt(i int) gossip.ClusterID {
	return w.nodes[address(i)].machine.State().Cluster()
}

// hasYielded tells whether a cluster has yielded.
func (w *land) hasYielded() bool { return len(w.yields) > 0 }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// A node comes back without its disk and with a list of itself alone, by a slip in one
// manifest: the cluster goes on, and the node is in it again.
func TestANodeWithAListOfItselfEndsNoCluster(t *testing.T) {
	for _, c := range []struct {
		nodes int
		pause time.Duration // From its end to its start.
	}{{3, time.Second}, {5, time.Second}, {5, 10 * time.Second}, {7, 30 * time.Second}, {20, 20 * time.Second}} {
		t.Run(fmt.Sprintf("%d nodes, down for %v", c.nodes, c.pause), func(t *testing.T) {
			w := newLand(t)
			w.lives(resident{list: []int{1, 2, 3}, forgets: true}, upTo(c.nodes)...)
			before := w.formed(upTo(c.nodes)...)
			w.kill(1)
			w.live(c.pause)
			w.lives(resident{list: []int{1}, forgets: true}, 1)
			w.live(2 * time.Minute)
			require.Equal(t, before, w.requireOne(upTo(c.nodes)...))
			require.Zero(t, w.twice, "two clusters hosted")
		})
	}
}

// The same at an address that nobody lists: nobody asks it, so that it is a cluster of
// its own, and the others do not care.
func TestANodeThatNobodyListsAndThatListsItselfIsAlone(t *testing.T) {
	w := newLand(t)
	w.lives(resident{list: []int{1, 2, 3}, forgets: true}, upTo(5)...)
	w.formed(upTo(5)...)
	w.kill(5)
	w.live(30 * time.Second)
	w.lives(resident{list: []int{5}, forgets: true}, 5)
	w.live(time.Minute)
	w.requireOne(1, 2, 3, 4)
	require.False(t, w.hasYielded())
}

// The address of a dead seed node goes to a node of another deployment of the same name,
// smaller or larger: neither ends, no node of one is in the other, and the rest goes on.
func TestAReusedAddressMixesNoDeployments(t *testing.T) {
	for _, c := range []struct{ nodes, others int }{{5, 2}, {7, 3}, {5, 5}, {3, 7}} {
		t.Run(fmt.Sprintf("%d nodes, %d others", c.nodes, c.others), func(t *testing.T) {
			w := newLand(t)
			w.lives(resident{list: []int{1, 2, 3}, forgets: true}, upTo(c.nodes)...)
			before := w.formed(upTo(c.nodes)...)
			var others []int
			for i := range c.others {
				others = append(others, 21+i)
			}
			foreign := resident{deployment: 1, list: []int{21, 22, 23}[:min(3, c.others)], forgets: true}
			w.lives(foreign, others...)
			w.live(20 * time.Second)
			w.kill(1)
			w.live(20 * time.Second)
			w.lives(foreign, 1)
			w.live(2 * time.Minute)
			require.Equal(t, before, w.requireOne(upTo(c.nodes)[1:]...))
			w.requireOne(append([]int{1}, others...)...)
			require.False(t, w.hasYielded())
		})
	}
}

// The answer of discovery holds a stale address, which a node of another deployment has now.
func TestAStaleContactPointEndsNoCluster(t *testing.T) {
	for _, c := range []struct{ nodes, others int }{{5, 2}, {3, 5}} {
		t.Run(fmt.Sprintf("%d nodes, %d others", c.nodes, c.others), func(t *testing.T) {
			w := newLand(t)
			w.lives(resident{list: upTo(c.nodes), found: true, forgets: true}, upTo(c.nodes)...)
			before := w.formed(upTo(c.nodes)...)
			others := []int{21, 22, 23, 24, 25}[:c.others]
			w.lives(resident{deployment: 1, list: others, found: true, forgets: true}, others...)
			w.live(time.Minute)
			for _, i := range upTo(c.nodes) {
				w.residents[i].list = append(w.residents[i].list, 21)
			}
			w.live(3 * time.Minute)
			require.Equal(t, before, w.requireOne(upTo(c.nodes)...))
			w.requireOne(others...)
			require.False(t, w.hasYielded())
		})
	}
}

// The majority of the seed list, without memory, is started again inside a cut: that is a
// second cluster until the heal, and then the one with more voters goes on.
func TestTheMajorityOfTheSeedListInsideACutEndsNoLargerCluster(t *testing.T) {
	for _, c := range []struct {
		nodes int
		side  []int
	}{{7, []int{1, 2, 3}}, {5, []int{1, 2}}} {
		t.Run(fmt.Sprintf("%d nodes, %v", c.nodes, c.side), func(t *testing.T) {
			w := newLand(t)
			w.lives(resident{list: []int{1, 2, 3}}, upTo(c.nodes)...)
			before := w.formed(upTo(c.nodes)...)
			in := func(a gossip.Address) bool {
				return slices.ContainsFunc(c.side, func(i int) bool { return address(i) == a })
			}
			w.cut = func(from, to gossip.Address) bool { return in(from) != in(to) }
			w.kill(c.side...)
			for _, i := range c.side {
				w.boot(i)
			}
			w.live(time.Minute)
			w.requireOne(c.side...)
			w.cut = nil
			w.live(time.Minute)
			require.Equal(t, before, w.requireOne(upTo(c.nodes)...), "the older one, with more voters, goes on")
		})
	}
}

// Nodes with a longer list are added to a cluster: they join it, and found nothing.
func TestScalingOutWithALongerListFoundsNothing(t *testing.T) {
	for _, found := range []bool{false, true} {
		t.Run(fmt.Sprintf("found %v", found), func(t *testing.T) {
			w := newLand(t)
			w.lives(resident{list: []int{1, 2, 3}, found: found}, 1, 2, 3)
			before := w.formed(1, 2, 3)
			for _, i := range []int{1, 2, 3} {
				if found {
					w.residents[i].list = upTo(9)
				}
			}
			w.lives(resident{list: upTo(9), found: found}, 4, 5, 6, 7, 8, 9)
			w.live(time.Minute)
			require.Equal(t, before, w.requireOne(upTo(9)...))
			require.Zero(t, w.twice)
			require.False(t, w.hasYielded())
		})
	}
}

// Two clusters meet while a member of the larger one has no standing of its own: its word
// ends nobody. It loses the standing because its links to the others are cut for three
// seconds while it reaches the other cluster.
func TestAMemberWithoutStandingEndsNoCluster(t *testing.T) {
	w := newLand(t)
	w.lives(resident{list: []int{1, 2, 3}}, upTo(7)...)
	before := w.formed(upTo(7)...)
	side := func(a gossip.Address) bool { return a == address(1) || a == address(2) || a == address(3) }
	w.cut = func(from, to gossip.Address) bool { return side(from) != side(to) }
	w.kill(1, 2, 3)
	for _, i := range []int{1, 2, 3} {
		w.boot(i)
	}
	w.live(time.Minute)
	w.requireOne(1, 2, 3)
	alone := address(7)
	for range 6 {
		w.cut = func(from, to gossip.Address) bool {
			return side(from) != side(to) && from != alone && to != alone || from == alone && !side(to) || to == alone && !side(from)
		}
		w.live(3500 * time.Millisecond)
		w.cut = func(from, to gossip.Address) bool { return side(from) != side(to) }
		w.live(1500 * time.Millisecond)
	}
	require.Equal(t, before, w.nodes[alone].machine.State().Cluster())
	w.cut = nil
	w.live(time.Minute)
	require.Equal(t, before, w.requireOne(upTo(7)...))
}

// A listed address belongs to a member of another deployment: its answer does not keep the
// other listed nodes from founding their cluster.
func TestAForeignMemberAtAListedAddressKeepsNobodyFromFounding(t *testing.T) {
	w := newLand(t)
	w.lives(resident{deployment: 1, list: []int{21, 22}}, 21, 22)
	w.formed(21, 22)
	w.lives(resident{deployment: 1, list: []int{21, 22}}, 3)
	w.formed(3, 21, 22)
	w.lives(resident{list: []int{1, 2, 3}}, 1, 2)
	w.live(40 * time.Second)
	w.requireOne(1, 2)
	w.requireOne(3, 21, 22)
	require.False(t, w.hasYielded())
}

// Of the first start of several listed nodes nothing is slower than the fence demands.
func TestTheFirstStartWaitsForTheFenceAlone(t *testing.T) {
	w := newLand(t)
	w.lives(resident{list: []int{1, 2, 3}}, 1, 2, 3)
	took := w.until(20*time.Second, func() bool { return w.nodes[address(1)].sees(3, gossip.Up) })
	require.Less(t, took, 7*time.Second)
}

// A cluster that yielded and has a disk does not found itself again when it is started,
// although it knows nobody else by its list.
func TestAClusterThatYieldedJoinsTheOneThatGoesOn(t *testing.T) {
	w := newLand(t)
	w.lives(resident{list: []int{1, 2, 3}}, upTo(5)...)
	before := w.formed(upTo(5)...)
	w.cut = func(from, to gossip.Address) bool { return (from == address(1)) != (to == address(1)) }
	w.kill(1)
	w.lives(resident{list: []int{1}}, 1)
	w.live(time.Minute)
	w.requireOne(1)
	w.cut = nil
	w.live(time.Minute)
	require.Equal(t, before, w.requireOne(upTo(5)...))
	require.Len(t, w.yields, 1)
	require.Nil(t, w.nodes[address(1)].stopping, "it has not ended again")
}

// weather is what happens to a land at random: nodes die, come back, with their memory or without, and
// with a list of themselves; a listed address goes to the other deployment; links are cut.
type weather struct {
	*land
	r       *rand.Rand
	all     []int
	listed  []int
	foreign int  // The address that the other deployment has taken, zero: none.
	slipped bool // One node has come back with a list of itself: two such lists have nothing in common.
	forgets bool
}

// strike lets one thing happen.
func (w *weather) strike() {
	i := w.all[w.r.IntN(len(w.all))]
	running := !w.off[i]
	switch what := w.r.IntN(10); {
	case what < 3:
		side := map[gossip.Address]bool{}
		for _, k := range w.all {
			side[address(k)] = w.r.IntN(3) == 0
		}
		w.cut = func(from, to gossip.Address) bool { return side[from] != side[to] }
	case what < 5:
		w.cut = nil
	case what == 5 && running && w.foreign == 0 && slices.Contains(w.listed, i):
		w.kill(i)
		w.foreign = i
		w.after(20*time.Second, func() { w.lives(resident{deployment: 1, list: []int{21, 22}, forgets: true}, i) })
	case !running || i == w.foreign:
	case what == 6 && w.forgets && !w.slipped && slices.Contains(w.listed, i):
		// Where nodes remember, a majority of memory that is lost to such a node waits for an operator.
		w.slipped = true
		w.kill(i)
		w.after(time.Duration(w.r.IntN(20))*time.Second, func() { w.lives(resident{list: []int{i}, forgets: true}, i) })
	default:
		disk := w.disks[address(i)]
		w.kill(i)
		w.disks[address(i)] = disk
		w.after(time.Duration(w.r.IntN(15))*time.Second, func() { w.lives(resident{list: w.listed, forgets: w.forgets}, i) })
	}
}

// Whatever becomes of nodes, lists, addresses and links, no cluster ends for a lesser one, no
// deployment ends or takes in a node of the other, and in the end each deployment is one
// cluster, unless it waits for a majority of voters of which one has lost its memory.
func TestNoWeatherEndsAClusterForALesserOne(t *testing.T) {
	for seed := range uint64(8 * simulationtest.Times) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := &weather{land: newLand(t), r: r, all: upTo(3 + r.IntN(5)), listed: []int{1, 2, 3}, forgets: seed%2 == 0}
			w.lives(resident{list: w.listed, forgets: w.forgets}, w.all...)
			w.formed(w.all...)
			w.lives(resident{deployment: 1, list: []int{21, 22}, forgets: true}, 21, 22)
			w.live(10 * time.Second)
			for range 20 {
				w.strike()
				w.live(time.Duration(r.IntN(15)) * time.Second)
			}
			w.cut = nil
			w.live(time.Minute)
			for _, i := range w.all { // The slips in the lists are mended.
				if i != w.foreign {
					w.residents[i].list = w.listed
				}
			}
			w.live(4 * time.Minute)
			ours := slices.DeleteFunc(slices.Clone(w.all), func(i int) bool { return i == w.foreign })
			if w.forgets || w.hostsAny(ours) {
				w.requireOne(ours...)
				return
			}
			require.NotZero(t, w.foreign, "only what the other deployment has taken is lost")
			for _, i := range ours {
				require.Contains(t, lastWaiting(w.nodes[address(i)]).Reason, address(w.foreign).String())
			}
		})
	}
}

func (w *land) hostsAny(of []int) bool {
	return slices.ContainsFunc(of, func(i int) bool { return w.nodes[address(i)].hosts() })
}
