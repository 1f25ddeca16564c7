// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// supervised is a cluster of which each node that ends is started again a second
// later, where it stood, as systemd or Kubernetes would.
type supervised struct {
	*loop
	incarnation map[int]gossip.UID
	ended       map[gossip.Address]bool
	up          map[int]map[gossip.UID]bool // The incarnations that were up.
	change      []func(*protocol.Config, *protocol.Dependencies)
}

const restartAfter = time.Second

func supervise(l *loop, n int, change ...func(*protocol.Config, *protocol.Dependencies)) *supervised {
	s := &supervised{loop: l, incarnation: map[int]gossip.UID{}, ended: map[gossip.Address]bool{}, up: map[int]map[gossip.UID]bool{}, change: change}
	l.cluster(n, change...)
	for i := 1; i <= n; i++ {
		s.incarnation[i], s.up[i] = gossip.UID(i), map[gossip.UID]bool{}
	}
	l.after(0, s.look)
	return s
}

func (s *supervised) look() {
	for i := 1; i <= len(s.incarnation); i++ {
		node := s.nodes[address(i)]
		if me := node.machine.State().Member(node.id); me != nil && me.Status == gossip.Up {
			s.up[i][node.id.UID] = true
		}
		if node.stopping == nil || s.ended[address(i)] {
			continue
		}
		s.ended[address(i)] = true
		s.after(restartAfter, func() {
			s.incarnation[i] += 100
			var others []gossip.Address
			for o := 1; o <= len(s.incarnation); o++ {
				if o != i {
					others = append(others, address(o))
				}
			}
			// The address first asked is nobody's, so that none forms a cluster alone.
			fresh := s.start(i, s.incarnation[i], s.change...)
			s.ended[address(i)] = false
			fresh.step(protocol.Join{Seeds: append([]gossip.Address{address(40)}, others...)})
		})
	}
	s.after(100*time.Millisecond, s.look)
}

// ups returns how often each node was up: how many of its incarnations were.
func (s *supervised) ups() []int {
	ups := make([]int, len(s.incarnation))
	for i := range ups {
		ups[i] = len(s.up[i+1])
	}
	return ups
}

// starts returns how often nodes were started anew.
func (s *supervised) starts() int {
	count := 0
	for _, uid := range s.incarnation {
		count += int(uid / 100)
	}
	return count
}

// hosting returns the numbers of the nodes that host.
func (s *supervised) hosting() []int {
	var nodes []int
	for i := 1; i <= len(s.incarnation); i++ {
		if s.nodes[address(i)].hosts() {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// covers F11, F12, I13: a link stays broken, with supervisors that start nodes again that
// end. No node alternates for ever: after the time in which the cluster has decided, no
// node becomes up and is downed, and some nodes always host.
func TestNobodyAlternatesWhileALinkStaysBroken(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		cut  func(from, to gossip.Address) bool
		left int // Nodes that host in the end, at least.
	}{
		{"cut-pair", 5, brokenBetween(true, [2]int{2, 5}), 4},
		{"cut-pair with the first", 5, brokenBetween(true, [2]int{1, 3}), 4},
		{"oneway-pair", 5, brokenBetween(false, [2]int{2, 5}), 4},
		{"oneway-pair back", 5, brokenBetween(false, [2]int{5, 2}), 4},
		{"cut-pair of three", 3, brokenBetween(true, [2]int{1, 2}), 2},
		{"two pairs", 5, brokenBetween(true, [2]int{1, 2}, [2]int{3, 4}), 3},
		{"bridge", 5, brokenBetween(true, [2]int{1, 4}, [2]int{1, 5}, [2]int{2, 4}, [2]int{2, 5}), 3},
		{"cut-ring", 5, brokenBetween(true, [2]int{1, 3}, [2]int{2, 4}, [2]int{3, 5}, [2]int{4, 1}, [2]int{5, 2}), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := supervise(newLoop(t), c.n)
			s.cut = c.cut
			s.run(time.Minute)
			ups, starts := s.ups(), s.starts()
			s.run(3 * time.Minute)
			t.Log("up after a minute", ups, "after four", s.ups(), "starts", starts, s.starts(), "hosting", s.hosting())
			require.Equal(t, ups, s.ups(), "how often each node was up\n%s", s.describe())
			require.Equal(t, starts, s.starts(), "how often nodes were started again\n%s", s.describe())
			require.GreaterOrEqual(t, len(s.hosting()), c.left, fmt.Sprint(s.hosting()))
		})
	}
}

// A newcomer that a voter does not reach stays joining, and says why, as does the
// leader. It holds up nobody else, and is up when the link works again.
func TestANewcomerThatAVoterDoesNotReachWaits(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	l.cut = brokenBetween(true, [2]int{3, 5})
	fifth := l.join(5)
	l.run(40 * time.Second)
	sixth := l.join(6)
	l.until(2*time.Second, func() bool { return statusAt(nodes[2], sixth) == gossip.Up })
	require.Equal(t, gossip.Joining, statusAt(nodes[0], fifth))
	for _, n := range []*node{nodes[0], fifth} {
		require.Equal(t, 1, decided(n, fifth.id.String(), "joining"), "said once\n%s", l.describe())
		require.Equal(t, "it stays joining: it cannot be reached by "+nodes[2].id.String(), lastReason(n, "joining"))
	}
	for _, n := range nodes {
		require.True(t, n.hosts())
		require.Empty(t, published[component.Fenced](n), "nobody was removed")
	}
	l.cut = nil
	l.until(5*time.Second, func() bool { return statusAt(nodes[2], fifth) == gossip.Up })
	l.run(time.Minute)
	require.True(t, fifth.sees(6, gossip.Up), l.describe())
}

// A newcomer that waits before the gate is not kept when it dies, whether some voter
// reached it or, since the news took another way, none did. So is one that is cut off
// from all: it ends.
func TestANewcomerThatDiesWhileItWaitsIsRemoved(t *testing.T) {
	for _, c := range []struct {
		name  string
		links [][2]int
		die   func(l *loop, n *node)
	}{
		{"reached by one", [][2]int{{3, 5}}, func(_ *loop, n *node) { n.dead = true }},
		{"reached by newcomers alone", [][2]int{{1, 5}, {2, 5}, {3, 5}, {3, 4}}, func(_ *loop, n *node) { n.dead = true }},
		{"reached by one, and cut off", [][2]int{{3, 5}}, func(l *loop, n *node) {
			l.cut = func(from, to gossip.Address) bool { return (from == n.id.Address) != (to == n.id.Address) }
		}},
		{"reached by newcomers alone, and cut off", [][2]int{{1, 5}, {2, 5}, {3, 5}, {3, 4}}, func(l *loop, n *node) {
			l.cut = func(from, to gossip.Address) bool { return (from == n.id.Address) != (to == n.id.Address) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoop(t)
			nodes := l.cluster(3)
			l.cut = brokenBetween(true, c.links...)
			fourth := l.join(4)
			l.run(3 * time.Second)
			fifth := l.start(5, 5)
			fifth.step(protocol.Join{Seeds: []gossip.Address{address(40), fourth.id.Address, nodes[0].id.Address}})
			l.run(50 * time.Second)
			require.Equal(t, gossip.Joining, statusAt(nodes[0], fifth), l.describe())
			require.False(t, fifth.dead)
			c.die(l, fifth)
			l.run(40 * time.Second)
			require.True(t, fifth.dead, l.describe())
			require.Equal(t, gossip.StatusNone, statusAt(nodes[0], fifth), l.describe())
			require.True(t, nodes[0].hosts() && nodes[1].hosts() && nodes[2].hosts())
		})
	}
}

// Nobody becomes up before each voter of that moment has had an answer to a heartbeat
// from it. The first heartbeats on many links are lost, and a third of what is said to
// the leader.
func TestNobodyIsUpBeforeEveryVoterHasReachedIt(t *testing.T) {
	for _, n := range []int{3, 7, 10} {
		l := newLoop(t)
		answered := map[[2]gossip.NodeID]bool{}
		l.drop = func(from, to gossip.NodeID, message any) bool {
			if _, ok := message.(protocol.HeartbeatReply); ok {
				l.after(l.latency, func() { answered[[2]gossip.NodeID{to, from}] = true })
			}
			if _, ok := message.(protocol.Heartbeat); ok {
				return l.now < time.Duration((7*from.UID+3*to.UID)%4)*time.Second
			}
			_, reached := message.(protocol.Reached)
			return reached && l.order%3 == 0 // What was said may be lost.
		}
		l.join(1)
		for i := 2; i <= n; i++ {
			l.after(time.Duration(i*37%100)*time.Millisecond, func() { l.join(i) })
		}
		up := map[gossip.NodeID]bool{l.nodes[address(1)].id: true}
		l.until(20*time.Second, func() bool {
			state := l.nodes[address(1)].machine.State()
			config := state.Config()
			for _, member := range state.Members() {
				if member.Status != gossip.Up || up[member.Node] {
					continue
				}
				up[member.Node] = true
				for _, voter := range config.Previous {
					require.True(t, answered[[2]gossip.NodeID{voter, member.Node}], "%v is up, and %v has not reached it", member.Node, voter)
				}
			}
			return l.allUp(n)
		})
		require.Len(t, up, n)
	}
}

func statusAt(n, of *node) gossip.Status {
	if m := n.machine.State().Member(of.id); m != nil {
		return m.Status
	}
	return gossip.StatusNone
}

// decided returns how often a node decided this about a subject.
func decided(n *node, subject, verdict string) int {
	count := 0
	for _, d := range n.decisions {
		if d.Subject == subject && d.Verdict == verdict {
			count++
		}
	}
	return count
}

func lastReason(n *node, verdict string) string {
	for _, d := range slices.Backward(n.decisions) {
		if d.Verdict == verdict {
			return d.Reason
		}
	}
	return ""
}

// A link that breaks and works again in turns: each time one end goes, and could come
// back at once to be downed again. It waits longer each time, so in an hour it is downed
// a few times only, and most of the others are never disturbed.
func TestWhoIsDownedForItsLinksComesBackLaterEachTime(t *testing.T) {
	s := supervise(newLoop(t), 5)
	broken := brokenBetween(true, [2]int{2, 5})
	const turn, works = 25 * time.Second, 10 * time.Second
	s.cut = func(from, to gossip.Address) bool { return s.now%turn > works && broken(from, to) }
	ups := func() int { return s.ups()[4] }
	var counts []int
	for range 4 {
		before := ups()
		s.run(15 * time.Minute)
		counts = append(counts, ups()-before)
	}
	t.Log("up in each quarter of an hour:", counts, "refused", s.nodes[address(1)].machine.Refusals(protocol.RefusedLinks))
	require.LessOrEqual(t, counts[3], int(15*time.Minute/protocol.MaxLinkBackoff)+1)
	require.Less(t, counts[3], counts[0])
	require.Equal(t, []int{1, 1, 1, 1}, s.ups()[:4])

	// When the link works again the node is let in, and is forgotten in time.
	s.cut = nil
	s.run(protocol.MaxLinkBackoff + time.Minute)
	require.Equal(t, gossip.Up, statusAt(s.nodes[address(1)], s.nodes[address(5)]))
}

// Only links count: a node that crashed, was cut off, was downed by command, or was
// replaced by a new start at its address is let in at once.
func TestWhoWasDownedForAnotherReasonIsLetInAtOnce(t *testing.T) {
	for name, end := range map[string]func(l *loop, n *node){
		"crash":   func(_ *loop, n *node) { n.dead = true },
		"command": func(l *loop, n *node) { l.nodes[address(1)].step(protocol.Down{Address: n.id.Address}) },
		"cut off": func(l *loop, n *node) {
			l.cut = func(from, to gossip.Address) bool { return from == n.id.Address || to == n.id.Address }
		},
		"replaced": func(*loop, *node) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			nodes := l.cluster(5)
			end(l, nodes[4])
			if name != "replaced" {
				l.run(20 * time.Second)
			}
			l.cut = nil
			again := l.start(5, 55)
			again.step(protocol.Join{Seeds: []gossip.Address{address(1), address(2)}})
			l.until(10*time.Second, func() bool { return statusAt(nodes[0], again) == gossip.Up })
			for _, n := range nodes {
				require.Zero(t, n.machine.Refusals(protocol.RefusedLinks))
			}
		})
	}
}

// While the others do not converge a joiner becomes weakly up, though it has died as it was let in. When
// they converge it gets no vote; one that lives does.
//
// covers F31, I13.
func TestAWeaklyUpMemberGetsAVoteOnlyAfterASignOfLife(t *testing.T) {
	for _, lives := range []bool{false, true} {
		l := newLoop(t)
		l.cfg.AllowWeaklyUpMembers = time.Second
		nodes := l.cluster(3)
		leader, deaf := nodes[0], nodes[2]
		l.drop = func(from, to gossip.NodeID, message any) bool {
			return isGossip(message) && (from == deaf.id || to == deaf.id)
		}
		joiner := l.join(4)
		l.until(5*time.Second, func() bool { return leader.machine.State().Member(joiner.id) != nil })
		joiner.dead = !lives
		l.until(4*time.Second, func() bool { return statusAt(leader, joiner) == gossip.WeaklyUp })
		l.drop = nil
		votes := func() bool { return slices.Contains(leader.machine.State().Config().Voters, joiner.id) }
		if lives {
			l.until(5*time.Second, votes)
			continue
		}
		l.until(20*time.Second, func() bool {
			require.False(t, votes())
			return leader.machine.State().Member(joiner.id) == nil
		})
	}
}
