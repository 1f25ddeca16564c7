// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// seeds returns the seed nodes of a cluster of two nodes, both of which are needed to form
// it.
func seeds() []string { return []string{"10.0.0.1:7946", "10.0.0.2:7946"} }

// notReady asks a node why it is not ready.
func notReady(t *testing.T, n *membership.Node) []string {
	t.Helper()
	return of[management.Failure](t, n, "/health/ready", 503).Reasons
}

// answers returns the answers of voters as one text, without the uids of the nodes.
func answers(w *management.Waiting) string {
	var all []string
	for _, v := range w.Voters {
		address, _, _ := strings.Cut(v.Node, "#")
		all = append(all, address+" "+v.Answer)
	}
	return strings.Join(all, ", ")
}

// A node that waits is not ready, and says which voters it waits for.
func TestANodeThatWaitsIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1, seeds()...)
		<-time.After(time.Minute)
		require.Equal(t, []string{"the node waits for a cluster: 1 of 2 of the listed seed nodes are here and in no cluster; missing: 10.0.0.2:7946 (silent)"}, notReady(t, n))
		w := of[management.ClusterMembers](t, n, "/v1/members", 200).Waiting
		require.NotNil(t, w)
		require.False(t, w.Remembered)
		require.Contains(t, w.Reason, "1 of 2 of the listed seed nodes")
		require.Contains(t, w.Cure, "quorate form")
		require.Equal(t, "10.0.0.1:7946 in no cluster, 10.0.0.2:7946 silent", answers(w))
		for _, v := range w.Voters {
			require.InDelta(t, time.Minute.Seconds(), time.Since(v.Since).Seconds(), 15, "since it has started")
		}
	})
}

// Two clusters of one name meet: the nodes of the one that yields are not ready, and name
// the cluster that they yield to. Without that reason they would just have lost their
// standing, which may come back.
func TestANodeWhoseClusterHasYieldedIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memory.NewNetwork()
		first := node(t, network, 1, "10.0.0.1:7946")
		require.NoError(t, first.AwaitUp(t.Context()))
		network.Cut(first.Self().Address, gossip.Address{Host: "10.0.0.2", Port: 7946})
		second := node(t, network, 2, seeds()...)
		<-time.After(time.Minute)
		_, err := second.Form(t.Context())
		require.NoError(t, err)
		require.NoError(t, second.AwaitUp(t.Context()))
		network.HealAll()
		for range 600 { // The cluster that yields is there for some seconds only.
			if <-time.After(100 * time.Millisecond); !second.State().Yielded().IsZero() {
				break
			}
		}
		members := of[management.ClusterMembers](t, second, "/v1/members", 200)
		require.Equal(t, first.State().Cluster().String(), members.Yielded)
		require.Equal(t, second.State().Cluster().String(), members.Cluster)
		require.False(t, members.Standing)
		require.Equal(t, []string{"the node's cluster has yielded to cluster " + first.State().Cluster().String() +
			" of the same name, which goes on: the node hosts nothing, ends shortly, and joins that when it is started again"}, notReady(t, second))
		told := of[management.DecisionList](t, second, "/v1/decisions?topic=cluster", 200).Decisions
		require.Len(t, told, 2)
		require.Equal(t, []string{members.Cluster, "yields to cluster " + members.Yielded}, []string{told[0].Subject, told[0].Verdict})
		require.Equal(t, []string{members.Self, "yielded"}, []string{told[1].Subject, told[1].Verdict})
		<-second.Done()
		require.ErrorIs(t, second.Err(), membership.ErrYielded)
		require.Equal(t, "ready", of[management.HealthStatus](t, first, "/health/ready", 200).Status)
	})
}

// A node that has lost its record serves, and is ready, with a warning.
func TestANodeThatLostItsRecordIsReadyWithAWarning(t *testing.T) {
	dir := t.TempDir() // A directory in the place of the file fails for the superuser too.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "record.tmp", "full"), 0o700))
	synctest.Test(t, func(t *testing.T) {
		cfg := configuration(1, "10.0.0.1:7946")
		cfg.Node.DataDir = dir
		n := start(t, memory.NewNetwork(), cfg)
		require.NoError(t, n.AwaitUp(t.Context()))
		<-time.After(time.Second)
		status := of[map[string]any](t, n, "/health/ready", 200)
		require.Equal(t, "ready", status["status"])
		require.Equal(t, []any{"the record in node.data-dir could not be written and was removed: after a restart this node has no vote in who starts the cluster again"}, status["warnings"])
		require.True(t, of[management.ClusterMembers](t, n, "/v1/members", 200).RecordLost)
		require.NotContains(t, of[map[string]any](t, n, "/health/live", 200), "warnings")
	})
}
