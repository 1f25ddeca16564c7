// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// inDir is the configuration of the i-th node with its directory under root.
func inDir(root string, i int) membership.Config {
	cfg := config(i)
	cfg.Node.DataDir = filepath.Join(root, strconv.Itoa(i))
	return cfg
}

// All nodes end and start again while the wall clock goes back by a day: the second
// cluster is born after the first. Without directories it is not, which shows that the
// clock did go back. covers F53.
func TestBirthsGrowOverAFullRestartWithTheClockSetBack(t *testing.T) {
	for name, kept := range map[string]bool{"with data-dir": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			var births []gossip.ClusterID
			for _, wait := range []time.Duration{24 * time.Hour, 0, time.Minute} { // The clock of a bubble always begins at the same time.
				bubble(t, func(t *testing.T, p *place) {
					<-time.After(wait)
					var nodes []*membership.Node
					for i := 1; i <= 3; i++ {
						cfg := inDir(root, i)
						if !kept {
							cfg.Node.DataDir = ""
						}
						nodes = append(nodes, p.start(cfg))
					}
					p.awaitUp(nodes...)
					births = append(births, nodes[0].State().Cluster())
					for _, n := range nodes {
						require.NoError(t, n.Close())
					}
				})
			}
			require.Equal(t, kept, births[1].Born > births[0].Born)
			require.Greater(t, births[2].Born, births[1].Born)
		})
	}
}

// A node that joins remembers its cluster too. Alone it is no majority of that cluster:
// it waits, and says for which voters and what an operator can do; which is done here.
func TestWhoJoinsRemembersTheCluster(t *testing.T) {
	root := t.TempDir()
	var first gossip.ClusterID
	bubble(t, func(_ *testing.T, p *place) {
		<-time.After(time.Hour)
		a, b := p.start(config(1)), p.start(inDir(root, 2))
		p.awaitUp(a, b)
		first = a.State().Cluster()
	})
	bubble(t, func(t *testing.T, p *place) {
		cfg := inDir(root, 2)
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		n := p.start(cfg)
		<-time.After(time.Minute)
		require.Nil(t, n.View().Member(), "half of the voters without the lowest is no majority")
		w := n.Waiting()
		require.NotNil(t, w)
		require.True(t, w.Remembered)
		require.Len(t, w.Voters, 2)
		require.Equal(t, "silent", w.Voters[0].Answer)
		require.Equal(t, "in no cluster", w.Voters[1].Answer)
		require.GreaterOrEqual(t, time.Since(w.Voters[0].Since), 50*time.Second)
		require.Contains(t, w.Cure, "quorate form")
		told := 0
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "this node waits to join: 1 of 2 of the voters of the last cluster") {
				told++
				for i, v := range w.Voters {
					require.Contains(t, line, v.Node.String()+" "+v.Answer+" since "+v.Since.Format(time.RFC3339), "voter %d", i)
				}
				require.Contains(t, line, w.Cure)
			}
		}
		require.GreaterOrEqual(t, told, 8, "every few seconds, for a minute")
		cluster, err := n.Form(t.Context())
		require.NoError(t, err)
		require.Equal(t, cluster, n.State().Cluster())
		p.awaitUp(n)
		require.Nil(t, n.Waiting())
		require.Greater(t, n.State().Cluster().Born, first.Born)
		require.Contains(t, p.log.String(), "an operator asked for it")
	})
}

// No cluster is founded in the place of one that may exist: while its members had no time
// to answer, while one of them says that it goes on, and by a member.
func TestFormIsRefusedWithTheReason(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		a := p.start(config(1))
		refused := func(n *membership.Node, why string) {
			_, err := n.Form(t.Context())
			require.ErrorIs(t, err, membership.ErrFormRefused)
			require.ErrorContains(t, err, why)
		}
		p.awaitUp(a)
		refused(a, "this node is not waiting for a cluster")
		p.network.Cut(a.Self().Address, address(2))
		b := p.start(config(2))
		refused(b, "time to answer")
		<-time.After(time.Minute)
		require.NotNil(t, b.Waiting())
		require.NoError(t, b.Close())
		_, err := b.Form(t.Context())
		require.ErrorIs(t, err, membership.ErrClosed)
	})
}

// A node names what it cannot use, and does not start.
func TestADataDirThatIsNotTheNodesIsRefused(t *testing.T) {
	root := t.TempDir()
	bubble(t, func(t *testing.T, p *place) {
		a := p.start(inDir(root, 1))
		p.awaitUp(a)
		cfg := config(2)
		cfg.Node.DataDir = inDir(root, 1).Node.DataDir
		_, err := membership.Start(t.Context(), cfg, p.options()...)
		require.ErrorContains(t, err, "node.data-dir")
		require.ErrorContains(t, err, "another process uses it")
		require.NoError(t, a.Close())
		cfg.Cluster.Name = "shop"
		_, err = membership.Start(t.Context(), cfg, p.options()...)
		require.ErrorContains(t, err, "of cluster \"test\"")
	})
}

// A disk that takes no data is reported and keeps no node out of its cluster. A directory
// in the place of the file fails for the superuser too.
func TestADiskThatTakesNothingIsNotTheEnd(t *testing.T) {
	root := t.TempDir()
	cfg := inDir(root, 1)
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.Node.DataDir, "record.tmp", "full"), 0o700))
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(cfg)
		p.awaitUp(n)
		require.True(t, n.RecordLost())
		require.Contains(t, p.log.String(), "could not be written and was removed")
	})
}

// Of three nodes one keeps nothing over its process: whoever enters a cluster with it says so, and names it. Where
// all keep a record, or none does, nothing is said.
func TestNodesWithoutADataDirAmongOthersAreNamed(t *testing.T) {
	for _, c := range []struct {
		kept []int
		want string
	}{{[]int{1, 2}, "10.0.0.3:7946"}, {[]int{3}, "10.0.0.1:7946"}, {[]int{1, 2, 3}, ""}, {nil, ""}} {
		root := t.TempDir()
		bubble(t, func(t *testing.T, p *place) {
			var log lines
			var nodes []*membership.Node
			for i := 1; i <= 3; i++ {
				cfg := inDir(root, i)
				if !slices.Contains(c.kept, i) {
					cfg.Node.DataDir = ""
				}
				nodes = append(nodes, p.start(cfg, membership.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			}
			p.awaitUp(nodes...)
			said := linesWith(&log, "node.data-dir")
			require.Equal(t, c.want != "", strings.Contains(strings.Join(said, ""), "without=["+c.want), "%v: %v", c.kept, said)
			require.Equal(t, c.want != "", len(said) > 0, "%v", said)
			for _, line := range said {
				require.Contains(t, line, "level=WARN")
			}
		})
	}
}
