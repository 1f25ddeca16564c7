// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A node that lists itself alone listens for some seconds whether members of another cluster
// ask it. Then it forms a cluster, hosts for good, and sends nothing.
func TestANodeThatListsItselfListensAndFormsACluster(t *testing.T) {
	l := newLoop(t)
	n := l.join(1)
	took := l.until(10*time.Second, func() bool { return len(n.machine.State().Members()) > 0 })
	require.Equal(t, 6*time.Second, took)
	require.True(t, n.sees(1, gossip.Up))
	require.Equal(t, machine.Never, n.until)
	require.Equal(t, gossip.UpNumber(1), n.machine.State().Member(n.id).UpNumber)
	require.False(t, n.machine.State().Cluster().IsZero())
	l.run(time.Minute)
	require.Empty(t, l.sent)
}

// covers F1, I9, I10.
func TestNodesThatStartTogetherFormOneCluster(t *testing.T) {
	l := newLoop(t)
	for i := 5; i >= 1; i-- {
		n := l.start(i, gossip.UID(i))
		n.step(protocol.Join{Seeds: []gossip.Address{address(1), address(2), address(3)}})
	}
	took := l.until(10*time.Second, func() bool { return l.allUp(5) })
	require.Less(t, took, l.youngest()+500*time.Millisecond)
	l.run(3 * time.Second)
	first := l.nodes[address(1)].machine
	numbers := map[gossip.UpNumber]bool{}
	for _, m := range first.State().Members() {
		require.NotZero(t, m.UpNumber)
		require.False(t, numbers[m.UpNumber], "up-number given twice")
		numbers[m.UpNumber] = true
	}
	for _, n := range l.nodes {
		require.True(t, n.machine.State().Equal(first.State()), "%v", n.id)
		require.True(t, n.machine.Snapshot().Converged)
		require.True(t, n.hosts(), "%v", n.id)
		require.Len(t, n.machine.State().Config().Voters, 5)
		require.Len(t, n.machine.Snapshot().Base, 1)
	}
}

// A first seed node that restarts while its cluster lives joins it instead of
// forming another. covers F3.
func TestRestartedFirstSeedNodeJoinsTheClusterThatLives(t *testing.T) {
	l := newLoop(t)
	seeds := []gossip.Address{address(1), address(2), address(3)}
	for i := 1; i <= 3; i++ {
		l.start(i, gossip.UID(i)).step(protocol.Join{Seeds: seeds})
	}
	l.until(10*time.Second, func() bool { return l.allUp(3) })
	cluster := l.nodes[address(2)].machine.State().Cluster()
	l.nodes[address(1)].dead = true
	again := l.start(1, 101)
	again.step(protocol.Join{Seeds: seeds})
	l.until(20*time.Second, func() bool { return l.allUp(3) })
	require.Equal(t, cluster, again.machine.State().Cluster())
}

// covers F33, I7: a restart while the old incarnation is still up downs it, and
// the new one comes in once it is gone.
func TestRestartAtTheSameAddressReplacesTheOldIncarnation(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[2].dead = true
	again := l.start(3, 103)
	again.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	took := l.until(10*time.Second, func() bool { return l.allUp(3) })
	require.Less(t, took, 6*time.Second)
	require.NotEmpty(t, published[protocol.Refused](again))
	require.Equal(t, protocol.RefusedPredecessor, published[protocol.Refused](again)[0].Refusal)
	_, removed := nodes[0].machine.State().Removed(nodes[2].id)
	require.True(t, removed)
}

// covers F27, I10: each message of the join is lost once.
func TestLostMessagesOfAJoinAreRepeated(t *testing.T) {
	for _, lost := range []any{protocol.InitJoin{}, protocol.InitJoinAck{}, protocol.JoinRequest{}, protocol.Welcome{}} {
		l := newLoop(t)
		l.cluster(2)
		dropped := false
		l.drop = func(_, _ gossip.NodeID, message any) bool {
			same := typeName(message) == typeName(lost) && !dropped
			dropped = dropped || same
			return same
		}
		l.join(3)
		took := l.until(10*time.Second, func() bool { return l.allUp(3) })
		require.True(t, dropped, "%T", lost)
		require.Less(t, took, 5*time.Second, "%T", lost)
	}
}

// A service is announced at any moment of the join, and is known to all: also
// when the question to join is under way already.
func TestServicesAnnouncedDuringAJoinAreKnown(t *testing.T) {
	for at := time.Duration(0); at < 10*time.Millisecond; at += time.Millisecond / 2 {
		l := newLoop(t)
		nodes := l.cluster(2)
		joiner := l.join(3)
		l.after(at, func() { joiner.step(component.Services{Service: 7}) })
		l.until(10*time.Second, func() bool { return l.allUp(3) })
		l.run(2 * time.Second)
		for _, n := range append(nodes, joiner) {
			require.True(t, n.machine.State().Member(joiner.id).HasService(7), "announced after %v, unknown to %v", at, n.id)
		}
	}
}

// covers F47: the refusal names the key and both values.
func TestSettingThatMustBeEqualRefusesTheJoiner(t *testing.T) {
	l := newLoop(t)
	l.cluster(1)
	n := l.join(2, func(c *protocol.Config, _ *protocol.Dependencies) { c.Fence = 2500 * time.Millisecond })
	l.run(time.Second)
	require.NotNil(t, n.stopping)
	require.Equal(t, component.StopRefused, n.stopping.Reason)
	require.Contains(t, n.stopping.Detail, `membership.fence is "3s" in the cluster and "2.5s" here`)
	refused := published[protocol.Refused](n)
	require.Equal(t, []protocol.Difference{{Key: "membership.fence", Member: "3s", Joiner: "2.5s"}}, refused[0].Differences)
}

func TestSettingThatShouldBeEqualWarnsBothSides(t *testing.T) {
	l := newLoop(t)
	first := l.cluster(1)[0]
	n := l.join(2, func(c *protocol.Config, _ *protocol.Dependencies) { c.AllowWeaklyUpMembers = 0 })
	l.until(5*time.Second, func() bool { return l.allUp(2) })
	want := []protocol.Difference{{Key: "membership.allow-weakly-up-members", Member: "7s", Joiner: "0s"}}
	require.Equal(t, want, published[protocol.SettingsDiffer](n)[0].Differences)
	require.Equal(t, want, published[protocol.SettingsDiffer](first)[0].Differences)
}

// covers B26: somebody else's address, and one that cannot be dialled back.
func TestJoinerIsDialledBackBeforeItIsRecorded(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	first := nodes[0]
	forged := gossip.NodeID{Address: address(2), UID: 666}
	settings, loaded, claim := capturedRequest(t).Settings, capturedRequest(t).Member.Loaded, capturedRequest(t).Claim
	first.step(machine.Received{From: forged, Message: protocol.JoinRequest{
		Attempt: 1, Member: gossip.Member{Node: forged, Status: gossip.Joining, Loaded: loaded}, Settings: settings, Claim: claim,
	}})
	l.run(5 * time.Second)
	require.Equal(t, gossip.Up, first.machine.State().Member(nodes[1].id).Status, "the owner of the address is untouched")
	require.Equal(t, uint64(1), first.machine.Refusals(protocol.RefusedDialBack))

	nowhere := gossip.NodeID{Address: address(9), UID: 9}
	first.step(machine.Received{From: nowhere, Message: protocol.JoinRequest{
		Attempt: 1, Member: gossip.Member{Node: nowhere, Status: gossip.Joining, Loaded: loaded}, Settings: settings, Claim: claim,
	}})
	l.run(5 * time.Second)
	require.Equal(t, uint64(2), first.machine.Refusals(protocol.RefusedDialBack))
	require.Len(t, first.machine.State().Members(), 2)
}

// A joiner is dialled back for the roles that it wants, and gets no others by asking
// again while that is under way.
//
// covers B26.
func TestRolesAreThoseForWhichAJoinerIsDialledBack(t *testing.T) {
	l := newLoop(t)
	first := l.cluster(1)[0]
	joiner := gossip.NodeID{Address: address(9), UID: 9}
	settings, loaded, claim := capturedRequest(t).Settings, capturedRequest(t).Member.Loaded, capturedRequest(t).Claim
	ask := func(role string) {
		first.step(machine.Received{From: joiner, Message: protocol.JoinRequest{
			Attempt: 1, Settings: settings, Claim: claim,
			Member: gossip.Member{Node: joiner, Status: gossip.Joining, Loaded: loaded, Roles: []string{role}, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}},
		}})
	}
	ask("edge")
	ask("teller")
	require.Equal(t, uint64(1), first.machine.Refusals(protocol.RefusedBusy))
	first.step(protocol.Probed{Address: joiner.Address, Node: joiner})
	require.Equal(t, []string{"edge"}, first.machine.State().Member(joiner).Roles)
}

// covers B26, B27, B29.
func TestForgedMessagesAreRefusedAndCounted(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	first, stranger := nodes[0], gossip.NodeID{Address: address(7), UID: 7}
	settings, claim := capturedRequest(t).Settings, capturedRequest(t).Claim
	request := func(member gossip.Member, cluster gossip.ClusterID) protocol.JoinRequest {
		return protocol.JoinRequest{Attempt: 1, Member: member, Cluster: cluster, Settings: settings, Claim: claim}
	}
	joining := gossip.Member{Node: stranger, Status: gossip.Joining}
	own := gossip.NodeID{Address: address(1), UID: 7}
	other := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1})
	for name, c := range map[string]struct {
		from    gossip.NodeID
		message any
		want    protocol.Refusal
	}{
		"welcome never asked for":    {nodes[1].id, protocol.Welcome{Attempt: 1, State: nodes[1].machine.State()}, protocol.RefusedUnsolicited},
		"unknown type":               {nodes[1].id, 42, protocol.RefusedUnknown},
		"another node's description": {stranger, request(gossip.Member{Node: nodes[1].id, Status: gossip.Joining}, gossip.ClusterID{}), protocol.RefusedMalformed},
		"status of its own choice":   {stranger, request(gossip.Member{Node: stranger, Status: gossip.Up}, gossip.ClusterID{}), protocol.RefusedMalformed},
		"the member's own address":   {own, request(gossip.Member{Node: own, Status: gossip.Joining}, gossip.ClusterID{}), protocol.RefusedMalformed},
		"another cluster":            {stranger, request(joining, gossip.ClusterID{Born: 1, Nonce: 1}), protocol.RefusedCluster},
		"no settings":                {stranger, protocol.JoinRequest{Member: joining, Claim: claim}, protocol.RefusedSettings},
		"list of another cluster":    {stranger, protocol.JoinRequest{Member: joining, Settings: settings}, protocol.RefusedUnrelated},
		"gossip of a stranger":       {stranger, protocol.GossipState{State: nodes[1].machine.State()}, protocol.RefusedNotMember},
		"gossip of another cluster":  {nodes[1].id, protocol.GossipState{State: other}, protocol.RefusedCluster},
		"confirmation of a stranger": {stranger, protocol.ExitingConfirmed{}, protocol.RefusedNotMember},
		"farewell for another":       {nodes[1].id, protocol.NotMember{Node: stranger, Status: gossip.Down}, protocol.RefusedUnsolicited},
		"farewell of a stranger":     {stranger, protocol.NotMember{Node: first.id, Status: gossip.Down}, protocol.RefusedNotMember},
	} {
		before := first.machine.Refusals(c.want)
		first.step(machine.Received{From: c.from, Message: c.message})
		require.Equal(t, before+1, first.machine.Refusals(c.want), name)
		require.Nil(t, first.stopping, name)
	}
	l.run(time.Second)
	require.Len(t, first.machine.State().Members(), 2)
}

// A refusal that says "removed" ends a node only if a member that was dialled by its
// full id says so; one that no repetition helps counts for the address dialled.
//
// covers B25, B27.
func TestRefusalsAreBelievedFromMembersAlone(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	first := nodes[0]
	for name, peer := range map[string]gossip.NodeID{
		"itself":                          first.id,
		"another incarnation of itself":   {Address: first.id.Address, UID: 77},
		"itself by address":               {Address: first.id.Address},
		"a stranger":                      {Address: address(7), UID: 7},
		"a member's address without uid":  {Address: nodes[1].id.Address},
		"a member's address, another uid": {Address: nodes[1].id.Address, UID: 77},
		"nobody":                          {},
	} {
		for _, in := range []protocol.PeerRefused{{Peer: peer, Removed: true, Reason: "removed"}, {Peer: peer, Final: true, Reason: "final"}} {
			first.step(in)
			require.Nil(t, first.stopping, name)
		}
	}
	joiner := l.start(4, 4)
	l.cut = func(_, _ gossip.Address) bool { return true }
	joiner.step(protocol.Join{Seeds: []gossip.Address{address(1), address(2)}})
	for _, peer := range []gossip.NodeID{joiner.id, {Address: address(7)}, {Address: address(3), UID: 3}, {Address: address(1)}, {Address: address(1)}} {
		joiner.step(protocol.PeerRefused{Peer: peer, Final: true, Removed: true, Reason: "final"})
		require.Nil(t, joiner.stopping, "one seed node may take it yet: %v", peer)
	}
	joiner.step(protocol.PeerRefused{Peer: gossip.NodeID{Address: address(2)}, Final: true, Reason: "final"})
	require.Equal(t, component.StopRefused, joiner.stopping.Reason)
	first.step(protocol.PeerRefused{Peer: nodes[1].id, Removed: true, Reason: "removed"})
	require.Equal(t, component.StopDowned, first.stopping.Reason, "a member says so")
}

// covers I7: a removed incarnation is refused for good.
func TestRemovedIncarnationNeverComesBack(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	nodes[0].step(protocol.Down{Address: address(3)})
	l.until(5*time.Second, func() bool { return nodes[0].sees(2, gossip.Up) })
	require.Equal(t, component.StopDowned, nodes[2].stopping.Reason)
	again := l.start(3, 3)
	again.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.run(5 * time.Second)
	require.Equal(t, component.StopRefused, again.stopping.Reason)
	require.Contains(t, again.stopping.Detail, "restart the node")
}

func TestNodeThatCannotJoinGivesUpIfAsked(t *testing.T) {
	l := newLoop(t)
	n := l.start(2, 2, func(c *protocol.Config, _ *protocol.Dependencies) { c.ShutdownAfterUnsuccessfulJoin = 40 * time.Second })
	n.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.run(39 * time.Second)
	require.Nil(t, n.stopping)
	require.InDelta(t, 11, l.sent["InitJoin"], 3, "questions are asked with back-off")
	require.Len(t, n.decisions, 1, "it tells once why it waits, not at each question")
	require.Equal(t, "waiting", n.decisions[0].Verdict)
	require.Contains(t, n.decisions[0].Reason, "0 of 1 of the listed seed nodes are here and in no cluster; missing: "+address(1).String()+" (silent)")
	l.run(2 * time.Second)
	require.Equal(t, component.StopJoinFailed, n.stopping.Reason)
}

// Every member waits for the second before anybody is up.
func TestMinNrOfMembersHoldsBackTheFirst(t *testing.T) {
	l := newLoop(t)
	l.cfg.MinNrOfMembers = 2
	first := l.join(1)
	l.run(8 * time.Second)
	require.True(t, first.sees(1, gossip.Joining))
	require.False(t, first.hosts())
	l.join(2)
	l.until(5*time.Second, func() bool { return l.allUp(2) })
	require.Equal(t, gossip.UpNumber(1), first.machine.State().Member(first.id).UpNumber)
}

func typeName(v any) string {
	switch v.(type) {
	case protocol.InitJoin:
		return "InitJoin"
	case protocol.InitJoinAck:
		return "InitJoinAck"
	case protocol.JoinRequest:
		return "JoinRequest"
	case protocol.Welcome:
		return "Welcome"
	default:
		return ""
	}
}

// capturedRequest returns a request as a node with the default settings sends it.
func capturedRequest(t *testing.T) protocol.JoinRequest {
	t.Helper()
	l := newLoop(t)
	l.cluster(1)
	var request protocol.JoinRequest
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		if r, ok := message.(protocol.JoinRequest); ok {
			request = r
		}
		return false
	}
	l.join(2)
	l.run(time.Second)
	require.NotEmpty(t, request.Settings)
	return request
}

// A node that dies while it joins does not take the one it joined with it.
func TestJoinerThatNeverComesToLifeIsNoVoter(t *testing.T) {
	l := newLoop(t)
	second := l.start(2, 2)
	second.step(protocol.Join{Seeds: []gossip.Address{address(2)}})
	l.until(10*time.Second, second.hosts)
	n := l.start(1, 1)
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		_, welcome := message.(protocol.Welcome)
		n.dead = n.dead || welcome
		return welcome
	}
	n.step(protocol.Join{Seeds: []gossip.Address{address(2)}})
	for range 200 {
		l.run(100 * time.Millisecond)
		require.True(t, second.hosts())
	}
	require.True(t, second.sees(1, gossip.Up))
}

// A joiner is started again before more than one member has heard of it, and joins
// through another one. Of the two incarnations none is up before the other is gone.
func TestAJoinerIsUpWhenNoOtherIncarnationIsAMember(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	l.drop = func(from, to gossip.NodeID, message any) bool {
		return isGossip(message) && from == nodes[3].id && to.Address != address(5)
	}
	joins := func(uid gossip.UID, through int) *node {
		n := l.start(5, uid)
		n.step(protocol.Join{Seeds: addresses(through, through)})
		l.until(5*time.Second, func() bool { return statusAt(nodes[through-1], n) == gossip.Joining })
		return n
	}
	before := joins(5, 4)
	before.dead = true
	again := joins(55, 1)
	l.run(time.Second)
	l.drop = nil
	both := false
	for !again.sees(5, gossip.Up) {
		l.run(10 * time.Millisecond)
		require.Less(t, l.now, time.Minute, l.describe())
		for _, n := range nodes {
			twin := n.machine.State().Member(before.id)
			both = both || twin != nil && n.machine.State().Member(again.id) != nil
			if twin != nil && twin.Status < gossip.Down {
				require.Less(t, statusAt(n, again), gossip.Up, "at %v", n.id)
			}
		}
	}
	require.True(t, both)
}
