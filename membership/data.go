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
	data *datadir.Dir // Nil if the node has no directory.
	log  *slog.Logger
}

// open takes the node's directory. A directory that cannot be written, and holds nothing,
// does not keep the node out of its cluster.
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

// warnOfModes logs which files and directories of the node other users may read or
// change. This does not keep the node out: such users have access to the machine already.
func (d *disk) warnOfModes(cfg Config) {
	for _, text := range []string{mutual.LooseKey(cfg.Transport.TLS.Key), mutual.LooseDirectory(cfg.Node.DataDir)} {
		if text != "" {
			d.log.Warn(text)
		}
	}
}

// remembered returns the record of an earlier process, and whether the disk keeps it.
func (d *disk) remembered() (r protocol.Record, durable bool) {
	if d.data == nil {
		return protocol.Record{}, false
	}
	return d.data.Record(), d.data.Writable()
}

// remember writes a record to the disk.
func (d *disk) remember(r protocol.Record) error { return d.data.Keep(r) }

// close releases the node's directory.
func (d *disk) close() {
	if d.data == nil {
		return
	}
	if err := d.data.Close(); err != nil {
		d.log.Warn("the data directory was closed with an error", "error", err)
	}
}
