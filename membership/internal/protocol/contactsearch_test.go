// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Nodes in a loop look contact points up in a registry that the test directs: first how they
// form and join a cluster, then lookups and contact points that fail, a decider in place of the
// built-in rule, and nodes that come back with their records at other addresses.

// registry answers the lookups of a loop, and the questions to deciders.
type registry struct {
	found   []discovery.Target
	err     error
	hangs   bool
	decides func(bootstrap.Observations) (bootstrap.Decision, error)

	lookups, questions int
}

// registered returns a loop whose nodes find the given nodes in a registry, and the registry.
func registered(t *testing.T, found ...int) (*loop, *registry) {
	t.Helper()
	l, r := newLoop(t), &registry{}
	for _, i := range found {
		r.found = append(r.found, targetOf(i))
	}
	l.calls = func(n *node, c machine.Call) {
		called := machine.Called{ID: c.ID}
		switch c.Port {
		case protocol.CallLookup:
			r.lookups++
			if r.hangs {
				return
			}
			called.Result, called.Err = discovery.Targets{List: r.found}, r.err
		case protocol.CallJoinDecider:
			r.questions++
			called.Result, called.Err = r.decides(c.Request.(bootstrap.Observations))
		}
		if called.Err != nil {
			called.Result = nil
		}
		l.after(l.latency, func() { n.step(called) })
	}
	return l, r
}

func targetOf(i int) discovery.Target {
	return discovery.Target{Host: address(i).Host, Port: address(i).Port}
}

// looks starts a node that looks contact points up.
func (l *loop) looks(i int, change ...func(*protocol.Bootstrap)) *node {
	b := protocol.Bootstrap{Config: bootstrap.Default(), Limit: 3 * time.Second}
	for _, f := range change {
		f(&b)
	}
	n := l.start(i, gossip.UID(i), func(_ *protocol.Config, d *protocol.Dependencies) { d.Bootstrap = &b })
	n.step(protocol.Discover{})
	return n
}

func asked(b *protocol.Bootstrap) { b.Asked = true }

// line returns the last sentence of a node about what it waits for.
func line(n *node) string {
	all := published[protocol.SearchProgress](n)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Line
}

func TestNodesThatFindEachOtherFormACluster(t *testing.T) {
	l, _ := registered(t, 9, 10, 11)
	for _, i := range []int{10, 11, 9} {
		l.looks(i)
	}
	l.run(bootstrap.Default().StableMargin)
	require.Zero(t, l.sent["AskVote"], "the margin has not passed")
	l.until(3*time.Second, func() bool { return l.allUp(3) })
	formed := 0
	for _, d := range l.nodes[address(9)].decisions {
		if strings.HasPrefix(d.Verdict, "formed cluster") {
			formed++
			require.Contains(t, d.Reason, "3 of 3 voters")
		}
	}
	require.Equal(t, 1, formed, "9 is the lowest address, and not the lowest text")
}

// A node that finds a cluster joins it at once. Which contact points a node has found is no
// setting that must be alike; the number of those that are required is one.
func TestAClusterIsJoinedWithoutAMargin(t *testing.T) {
	l, r := registered(t, 1, 2)
	l.looks(1)
	l.looks(2)
	l.until(10*time.Second, func() bool { return l.allUp(2) })
	r.found = append(r.found, targetOf(3))
	three := l.looks(3)
	l.until(2*time.Second, func() bool { return l.allUp(3) })
	require.Empty(t, published[protocol.SettingsDiffer](three))
	r.found = append(r.found, targetOf(4))
	four := l.looks(4, func(b *protocol.Bootstrap) { b.Config.RequiredContactPoints = 4 })
	l.until(2*time.Second, func() bool { return l.allUp(4) })
	require.Equal(t, []protocol.Difference{{
		Key: "membership.seed-nodes", Member: "looked up, required-contact-point-nr 2", Joiner: "looked up, required-contact-point-nr 4",
	}}, published[protocol.SettingsDiffer](four)[0].Differences)
}

func TestNobodyFormsBesideAMember(t *testing.T) {
	l, _ := registered(t, 1, 2, 3)
	few := func(b *protocol.Bootstrap) { b.Config.ContactAll = false }
	one := l.looks(1, few)
	l.looks(2, few)
	other := gossip.ClusterID{Born: 50, Nonce: 1}
	for i := range 30 {
		l.after(time.Duration(i)*time.Second, func() {
			one.step(machine.Received{From: gossip.NodeID{Address: address(3), UID: 3}, Message: protocol.InitJoinNack{
				Member: true, Claim: protocol.Claim{Record: protocol.Record{Data: 3}, Cluster: other, Evidence: protocol.ListMembers},
			}})
		})
	}
	l.run(5 * time.Second)
	require.Equal(t, "3 of 2 contact points, unchanged for 4 s of 5 s", line(one))
	for _, n := range l.nodes {
		n.dead = n != one // Only what node one does is looked at.
	}
	l.run(20 * time.Second)
	require.Zero(t, l.sent["AskVote"])
}

// A lookup that never returns is given up after its limit, and made again.
func TestLookupsThatHangAreGivenUp(t *testing.T) {
	l, r := registered(t, 1, 2)
	r.hangs = true
	one := l.looks(1)
	l.looks(2)
	l.run(time.Minute)
	require.Zero(t, l.sent["AskVote"])
	require.Equal(t, "0 of 2 contact points, unchanged for 0 s of 5 s; the lookup failed: no answer within 3s", line(one))
	require.Greater(t, r.lookups, 6)
	require.Less(t, r.lookups, 16, "with a growing pause")
	r.hangs = false
	l.until(30*time.Second, func() bool { return l.allUp(2) })
}

func TestAnAnswerThatComesTooLateIsNone(t *testing.T) {
	l, r := registered(t, 1, 2)
	r.hangs = true
	var late machine.CallID
	calls := l.calls
	l.calls = func(n *node, c machine.Call) {
		late = max(late, c.ID)
		calls(n, c)
	}
	one := l.looks(1)
	l.run(4 * time.Second)
	one.step(machine.Called{ID: late, Result: discovery.Targets{List: r.found}})
	require.Contains(t, line(one), "the lookup failed: no answer within 3s")
}

func TestAnswersOfDiscoveryAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		answer machine.Called
		says   string
	}{
		"an error":        {machine.Called{Err: errors.New("503")}, "the lookup failed: 503"},
		"something else":  {machine.Called{Result: 7}, "the lookup failed: the answer is no list of contact points: int"},
		"a bad target":    {machine.Called{Result: discovery.Targets{List: []discovery.Target{{Host: "A B"}}}}, "the lookup failed: discovery: bad contact point"},
		"nobody":          {machine.Called{Result: discovery.Targets{}}, "no contact point was found"},
		"another service": {machine.Called{Result: discovery.Targets{List: []discovery.Target{targetOf(40), targetOf(41)}}}, "this node, 10.0.0.1:7946, is not among the contact points"},
		"itself alone":    {machine.Called{Result: discovery.Targets{List: []discovery.Target{targetOf(1)}}}, "1 of the 2 contact points that are required were found"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			l.calls = func(n *node, call machine.Call) {
				c.answer.ID = call.ID
				l.after(l.latency, func() { n.step(c.answer) })
			}
			one := l.looks(1)
			l.run(30 * time.Second)
			require.Contains(t, line(one), c.says)
			require.Zero(t, l.sent["AskVote"])
			require.Nil(t, one.stopping)
		})
	}
}

// Of ten thousand contact points, those of another service, few are dialled at a time, and the
// line stays short.
func TestTooManyContactPointsAreBounded(t *testing.T) {
	l, r := registered(t, 1)
	for i := range 2_500 {
		r.found = append(r.found, discovery.Target{Host: fmt.Sprintf("10.1.%d.%d", i>>8, i&255), Port: 80})
	}
	one := l.looks(1)
	l.run(8 * time.Second)
	require.Contains(t, line(one), "more than 1000 contact points were found")
	require.Zero(t, l.sent["AskVote"])
	require.Less(t, l.sent["InitJoin"], 10*bootstrap.MaxPoints)
}

// A contact point that stays silent is dialled, which shows the reason, or the address by which
// the node there calls itself.
func TestSilentContactPointsAreDialled(t *testing.T) {
	l, r := registered(t, 1, 2, 7)
	one := l.looks(1)
	l.looks(2)
	l.run(4 * time.Second)
	require.Equal(t, "2 of 3 contact points, unchanged for 3 s of 5 s; 10.0.0.7:7946 does not answer: connection refused", line(one))
	// Node 2 can now be dialled at that address too, and counts under its own address only.
	l.nodes[address(7)] = &node{loop: l, id: l.nodes[address(2)].id, frozen: true}
	l.run(20 * time.Second)
	require.NotZero(t, l.sent["AskVote"], "a node counts once")
	delete(l.nodes, address(7))
	l.until(10*time.Second, func() bool { return l.allUp(2) })
	require.Len(t, r.found, 3)
}

// A node that remembers its cluster waits neither for discovery nor for a margin.
func TestWhoRemembersIsUpAtOnce(t *testing.T) {
	l, r := registered(t, 1, 2, 3)
	for i := 1; i <= 3; i++ {
		l.looks(i)
	}
	l.until(10*time.Second, func() bool { return l.allUp(3) })
	l.run(time.Second)
	r.err = errors.New("503")
	record := protocol.Record{
		Data: 30, Promise: 1, Cluster: l.nodes[address(1)].machine.State().Cluster(),
		Stamp:  protocol.Stamp{Born: l.nodes[address(1)].machine.State().Cluster().Born, Gen: 1, By: 1},
		Voters: []protocol.Voter{{Node: l.nodes[address(1)].id, Data: 1}, {Node: l.nodes[address(2)].id, Data: 2}},
	}
	l.nodes[address(3)].dead = true
	b := protocol.Bootstrap{Config: bootstrap.Default(), Limit: 3 * time.Second}
	n := l.start(3, 33, func(_ *protocol.Config, d *protocol.Dependencies) { d.Bootstrap, d.Record = &b, record })
	n.step(protocol.Discover{})
	l.until(2*time.Second, func() bool { return n.sees(3, gossip.Up) })
}

func TestAnotherDecides(t *testing.T) {
	l, r := registered(t, 1, 2)
	r.decides = func(bootstrap.Observations) (bootstrap.Decision, error) {
		return bootstrap.Decision{}, context.DeadlineExceeded
	}
	one, two := l.looks(1, asked), l.looks(2, asked)
	l.run(30 * time.Second)
	require.Zero(t, l.sent["AskVote"], "while who decides does not, nothing is formed")
	require.Greater(t, r.questions, 5, "and it is asked again")
	// The decider chooses the node with the higher address.
	r.decides = func(o bootstrap.Observations) (bootstrap.Decision, error) {
		d := bootstrap.LowestAddress{}.DecideNow(o)
		if d.Action != bootstrap.Join {
			d = bootstrap.Decision{Reason: "not I"}
			if bootstrap.Compare(o.Self, targetOf(2)) == 0 {
				d.Action = bootstrap.Form
			}
		}
		return d, nil
	}
	l.until(30*time.Second, func() bool { return l.allUp(2) })
	last := func(n *node, topic string) (verdict string) {
		for _, d := range n.decisions {
			if d.Topic == topic {
				verdict = d.Verdict
			}
		}
		return verdict
	}
	require.Equal(t, "form", last(two, "bootstrap"))
	require.Equal(t, "joined", last(one, "join"))
	// The decider does not let a third node join.
	r.decides = func(bootstrap.Observations) (bootstrap.Decision, error) {
		return bootstrap.Decision{Reason: "it is full"}, nil
	}
	r.found = append(r.found, targetOf(3))
	three := l.looks(3, asked)
	l.run(30 * time.Second)
	require.Empty(t, three.machine.State().Members())
	r.decides = func(o bootstrap.Observations) (bootstrap.Decision, error) {
		return bootstrap.LowestAddress{}.DecideNow(o), nil
	}
	l.until(10*time.Second, func() bool { return l.allUp(3) })
}

// A decider sets no pace: whatever it answers, it is asked once in a join-interval at most, and contact points are
// asked as often as without it.
func TestADeciderIsAskedOnceInAJoinInterval(t *testing.T) {
	form := bootstrap.Decision{Action: bootstrap.Form, Reason: "always"}
	for name, decides := range map[string]func(n int) bootstrap.Decision{
		"always form": func(int) bootstrap.Decision { return form },
		"form, or not": func(n int) bootstrap.Decision {
			if n%2 == 0 {
				return bootstrap.Decision{Reason: "or not"}
			}
			return form
		},
		"nobody, or one and another": func(n int) bootstrap.Decision {
			return [...]bootstrap.Decision{form, {Action: bootstrap.Join}, {Reason: "or not"}, {Action: 7}}[n%4]
		},
	} {
		l, r := registered(t, 1, 2)
		l.drop = func(_, _ gossip.NodeID, message any) bool { // Nobody gets a vote.
			_, vote := message.(protocol.AskVote)
			return vote
		}
		r.decides = func(bootstrap.Observations) (bootstrap.Decision, error) { return decides(r.questions), nil }
		l.looks(1, asked)
		l.looks(2, asked)
		l.run(time.Minute)
		require.NotZero(t, l.sent["AskVote"], name)
		require.LessOrEqual(t, r.questions, 2*61, name)
		require.LessOrEqual(t, l.sent["InitJoin"], 6*61, name)
	}
}

func TestDiscoverNeedsDiscovery(t *testing.T) {
	l := newLoop(t)
	n := l.start(1, 1)
	n.step(protocol.Discover{})
	refused := published[protocol.Refused](n)
	require.Len(t, refused, 1)
	require.Equal(t, "nothing was given that finds contact points", refused[0].Reason)
}

// keeps makes the nodes of a loop remember, and puts their records into the map.
func keeps(l *loop, records map[gossip.Address]protocol.Record) {
	calls := l.calls
	l.calls = func(n *node, c machine.Call) {
		if c.Port != protocol.CallRemember {
			calls(n, c)
			return
		}
		l.after(l.latency, func() {
			records[n.id.Address] = c.Request.(protocol.Record)
			n.step(machine.Called{ID: c.ID})
		})
	}
}

// looksWith starts a node that looks contact points up and has the record of an earlier node.
func (l *loop) looksWith(i int, uid gossip.UID, record protocol.Record) {
	b := protocol.Bootstrap{Config: bootstrap.Default(), Limit: 3 * time.Second}
	n := l.start(i, uid, func(_ *protocol.Config, d *protocol.Dependencies) {
		d.Bootstrap, d.Remember, d.Record = &b, true, record
	})
	n.step(protocol.Discover{})
}

// Nodes come back with their disks at other addresses, which discovery finds. First one does: it
// joins as a new member, and the member that it was goes. Then all do: they vote by their
// disks, and form the cluster that follows the old one.
func TestNodesComeBackAtOtherAddresses(t *testing.T) {
	l, r := registered(t, 1, 2, 3)
	records := map[gossip.Address]protocol.Record{}
	keeps(l, records)
	for i := 1; i <= 3; i++ {
		l.looksWith(i, gossip.UID(i), protocol.Record{})
	}
	l.until(10*time.Second, func() bool { return l.allUp(3) })
	l.run(3 * time.Second)
	born := l.nodes[address(1)].machine.State().Cluster().Born

	l.nodes[address(3)].dead = true
	r.found = []discovery.Target{targetOf(1), targetOf(2), targetOf(13)}
	l.looksWith(13, 33, records[address(3)])
	l.until(15*time.Second, func() bool { return l.allUp(3) })
	require.Equal(t, born, l.nodes[address(13)].machine.State().Cluster().Born, "it is the same cluster")
	l.run(3 * time.Second)

	r.found = nil
	for i, was := range []int{1, 2, 13} {
		l.nodes[address(was)].dead = true
		r.found = append(r.found, targetOf(21+i))
	}
	for i, was := range []int{1, 2, 13} {
		l.looksWith(21+i, gossip.UID(100+i), records[address(was)])
	}
	l.until(20*time.Second, func() bool { return l.allUp(3) })
	require.Greater(t, l.nodes[address(21)].machine.State().Cluster().Born, born)
}

// A node whose address changes while it runs cannot be reached at the address that it has told
// the others: it is downed, ends, and comes back as another member.
func TestANodeWhoseAddressChangesEnds(t *testing.T) {
	l, r := registered(t, 1, 2, 3)
	records := map[gossip.Address]protocol.Record{}
	keeps(l, records)
	for i := 1; i <= 3; i++ {
		l.looksWith(i, gossip.UID(i), protocol.Record{})
	}
	l.until(10*time.Second, func() bool { return l.allUp(3) })
	l.run(3 * time.Second)
	l.cut = func(_, to gossip.Address) bool { return to == address(3) }
	r.found = []discovery.Target{targetOf(1), targetOf(2), targetOf(13)}
	three := l.nodes[address(3)]
	l.until(40*time.Second, func() bool { return three.stopping != nil })
	l.looksWith(13, 33, records[address(3)])
	l.until(20*time.Second, func() bool { return l.allUp(3) })
}

// Discovery finds addresses, and the nodes there call themselves by names, which are learnt by
// dialling.
func TestNodesThatAreFoundByAddressMayHaveNames(t *testing.T) {
	l, r := registered(t)
	var named []*node
	for i := 1; i <= 3; i++ {
		b := protocol.Bootstrap{Config: bootstrap.Default(), Limit: 3 * time.Second}
		n := l.start(i, gossip.UID(i), func(_ *protocol.Config, d *protocol.Dependencies) { d.Bootstrap = &b })
		named = append(named, n)
		// The node can be reached at another address than its own, too.
		found := gossip.Address{Host: fmt.Sprintf("192.168.0.%d", 10+i), Port: 7946}
		l.nodes[found] = n
		r.found = append(r.found, discovery.Target{Host: found.Host, Port: found.Port})
	}
	for _, n := range named {
		n.step(protocol.Discover{})
	}
	l.until(20*time.Second, func() bool { return l.allUp(3) })
}

// A node that finds only itself forms a cluster where one contact point is required.
func TestOneThatFindsItselfAlone(t *testing.T) {
	l, _ := registered(t, 1)
	one := l.looks(1, func(b *protocol.Bootstrap) { b.Config.RequiredContactPoints = 1 })
	l.run(bootstrap.Default().StableMargin)
	require.Empty(t, one.machine.State().Members())
	l.until(2*time.Second, func() bool { return l.allUp(1) })
}

// A node that may not form a cluster votes for others, and joins them.
func TestWhoMayFormNoClusterVotes(t *testing.T) {
	l, _ := registered(t, 1, 2)
	one := l.looks(1, func(b *protocol.Bootstrap) { b.Config.FormNewCluster = false })
	l.looks(2)
	l.run(4 * time.Second)
	require.Contains(t, line(one), "this node forms no cluster: form-new-cluster is off")
	l.until(30*time.Second, func() bool { return l.allUp(2) })
}
