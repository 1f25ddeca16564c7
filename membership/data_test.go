// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"os"
	"path/filepath"
	"strconv"
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

// All nodes end and start anew while the wall clock goes back by a day: the cluster
// is born after the one before. Without directories it is not, which shows that the
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

// One that joins remembers the birth too, since it may be the one that forms the
// next cluster.
func TestWhoJoinsRemembersTheBirth(t *testing.T) {
	root := t.TempDir()
	var first int64
	bubble(t, func(_ *testing.T, p *place) {
		<-time.After(time.Hour)
		a, b := p.start(config(1)), p.start(inDir(root, 2))
		p.awaitUp(a, b)
		first = a.State().Cluster().Born
	})
	bubble(t, func(t *testing.T, p *place) {
		cfg := inDir(root, 2)
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		n := p.start(cfg)
		p.awaitUp(n)
		require.Equal(t, first+1, n.State().Cluster().Born)
	})
}

// What a node cannot use it names, and does not start.
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

// A disk that takes nothing is told of and keeps no node out of its cluster. A
// directory in the place of the file fails for the superuser too.
func TestADiskThatTakesNothingIsNotTheEnd(t *testing.T) {
	root := t.TempDir()
	cfg := inDir(root, 1)
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.Node.DataDir, "birth.tmp", "full"), 0o700))
	bubble(t, func(t *testing.T, p *place) {
		n := p.start(cfg)
		p.awaitUp(n)
		require.Contains(t, p.log.String(), "not remembered")
	})
}
