// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// What real nodes answer at their routes, in virtual time and without a network. First come
// helpers that start and ask nodes; then a node from its start to its end, readiness, and
// how decisions and members are listed.

// configuration returns the configuration of the i-th node.
func configuration(i int, seeds ...string) membership.Config {
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "test", fmt.Sprintf("10.0.0.%d:7946", i), seeds
	cfg.Node.Zone, cfg.Node.Roles = "east", []string{"backend"}
	return cfg
}

// node starts the i-th node on a network in memory.
func node(t *testing.T, network *memory.Network, i int, seeds ...string) *membership.Node {
	t.Helper()
	return start(t, network, configuration(i, seeds...))
}

// start starts a node with a configuration; the last part of its host is its uid.
func start(t *testing.T, network *memory.Network, cfg membership.Config) *membership.Node {
	t.Helper()
	address := netip.MustParseAddrPort(cfg.Node.Address).Addr().As4()
	i := address[3]
	n, err := membership.Start(t.Context(), cfg,
		membership.WithUID(gossip.UID(i)), membership.WithRand(rand.New(rand.NewPCG(uint64(i), 1))),
		membership.WithLogger(slog.New(slog.DiscardHandler)),
		membership.WithTransport(network.Transport))
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// of asks a node for a target without a network, and decodes the answer into a T.
func of[T any](t *testing.T, n *membership.Node, target string, status int) T {
	t.Helper()
	handler, err := management.Handler(management.Default(),
		slices.Concat(management.Health(n, nil), management.Members(n), management.Bootstrap(n), management.Decisions(n)), quiet())
	require.NoError(t, err)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	request.Host = "localhost"
	handler.ServeHTTP(recorder, request)
	require.Equal(t, status, recorder.Code, recorder.Body)
	var got T
	require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), &got))
	return got
}

// A node tells what it is from its start to its end.
func TestNodeFromStartToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		n := node(t, network, 1)
		require.Equal(t, "live", of[management.HealthStatus](t, n, "/health/live", 200).Status)
		require.Equal(t, []string{"the node has not joined a cluster yet"}, of[management.Failure](t, n, "/health/startup", 503).Reasons)
		require.Equal(t, []string{"the node has not joined a cluster yet"}, of[management.Failure](t, n, "/health/ready", 503).Reasons)
		members := of[management.ClusterMembers](t, n, "/v1/members", 200)
		require.Equal(t, management.ClusterMembers{
			Self: "10.0.0.1:7946#1", Blockers: "this node is not a member", Voters: []string{}, Members: []management.Member{},
		}, members)

		require.NoError(t, n.Join(t.Context(), "10.0.0.1:7946"))
		require.NoError(t, n.AwaitUp(t.Context()))
		second := node(t, network, 2, "10.0.0.1:7946")
		require.NoError(t, second.AwaitUp(t.Context()))
		<-time.After(5 * time.Second) // In this virtual time standing is proven and the state converges.
		require.Equal(t, "ready", of[management.HealthStatus](t, n, "/health/ready", 200).Status)
		require.Equal(t, "started", of[management.HealthStatus](t, n, "/health/startup", 200).Status)
		for path, status := range map[string]string{"/alive": "live", "/ready": "ready", "/startup": "started"} {
			require.Equal(t, status, of[management.HealthStatus](t, n, path, 200).Status)
		}
		require.Empty(t, management.Ready(n))
		require.Equal(t, []string{"too warm"}, management.Ready(n, func() []string { return []string{"too warm"} }))
		members = of[management.ClusterMembers](t, n, "/v1/members", 200)
		require.Equal(t, management.ClusterMembers{
			Self: "10.0.0.1:7946#1", Standing: true, Leader: "10.0.0.1:7946#1", Converged: true, Cluster: n.State().Cluster().String(),
			Voters: []string{"10.0.0.1:7946#1", "10.0.0.2:7946#2"},
			Members: []management.Member{
				{Node: "10.0.0.1:7946#1", Status: "up", Age: 1, UpNumber: 1, Zone: "east", Roles: []string{"backend"}, Version: "0.0.0", Voter: true, Seen: true},
				{Node: "10.0.0.2:7946#2", Status: "up", Age: 2, UpNumber: 2, Zone: "east", Roles: []string{"backend"}, Version: "0.0.0", Voter: true, Seen: true},
			},
		}, members)

		list := of[management.DecisionList](t, n, "/v1/decisions?subject=10.0.0.2&component=membership", 200)
		require.Equal(t, "10.0.0.1:7946#1", list.Self)
		require.Zero(t, list.Omitted)
		verdicts := make([]string, 0, len(list.Decisions))
		for _, d := range list.Decisions {
			require.Contains(t, d.Subject, "10.0.0.2")
			require.NotEmpty(t, d.Reason)
			verdicts = append(verdicts, d.Verdict)
		}
		require.Equal(t, []string{"admitted", "up"}, verdicts)
		last := of[management.DecisionList](t, n, "/v1/decisions?topic=leader&limit=1", 200)
		require.Len(t, last.Decisions, 1)
		require.Equal(t, 1, last.Omitted, "its own and the other's up")
		require.Contains(t, of[management.Failure](t, n, "/v1/decisions?limit=0", 400).Error, "limit")
		require.Contains(t, of[management.Failure](t, n, "/v1/decisions?subjet=x", 400).Error, "component, topic, subject, limit")

		require.NoError(t, n.Close()) // The node does not leave, so that the second cannot go on alone.
		require.Contains(t, of[management.Failure](t, n, "/health/live", 503).Reasons[0], "node closed")
		require.Contains(t, of[management.Failure](t, n, "/health/ready", 503).Reasons[0], "node closed")

		<-time.After(6 * time.Second) // Longer than the fence, shorter than what downing waits.
		require.Contains(t, of[management.Failure](t, second, "/health/ready", 503).Reasons[0], "no standing")
		require.Equal(t, "started", of[management.HealthStatus](t, second, "/health/startup", 200).Status, "it has been up")
		members = of[management.ClusterMembers](t, second, "/v1/members", 200)
		require.False(t, members.Standing)
		require.Equal(t, []string{"10.0.0.2:7946#2"}, members.Members[0].UnreachableFor)
		require.Contains(t, members.Blockers, "unreachable 10.0.0.1:7946#1")
		require.Equal(t, "live", of[management.HealthStatus](t, second, "/health/live", 200).Status)
	})
}

// A node that left in order is not live any more either.
func TestNodeThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1, "10.0.0.1:7946")
		require.NoError(t, n.AwaitUp(t.Context()))
		require.NoError(t, n.Leave(t.Context()))
		require.Equal(t, []string{"the node has left the cluster"}, of[management.Failure](t, n, "/health/live", 503).Reasons)
	})
}

// Only a node that takes part in its cluster is ready.
func TestReadiness(t *testing.T) {
	for status := gossip.Joining; status <= gossip.Down; status++ {
		up := status >= gossip.Up && status <= gossip.Ready
		require.Equal(t, up, len(management.Unready(&gossip.Member{Status: status}, true)) == 0, status)
		require.Len(t, management.Unready(&gossip.Member{Status: status}, false), 1, status)
	}
}

// The last decisions are listed in the order in which they were taken, whatever their
// components.
func TestDecisionsAreInOrder(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	all := []management.DecisionOf{
		{At: at(2), Component: "membership", Topic: "downing", Subject: "b"},
		{At: at(5), Component: "membership", Topic: "downing", Subject: "ab"},
		{At: at(1), Component: "sharding", Topic: "allocation", Subject: "a"},
		{At: at(4), Component: "sharding", Topic: "allocation", Subject: "account: b"},
	}
	for _, test := range []struct {
		component, subject string
		limit, omitted     int
		want               []string
	}{
		{"", "", 100, 0, []string{"a", "b", "account: b", "ab"}},
		{"", "", 2, 2, []string{"account: b", "ab"}},
		{"sharding", "", 100, 0, []string{"a", "account: b"}},
		{"membership", "b", 1, 1, []string{"ab"}},
		{"other", "", 1, 0, []string{}},
	} {
		list := management.Select(slices.Clone(all), test.component, test.subject, test.limit)
		got := []string{}
		for _, d := range list.Decisions {
			got = append(got, d.Subject)
		}
		require.Equal(t, test.want, got)
		require.Equal(t, test.omitted, list.Omitted)
	}
}

// A member that is down is listed with the node that declared it down, and the reason.
func TestMembersSayWhyOneIsDown(t *testing.T) {
	a, b := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}, gossip.NodeID{Address: gossip.Address{Host: "b", Port: 1}, UID: 2}
	state := gossip.New(gossip.ClusterID{}).Edit(a, func(e *gossip.Edit) {
		e.Join(gossip.Member{Node: a})
		e.Join(gossip.Member{Node: b})
		e.Down(b, "keep-majority: it is lost")
	})
	got := management.MembersOf(membership.View{Self: b, State: state}, false).Members
	require.Equal(t, []management.Member{
		{Node: "a:1#1", Status: "joining", Seen: true},
		{Node: "b:1#2", Status: "down", DownedBy: "a:1#1", DownedWhy: "keep-majority: it is lost"},
	}, got)
}

// A member that is not up yet has no age, and comes last.
func TestMembersNotUpComeLast(t *testing.T) {
	a, b, c := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 1}, gossip.NodeID{Address: gossip.Address{Host: "b", Port: 1}, UID: 2}, gossip.NodeID{Address: gossip.Address{Host: "c", Port: 1}, UID: 3}
	state := gossip.New(gossip.ClusterID{}).Edit(a, func(e *gossip.Edit) {
		for _, n := range []gossip.NodeID{a, b, c} {
			e.Join(gossip.Member{Node: n})
		}
		e.SetStatus(c, gossip.Up, 1)
		e.SetStatus(b, gossip.Up, 2)
	})
	got := management.MembersOf(membership.View{Self: a, State: state}, false)
	ages := map[string]int{}
	for i, m := range got.Members {
		ages[m.Node] = m.Age
		require.Equal(t, []string{"c:1#3", "b:1#2", "a:1#1"}[i], m.Node)
	}
	require.Equal(t, map[string]int{"c:1#3": 1, "b:1#2": 2, "a:1#1": 0}, ages)
	require.Empty(t, got.Leader)
	require.Contains(t, got.Blockers, "not seen by b:1#2, c:1#3")
}
