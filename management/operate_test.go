// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// What operators ask of the membership of a cluster of three, in virtual time: members leave, are
// declared failed and join, and what is refused has changed nothing.

// commandee is a node whose routes for operators are asked.
type commandee struct {
	t *testing.T
	n *membership.Node
}

// forAnybody returns routes that anybody may ask: who may is decided before, see operators_test.go.
func forAnybody(routes []management.Route) []management.Route {
	for i := range routes {
		routes[i].Authorized = false
	}
	return routes
}

// asks sends a command as an operator would, and returns what is said about it.
func (c commandee) asks(operation, path string) (status int, body string) {
	c.t.Helper()
	status, _, text := operate(c.t, forAnybody(management.Operations(c.n)), func(r *http.Request) {
		target, query, _ := strings.Cut(path, "?")
		r.URL.Path, r.URL.RawQuery = target, query
		r.Header.Set(management.OperatorHeader, operation)
	})
	return status, string(text)
}

// refuses requires that a command is refused with a text, and that no member has changed.
func (c commandee) refuses(operation, path string, status int, says ...string) {
	c.t.Helper()
	before := c.n.State().Describe()
	got, body := c.asks(operation, path)
	require.Equal(c.t, status, got, body)
	for _, text := range says {
		require.Contains(c.t, body, text)
	}
	synctest.Wait()
	require.Equal(c.t, before, c.n.State().Describe())
}

// does requires that a command is obeyed, and decodes the answer.
func does[T any](c commandee, operation, path string) T {
	c.t.Helper()
	status, body := c.asks(operation, path)
	require.Equal(c.t, http.StatusOK, status, body)
	var got T
	require.NoError(c.t, json.Unmarshal([]byte(body), &got))
	return got
}

// three starts a cluster of three nodes and waits until all know it.
func three(t *testing.T) (network *memory.Network, nodes [3]commandee) {
	t.Helper()
	network = memory.NewNetwork()
	for i := range nodes {
		nodes[i] = commandee{t, node(t, network, i+1, "10.0.0.1:7946")}
		require.NoError(t, nodes[i].n.AwaitUp(t.Context()))
	}
	<-time.After(5 * time.Second)
	return network, nodes
}

func TestOperationsAreForOperators(t *testing.T) {
	for _, route := range management.Operations(nil) {
		require.True(t, route.Authorized, route.Path)
	}
}

// A member is asked to leave by any name that it has, at any other member; who asks again is
// answered alike.
func TestAnOperatorHasAMemberLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := three(t)
		first, third := nodes[0], nodes[2]
		third.refuses("leave", "/v1/members/10.0.0.9:7946/leave", 404, "10.0.0.9:7946 is not a member of this cluster, whose members are 10.0.0.1:7946, 10.0.0.2:7946, 10.0.0.3:7946")
		third.refuses("leave", "/v1/members/10.0.0.2:7946#77/leave", 404, "10.0.0.2:7946#77 is not a member any more: it was started again, and is 10.0.0.2:7946#2 now")
		third.refuses("leave", "/v1/members/everybody/leave", 400, "names no member")
		third.refuses("leave", "/v1/members/10.0.0.2:7946/leave?cluster=shop", 409, "this node belongs to the cluster named test", `not to \"shop\": nothing was done`)

		id := first.n.State().Cluster().String()
		got := does[management.LeaveAnswer](first, "leave", "/v1/members/10.0.0.2:7946#2/leave?cluster="+id)
		require.Equal(t, management.LeaveAnswer{Self: "10.0.0.1:7946#1", Member: "10.0.0.2:7946#2", Status: "leaving"}, got)
		synctest.Wait()
		require.Contains(t, []string{"leaving", "exiting"}, does[management.LeaveAnswer](first, "leave", "/v1/members/10.0.0.2:7946/leave?cluster=test").Status)
		<-nodes[1].n.Done()
		require.NoError(t, nodes[1].n.Err(), "it left in order")
		nodes[1].refuses("leave", "/v1/members/self/leave", 409, "the node has left the cluster: ask another node")
		<-time.After(10 * time.Second)
		first.refuses("leave", "/v1/members/10.0.0.2:7946/leave", 404, "10.0.0.2:7946 is gone: 10.0.0.2:7946#2 was removed at ", "after it had left")

		require.Equal(t, "10.0.0.3:7946#3", does[management.LeaveAnswer](third, "leave", "/v1/members/self/leave").Member)
		<-third.n.Done()
		require.NoError(t, third.n.Err())
	})
}

// A member that is cut off is declared failed. What would end the node that is asked, or the cluster,
// is done only if it is meant, and the answer says what it costs.
func TestAnOperatorDeclaresMembersFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := three(t)
		first := nodes[0]
		first.refuses("down", "/v1/members/self/down", 409, "say force if it is meant", "10.0.0.1:7946#1 is the node that was asked", "quorate leave hands over first")
		first.refuses("down", "/v1/members/10.0.0.2:7946,10.0.0.3:7946/down", 409, "of 3 voters 1 would be left, which is no majority", "all nodes that are left end as well")
		first.refuses("down", "/v1/members/10.0.0.2:7946,10.0.0.9:7946/down", 404, "10.0.0.9:7946 is not a member")
		first.refuses("down", "/v1/members/10.0.0.2:7946/down?force=perhaps", 400, "neither true nor false")

		got := does[management.Downed](first, "down", "/v1/members/10.0.0.3:7946,10.0.0.3:7946#3/down")
		require.Equal(t, management.Downed{Self: "10.0.0.1:7946#1", Members: []string{"10.0.0.3:7946#3"}, Costs: []string{}}, got)
		<-nodes[2].n.Done()
		require.ErrorIs(t, nodes[2].n.Err(), membership.ErrDown)
		nodes[2].refuses("down", "/v1/members/10.0.0.1:7946/down", 409, "the node has ended: ", "ask another node")
		<-time.After(20 * time.Second)
		first.refuses("down", "/v1/members/10.0.0.3:7946/down", 404, "10.0.0.3:7946#3 was removed at ", "after it was declared down: command")

		got = does[management.Downed](first, "down", "/v1/members/self/down?force=true")
		require.Len(t, got.Costs, 2, "the other one, with the higher address, has no majority of two")
		<-first.n.Done()
		require.ErrorIs(t, first.n.Err(), membership.ErrDown)
	})
}

// An operator looks a member up, and it is started again before the command: by its id nothing
// happens, by its address the one that lives there is met. The description says so.
func TestARestartOvertakesAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, nodes := three(t)
		first := nodes[0]
		seen := of[management.ClusterMembers](t, first.n, "/v1/members", 200).Members[2].Node
		require.NoError(t, nodes[2].n.Close())
		again, err := membership.Start(t.Context(), configuration(3, "10.0.0.1:7946"), membership.WithUID(33), membership.WithTransport(network.Transport),
			membership.WithLogger(slog.New(slog.DiscardHandler)), membership.WithRand(rand.New(rand.NewPCG(33, 1))))
		require.NoError(t, err)
		t.Cleanup(func() { _ = again.Close() })
		require.NoError(t, again.AwaitUp(t.Context()))
		<-time.After(5 * time.Second)
		for _, path := range []string{"leave", "down"} {
			first.refuses(path, "/v1/members/"+seen+"/"+path, 404, seen+" is not a member any more: it was started again, and is 10.0.0.3:7946#21 now")
		}
		first.refuses("down", "/v1/members/10.0.0.2:7946#2,"+seen+"/down?force=true", 404, seen+" is not a member any more")
		<-time.After(10 * time.Second)
		require.Len(t, first.n.State().Members(), 3)
		require.Equal(t, []string{again.Self().String()}, does[management.Downed](first, "down", "/v1/members/10.0.0.3:7946/down").Members)
		<-again.Done()
		require.ErrorIs(t, again.Err(), membership.ErrDown)
	})
	about, err := json.Marshal(management.OpenAPI(management.Operations(nil)))
	require.NoError(t, err)
	require.Contains(t, string(about), "The id of the member, host:port#hex, which means this incarnation and no other; or its address")
}

// A node that is in no cluster joins where an operator says, and one that is in a cluster
// does not leave it for that.
func TestAnOperatorHasANodeJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, nodes := three(t)
		lonely := commandee{t, node(t, network, 4)}
		lonely.refuses("leave", "/v1/members/self/leave", 409, "this node is a member of no cluster: ask a member, or end the process")
		lonely.refuses("down", "/v1/members/10.0.0.1:7946/down", 409, "this node is a member of no cluster")
		lonely.refuses("join", "/v1/join/nowhere", 400, `the seed node \"nowhere\" is no \"host:port\"`)
		lonely.refuses("join", "/v1/join/10.0.0.1:7946?cluster=shop", 409, "this node belongs to the cluster named test, not to")
		nodes[1].refuses("join", "/v1/join/10.0.0.4:7946", 409, "this node is a member of cluster "+nodes[1].n.State().Cluster().String()+" already")

		got := does[management.Joining](lonely, "join", "/v1/join/10.0.0.9:7946,10.0.0.2:7946,10.0.0.1:7946")
		require.Equal(t, management.Joining{Self: "10.0.0.4:7946#4", Seeds: []string{"10.0.0.9:7946", "10.0.0.2:7946", "10.0.0.1:7946"}}, got)
		require.NoError(t, lonely.n.AwaitUp(t.Context()))
		require.Equal(t, nodes[1].n.State().Cluster(), lonely.n.State().Cluster())
	})
}

// A whole cluster is stopped: it prepares, is ready, and one leave ends all. What cannot be taken back is
// done only if it is meant.
func TestAnOperatorStopsAWholeCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, nodes := three(t)
		first, second := nodes[0], nodes[1]
		first.refuses("shutdown-cluster", "/v1/shutdown", 409, "this cannot be taken back: say force if it is meant", "until 2 of the 3 voters are started again with their data")
		first.refuses("shutdown-cluster", "/v1/shutdown?cluster=shop&force=true", 409, `not to \"shop\": nothing was done`)
		first.refuses("shutdown-cluster", "/v1/shutdown?force=perhaps", 400, "neither true nor false")

		got := does[management.ClusterShutdown](second, "shutdown-cluster", "/v1/shutdown?force=true&cluster=test")
		require.Equal(t, "10.0.0.2:7946#2", got.Self)
		require.Equal(t, "preparing", got.Status)
		require.Equal(t, []string{"10.0.0.1:7946#1", "10.0.0.2:7946#2", "10.0.0.3:7946#3"}, got.Members)
		<-time.After(10 * time.Second)
		require.Contains(t, because(t, first.n, "shutdown", management.Requirement{}), "when one of them leaves, all do")
		require.Equal(t, "ready", does[management.ClusterShutdown](first, "shutdown-cluster", "/v1/shutdown").Status, "asked again, it needs no force")
		require.Empty(t, first.n.State().Unreachable())

		late := commandee{t, node(t, network, 4, "10.0.0.1:7946")}
		<-time.After(10 * time.Second)
		require.Nil(t, late.n.View().Member(), "nobody comes in")
		require.NotNil(t, late.n.Waiting())

		does[management.LeaveAnswer](nodes[2], "leave", "/v1/members/self/leave")
		for _, n := range nodes {
			<-n.n.Done()
			require.NoError(t, n.n.Err(), "it left in order")
		}
		first.refuses("shutdown-cluster", "/v1/shutdown?force=true", 409, "the node has left the cluster: ask another node")
	})
}
