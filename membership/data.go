// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"

	"github.com/quorate/quorate/membership/internal/datadir"
	"github.com/quorate/quorate/membership/protocol"
	"github.com/quorate/quorate/transport/mutual"
)

// openData takes the node's directory. One that cannot be written, and holds nothing,
// keeps no node out of its cluster.
func (n *Node) openData(cfg Config) error {
	if cfg.Node.DataDir == "" {
		return nil
	}
	data, err := datadir.Open(cfg.Node.DataDir, cfg.Cluster.Name)
	if data == nil {
		return fmt.Errorf("node.data-dir: %w", err)
	}
	if err != nil {
		n.log.Warn("the data directory cannot be written: after a restart this node has no vote in who starts the cluster again", "error", err)
	}
	n.data = data
	return nil
}

// warnOfModes says which files and directories of the node others may read or change.
// It is no fault that keeps a node out: who can do so has to be on the machine already.
func (n *Node) warnOfModes(cfg Config) {
	for _, text := range []string{mutual.LooseKey(cfg.Transport.TLS.Key), mutual.LooseDirectory(cfg.Node.DataDir)} {
		if text != "" {
			n.log.Warn(text)
		}
	}
}

// remembered is what the node knows from before.
func (n *Node) remembered() (r protocol.Record, durable bool) {
	if n.data == nil {
		return protocol.Record{}, false
	}
	return n.data.Record(), n.data.Writable()
}

// remember keeps a record.
func (n *Node) remember(r protocol.Record) error { return n.data.Keep(r) }

// closeData gives the node's directory back.
func (n *Node) closeData() {
	if n.data == nil {
		return
	}
	if err := n.data.Close(); err != nil {
		n.log.Warn("the data directory was closed with an error", "error", err)
	}
}
