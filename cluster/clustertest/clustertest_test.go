// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Each verb of the kit does to a cluster what it says, and what is not possible ends the test
// with a line that says why. First the kind of these tests, and the test that is ended; then
// the verbs, what a wait in vain says, and faults of a test. The entity alone is in
// entity_test.go.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// number is the type of the messages to counters, and of their replies.
type number = *wrapperspb.Int64Value

// counter is an entity that adds up the numbers that it is sent.
type counter struct{ sum int64 }

// Receive adds a number, and answers with the sum.
func (e *counter) Receive(c *sharding.Context, add number) error {
	e.sum += add.GetValue()
	return c.Reply(wrapperspb.Int64(e.sum))
}

// counters is the kind of the counters, with a few shards.
func counters() sharding.Kind[number] {
	return sharding.Kind[number]{
		Name: "counter", Shards: 12, New: func(*sharding.Context) sharding.Entity[number] { return new(counter) },
	}
}

// add asks a counter to add n, and returns the sum.
func add(t *testing.T, from *sharding.Region[number], id string, n int64) int64 {
	t.Helper()
	sum, err := sharding.Ask[number](t.Context(), from, id, wrapperspb.Int64(n))
	require.NoError(t, err)
	return sum.GetValue()
}

// awaitFenced waits until a node may host nothing.
func awaitFenced(c *clustertest.Cluster, n *clustertest.Node) {
	c.Await("node "+n.Address()+" has lost its standing", func() error {
		if n.Membership().Standing().Held() {
			return errors.New("it has it still")
		}
		return nil
	})
}

// awaitEnd waits until a node has ended.
func awaitEnd(c *clustertest.Cluster, n *clustertest.Node) {
	c.Await("node "+n.Address()+" has ended", func() error {
		if n.Running() {
			return errors.New("it runs")
		}
		return nil
	})
}

// ended is a test that notes why it is ended, in the place of being ended.
type ended struct {
	testing.TB

	why string
}

func (e *ended) Fatal(args ...any) { e.Fatalf("%s", fmt.Sprint(args...)) }

func (e *ended) Fatalf(format string, args ...any) {
	e.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (e *ended) Errorf(format string, args ...any) { e.why = fmt.Sprintf(format, args...) }

// verdict returns why f ends the test, "" if it does not.
func (e *ended) verdict(f func()) string {
	e.why = ""
	done := make(chan struct{})
	// Owner: verdict, which waits. Ends with f.
	go func() {
		defer close(done)
		f()
	}()
	<-done
	return e.why
}

// judged runs a test in a bubble, on a cluster whose test notes why it is ended.
func judged(t *testing.T, n int, f func(t *testing.T, c *clustertest.Cluster, e *ended)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &ended{TB: t}
		f(t, clustertest.Start(e, n), e)
	})
}

func TestAKilledNodeLosesItsEntitiesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		kind := clustertest.StartKind(c, counters())
		home := kind.Home("a")
		other := c.Except(home)[0]
		require.EqualValues(t, 2, add(t, kind.On(other), "a", 2))
		before := time.Now()
		c.Kill(home)
		require.Zero(t, time.Since(before), "a kill takes no time")
		require.False(t, home.Running())
		require.EqualValues(t, 1, add(t, kind.On(other), "a", 1), "the memory of the entity is gone")
		require.NotSame(t, home, kind.Home("a"))
		c.AwaitConverged()
		require.Greater(t, time.Since(before), 2*time.Second, "nobody was told")
		require.Less(t, time.Since(before), 20*time.Second)
	})
}

func TestALeavingNodeHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		kind := clustertest.StartKind(c, counters())
		home := kind.Home("a")
		before := time.Now()
		c.Leave(home)
		c.AwaitConverged()
		require.NotSame(t, home, kind.Home("a"))
		require.EqualValues(t, 2, add(t, kind.Any(), "a", 2))
		require.Less(t, time.Since(before), 5*time.Second, "nobody waits for a failure")
		require.NoError(t, home.Err())
	})
}

// The smaller side of a cut fences itself, before the other takes over, and ends. covers I3.
func TestTheSmallerSideOfACutFencesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 5)
		kind := clustertest.StartKind(c, counters())
		home := kind.Home("a")
		c.Isolate(home)
		awaitFenced(c, home)
		c.AwaitConverged(c.Except(home)...)
		require.NotSame(t, home, kind.Home("a"))
		require.EqualValues(t, 2, add(t, kind.On(c.Except(home)[0]), "a", 2))
		c.Heal()
		awaitEnd(c, home)
		require.ErrorIs(t, home.Err(), membership.ErrDown)
	})
}

// A cluster that was cut for a moment goes on whole.
func TestACutThatHealsCostsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 4)
		c.Cut(c.Nodes()[:2], c.Nodes()[2:])
		c.Advance(time.Second)
		c.Heal()
		c.Advance(time.Minute) // What comes of a cut that stays has come by then.
		c.AwaitConverged()
		require.Len(t, c.Nodes(), 4)
	})
}

// Messages take their time, there and back.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 2)
		kind := clustertest.StartKind(c, counters())
		other := c.Except(kind.Home("a"))[0]
		c.SetLatency(20*time.Millisecond, 30*time.Millisecond)
		before := time.Now()
		require.EqualValues(t, 1, add(t, kind.On(other), "a", 1))
		require.GreaterOrEqual(t, time.Since(before), 40*time.Millisecond)
		require.Less(t, time.Since(before), time.Second)
	})
}

// Messages arrive in the direction that is not cut, and none in the other one. Those who do not
// hear a node go on without it.
func TestACutOfOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		mute := c.Node(2)
		k := sharding.Kind[number]{Name: "heard", Shards: 12}
		heard := clustertest.Record(c, k, nil)
		there, back := "", ""
		for i := 0; there == "" || back == ""; i++ {
			if id := fmt.Sprint("id-", i); heard.Home(id) == mute {
				there = id
			} else {
				back = id
			}
		}
		c.CutOneWay([]*clustertest.Node{mute}, c.Except(mute))
		require.NoError(t, heard.On(c.Node(0)).Tell(t.Context(), there, wrapperspb.Int64(1)))
		require.NoError(t, heard.On(mute).Tell(t.Context(), back, wrapperspb.Int64(2)))
		c.Advance(time.Second)
		require.Len(t, heard.Messages(), 1)
		require.Equal(t, there, heard.Messages()[0].ID)
		c.Await("the others go on", func() error { return clustertest.Converged(c.Except(mute)...) })
		awaitEnd(c, mute)
		require.ErrorIs(t, mute.Err(), membership.ErrDown)
	})
}

// Nodes are added, with roles and a configuration, also at the address of a node that is gone.
func TestNodesAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig("sharding: {number-of-shards: 7}"), clustertest.WithRoles("front"))
		var set []string
		c.OnEach(func(n *clustertest.Node) error {
			set = append(set, n.Address())
			return nil
		})
		roles := clustertest.StartKind(c, sharding.Kind[number]{
			Name: "counter", Role: "back", New: func(*sharding.Context) sharding.Entity[number] { return new(counter) },
		})
		back := c.Add(clustertest.WithRoles("back"), clustertest.WithConfig("node: {app-version: 2.0.0}"))
		c.AwaitConverged()
		require.Same(t, back, roles.Home("a"))
		require.Equal(t, "2.0.0", back.Membership().View().Member().AppVersion)
		require.Equal(t, 7, back.Sharding().Kinds()[0].Shards)
		require.Equal(t, []string{"10.0.0.1:7946", "10.0.0.2:7946", "10.0.0.3:7946", "10.0.0.4:7946"}, set)
		first := c.Node(0)
		c.Kill(first)
		again := c.Add(clustertest.WithAddress(first.Address()))
		c.AwaitConverged()
		require.Len(t, c.Nodes(), 4)
		require.Equal(t, first.Address(), again.Address())
		require.NotEqual(t, first.Self(), again.Self())
	})
}

// The files, and other options, of a program are taken as they are.
func TestTheFileOfAProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte("cluster: {name: bank}\nnode: {zone: eu}\nsharding: {number-of-shards: 5}\n"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1, clustertest.WithOptions(cluster.WithFile(path)), clustertest.WithConfig("sharding: {number-of-shards: 6}"))
		clustertest.StartKind(c, sharding.Kind[number]{Name: "counter", New: counters().New})
		require.Equal(t, 6, c.Node(0).Sharding().Kinds()[0].Shards)
		require.Equal(t, "eu", c.Node(0).Membership().View().Member().Zone)
	})
}

func TestTwentyNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 20)
		kind := clustertest.StartKind(c, counters())
		c.Kill(c.Nodes()[3:6]...)
		c.AwaitConverged()
		for i := range 12 {
			require.EqualValues(t, 1, add(t, kind.Any(), fmt.Sprint("id-", i), 1))
		}
	})
}

// A wait in vain says what was missing, what each node is at, and what is cut.
func TestAWaitInVainSaysWhy(t *testing.T) {
	judged(t, 3, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		kind := clustertest.StartKind(c, counters())
		c.Kill(c.Node(2))
		c.AwaitConverged()
		c.Isolate(c.Node(1))
		awaitFenced(c, c.Node(1))
		c.SetLimit(time.Second)
		why := e.verdict(func() { c.AwaitConverged() })
		require.Contains(t, why, "not within 1s: 2 nodes are a whole cluster")
		require.Contains(t, why, "cut: 10.0.0.1:7946 -> 10.0.0.2:7946, 10.0.0.2:7946 -> 10.0.0.1:7946")
		require.Contains(t, why, "\n  node 10.0.0.2:7946: ")
		require.Contains(t, why, "too few voters have answered")
		require.Regexp(t, `node 10.0.0.3:7946: killed after \S+s`, why)
		missing := errors.New("the sun does not shine")
		err := c.Wait("the sun shines", func() error { return missing })
		var waited *clustertest.WaitError
		require.ErrorAs(t, err, &waited)
		require.ErrorIs(t, err, missing)
		require.Equal(t, time.Second, waited.After)
		c.Kill(c.Node(0), c.Node(1))
		require.Contains(t, e.verdict(func() { kind.Any() }), "no node of the cluster runs any more")
		require.Contains(t, e.verdict(func() { c.AwaitConverged() }), "no node of the cluster runs any more")
	})
}

// An entity without a home is explained.
func TestAHomeThatDoesNotComeIsExplained(t *testing.T) {
	judged(t, 2, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		k := counters()
		k.Role = "back"
		kind := clustertest.StartKind(c, k)
		c.SetLimit(10 * time.Second)
		why := e.verdict(func() { kind.Home("a") })
		require.Contains(t, why, `not within 10s: entity "a" of kind "counter" has a home: "a": shard `)
		require.Contains(t, why, "home     none")
	})
}

func TestFaultsOfATestAreToldInALine(t *testing.T) {
	judged(t, 3, func(t *testing.T, c *clustertest.Cluster, e *ended) {
		other := clustertest.Start(t, 1)
		a, b := c.Node(0), c.Node(1)
		kind := clustertest.StartKind(c, counters())
		c.Kill(b)
		one, two := []*clustertest.Node{a}, c.Nodes()[1:]
		for want, fault := range map[string]func(){
			"kill: node 10.0.0.2:7946: killed after":                      func() { c.Kill(b) },
			"leave: node 10.0.0.2:7946: killed after":                     func() { c.Leave(b) },
			"await: node 10.0.0.2:7946: killed after":                     func() { c.AwaitConverged(a, b) },
			"cut: node 10.0.0.1:7946 is of another cluster":               func() { c.Cut(one, other.Nodes()) },
			"cut: the node is nil":                                        func() { c.Cut(one, []*clustertest.Node{nil}) },
			"cut: node 10.0.0.1:7946 is in both groups":                   func() { c.Cut(one, one) },
			"cut: a group has no node":                                    func() { c.Cut(one, nil) },
			"node 10.0.0.1:7946: another node of this address runs":       func() { c.Add(clustertest.WithAddress(a.Address())) },
			"another node of this address runs: kill it":                  func() { c.Add(clustertest.WithConfig("node: {address: 10.0.0.1:7946}")) },
			`config-1.yaml:1: node.zonne: `:                               func() { c.Add(clustertest.WithConfig("node: {zonne: eu}")) },
			`management.address or management.health.address is set, and`: func() { c.Add(clustertest.WithConfig("management: {address: 127.0.0.1:0}")) },
			`node 10.0.0.1:7946: sharding: kind "counter" runs on this node already`: func() {
				clustertest.StartKind(c, counters())
			},
			"there is no node 3: the cluster has the nodes 0 to 2":                func() { c.Node(3) },
			`kind "counter" does not run on that node: it is none of the cluster`: func() { kind.On(other.Node(0)) },
			`kind "counter": a recorder takes the place of New: set none`:         func() { clustertest.Record(c, counters(), nil) },
			"a cluster of -1 nodes: start 0 at least":                             func() { clustertest.Start(e, -1) },
		} {
			why := e.verdict(fault)
			require.Contains(t, why, "clustertest: ")
			require.Contains(t, why, want)
		}
		c.AwaitConverged(append(one, two...)...)
	})
}

func TestAClusterOutsideOfABubbleIsRefused(t *testing.T) {
	e := &ended{TB: t}
	require.Contains(t, e.verdict(func() { clustertest.Start(e, 1) }), "call Start inside of synctest.Test")
}

// A node whose entity never returns is told of at the end of the test.
func TestAnEntityThatDoesNotReturnIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, hold := &ended{TB: t}, make(chan struct{})
		defer close(hold)
		over := make(chan func(), 10)
		ends := &early{ended: e, over: over}
		c := clustertest.Start(ends, 1)
		stuck := clustertest.NewEntity(c, sharding.Kind[number]{Name: "stuck", New: func(*sharding.Context) sharding.Entity[number] {
			return blocked{hold}
		}}, "a")
		stuck.Tell(wrapperspb.Int64(1))
		(<-over)()
		require.Contains(t, e.why, "node 10.0.0.1:7946 does not end: ")
	})
}

// early is a test whose end comes when it is asked for.
type early struct {
	*ended

	over chan func()
}

func (e *early) Cleanup(f func()) { e.over <- f }

// blocked is an entity that returns when it is let go.
type blocked struct{ hold chan struct{} }

// Receive waits.
func (b blocked) Receive(*sharding.Context, number) error {
	<-b.hold
	return nil
}
