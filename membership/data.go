// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/membership/internal/datadir"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport/mutual"
)

// disk keeps the record of a node in its data directory, if it has one.
type disk struct {
	data *datadir.Dir // Nil: the node has no directory.
	log  *slog.Logger
}

// open takes the node's directory. One that cannot be written, and holds nothing,
// keeps no node out of its cluster.
func (d *disk) open(cfg Config) error {
	if cfg.Node.DataDir == "" {
		return nil
	}
	data, err := datadir.Open(cfg.Node.DataDir, cfg.Cluster.Name)
	if data == nil {
		return fmt.Errorf("node.data-dir: %w", err)
	}
	if err != nil {
		d.log.Warn("the data directory cannot be written: after a restart this node has no vote in who starts the cluster again", "error", err)
	}
	d.data = data
	return nil
}

// warnOfModes says which files and directories of the node others may read or change.
// It is no fault that keeps a node out: who can do so has to be on the machine already.
func (d *disk) warnOfModes(cfg Config) {
	for _, text := range []string{mutual.LooseKey(cfg.Transport.TLS.Key), mutual.LooseDirectory(cfg.Node.DataDir)} {
		if text != "" {
			d.log.Warn(text)
		}
	}
}

// remembered is what the node knows from before.
func (d *disk) remembered() (r protocol.Record, durable bool) {
	if d.data == nil {
		return protocol.Record{}, false
	}
	return d.data.Record(), d.data.Writable()
}

// remember keeps a record.
func (d *disk) remember(r protocol.Record) error { return d.data.Keep(r) }

// close gives the node's directory back.
func (d *disk) close() {
	if d.data == nil {
		return
	}
	if err := d.data.Close(); err != nil {
		d.log.Warn("the data directory was closed with an error", "error", err)
	}
}
