// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"encoding/json"
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

// Why a cluster is as it is, in virtual time: in good health, after a member has failed, while one joins, and
// outside of any cluster.

// because asks a node, and returns what it says about something: what is so, and why, a line each.
func because(t *testing.T, n *membership.Node, about string, needed management.Requirement) string {
	t.Helper()
	status, _, body := operate(t, management.Why(n, needed), func(r *http.Request) { r.Method, r.URL.Path = http.MethodGet, "/v1/why" })
	require.Equal(t, 200, status)
	var got management.ClusterReasons
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, n.Self().String(), got.Self)
	for _, f := range got.Findings {
		if f.About == about {
			return strings.Join(append([]string{f.Is}, append(f.Because, f.Cure)...), "\n")
		}
	}
	return ""
}

func TestWhyAClusterIsAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, nodes := three(t)
		n, none := nodes[1].n, management.Requirement{}
		require.Equal(t, "this node takes part in it\nit is up, and a majority of the voters answers it\n", because(t, n, "cluster", none))
		require.Equal(t, "all agree\nevery member that counts has seen the state of the cluster\n", because(t, n, "convergence", none))
		require.Equal(t, "10.0.0.1:7946#1 leads\nit is the first by address of the members that this node can reach, that are up or leaving\n", because(t, n, "leader", none))
		require.Empty(t, because(t, n, "10.0.0.3:7946#3", none), "it is up, and nothing is to be said")

		require.NoError(t, nodes[0].n.Close())
		<-time.After(6 * time.Second)
		said := because(t, n, "10.0.0.1:7946#1", none)
		require.Contains(t, said, "up, unreachable\nheartbeats of ")
		require.Contains(t, said, "the downing strategy keep-majority decides about it when nothing has changed for downing.stable-after")
		said = because(t, n, "convergence", none)
		require.Contains(t, said, "not all agree\n10.0.0.1:7946#1 is unreachable for ")
		require.Contains(t, said, "quorate down")
		said = because(t, n, "leader", none)
		require.Contains(t, said, "10.0.0.2:7946#2 leads\n")
		require.Contains(t, said, "10.0.0.1:7946#1 would come before it, and is unreachable")
		require.Contains(t, said, "each side of a partition has a leader of its own")

		joiner := node(t, network, 4, "10.0.0.2:7946")
		<-time.After(time.Second)
		require.Contains(t, because(t, n, "10.0.0.4:7946#4", none), "joining\nit becomes up when all agree, see convergence\nthis node decided at ")
		require.Contains(t, because(t, joiner, "cluster", none), "the node is joining, not up")
		require.NoError(t, joiner.AwaitUp(t.Context()))
	})
}

// What is not there is waited for, and said.
func TestWhyANodeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		n := node(t, network, 1, seeds()...)
		<-time.After(time.Minute)
		said := because(t, n, "cluster", management.Requirement{})
		require.Contains(t, said, "this node does not take part in it\nthe node waits for a cluster: ")
		require.Contains(t, said, "quorate form")
		require.Empty(t, because(t, n, "leader", management.Requirement{}))

		cfg := configuration(3, "10.0.0.3:7946")
		cfg.Membership.MinNrOfMembers, cfg.Membership.MinNrOfMembersOfRole = 2, map[string]int{"web": 1}
		alone := start(t, network, cfg)
		<-time.After(10 * time.Second)
		said = because(t, alone, "10.0.0.3:7946#3", management.Requirement{Members: 2, OfRole: map[string]int{"web": 1, "backend": 1}})
		require.Contains(t, said, "there are 1 members, and membership.min-nr-of-members is 2\nthere are 0 members with the role web, and membership.min-nr-of-members-of-role wants 1\n")
		require.NotContains(t, said, "backend")
	})
}

// A shutdown of the whole cluster says for whom it waits.
func TestWhyAShutdownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := three(t)
		n, none := nodes[0].n, management.Requirement{}
		require.Empty(t, because(t, n, "shutdown", none))
		require.NoError(t, nodes[2].n.Close())
		require.NoError(t, n.PrepareShutdown(t.Context()))
		<-time.After(time.Second)
		require.Equal(t, "the members prepare for a shutdown of the whole cluster\n10.0.0.3:7946#3 is up: they are ready when it prepares too, or is removed\n",
			because(t, n, "shutdown", none))
		<-time.After(20 * time.Second)
		require.Contains(t, because(t, n, "shutdown", none), "all members are ready for a shutdown of the whole cluster\n")
	})
}
