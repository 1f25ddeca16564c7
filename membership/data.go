// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/datadir"
)

// openData takes the node's directory. One that cannot be written keeps no node
// out of its cluster.
func (n *Node) openData(cfg Config) error {
	if cfg.Node.DataDir == "" {
		return nil
	}
	data, err := datadir.Open(cfg.Node.DataDir, cfg.Cluster.Name)
	if data == nil {
		return fmt.Errorf("node.data-dir: %w", err)
	}
	if err != nil {
		n.log.Warn("the data directory cannot be written: epochs may go backwards when all nodes start anew and their clocks were set back", "error", err)
	}
	n.data = data
	return nil
}

// remember keeps the birth of the cluster that the node is about to be a member of.
func (n *Node) remember(cluster gossip.ClusterID) error {
	if last := n.data.Born(); cluster.Born < last {
		n.log.Warn("the cluster was born before the last one that this node was in: epochs have gone backwards; the node that formed it had no data-dir, or lost it",
			"born", cluster.Born, "last", last)
	}
	return n.data.Remember(cluster.Born)
}

// closeData gives the node's directory back.
func (n *Node) closeData() {
	if n.data == nil {
		return
	}
	if err := n.data.Close(); err != nil {
		n.log.Warn("the data directory was closed with an error", "error", err)
	}
}
