// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/wire"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine"
)

// The durable groups on this node: load opens the store and reads all of them before the
// machine is built, and persist writes what the machine wants to have written.

// disk opens, reads and writes the store of this node.
type disk struct {
	r     *Replicator
	open  func(ctx context.Context, dir, cluster string) (store.Store, error) // Nil if the program has given none.
	store store.Store                                                         // Nil if this node holds no durable keys.

	renewing sync.Mutex // Held while the store is given another id.
}

// close gives the store back.
func (d *disk) close() {
	if d.store == nil {
		return
	}
	if err := d.store.Close(); err != nil {
		d.r.log.Warn("the store of durable keys was closed with an error", "error", err)
	}
}

// load opens the store if this node holds durable keys, and reads them.
func (d *disk) load() error {
	var durable []*group
	for _, g := range d.r.groups {
		if g.durable && g.replica != 0 {
			durable = append(durable, g)
		}
	}
	if len(durable) == 0 {
		return nil
	}
	if d.open == nil {
		return field.Errorf("durable", "%w", ErrNoStore)
	}
	dir := d.r.cfg.Dir
	if dir == "" && d.r.node.DataDir() != "" {
		dir = filepath.Join(d.r.node.DataDir(), "ddata")
	}
	if dir == "" {
		return field.Errorf("dir", "is empty, and so is node.data-dir: durable keys need a directory")
	}
	// Loading ends early when the node does. The goroutine is owned by load.
	ctx, cancel := context.WithCancel(d.r.ctx)
	defer cancel()
	d.r.workers.Go(func() {
		select {
		case <-d.r.node.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	s, err := d.open(ctx, dir, d.r.node.ClusterName())
	if err != nil {
		return fmt.Errorf("the store of durable keys: %w", err)
	}
	d.store = s
	for _, g := range durable {
		if err := d.loadGroup(ctx, g); err != nil {
			return fmt.Errorf("the durable keys %q: %w", g.name, err)
		}
	}
	return nil
}

// progress is after how long loading says how far it is.
const progress = 5 * time.Second

// loadGroup reads a group into its table. What was stored must fit.
func (d *disk) loadGroup(ctx context.Context, g *group) error {
	g.replica, g.fresh = protocol.ReplicaID(d.store.ID()), d.store.Starts() == 1
	began := time.Now()
	told, records := began, 0
	meta := func(b []byte) (err error) {
		g.meta, err = wire.DecodeMeta(b)
		return err
	}
	err := d.store.Load(ctx, g.name, meta, func(rec store.Record) error {
		entry, err := wire.DecodeRecord(d.r.types, rec.Key, rec.Value)
		if err != nil {
			return fmt.Errorf("key %q: %w", rec.Key, err)
		}
		if _, err := g.table.Join(entry); err != nil {
			return fmt.Errorf("key %q: %w", rec.Key, publicly(err))
		}
		if records++; time.Since(told) >= progress {
			told = time.Now()
			d.r.log.InfoContext(ctx, "loading durable keys", "keys", g.name, "loaded", records)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The table has noted all of them as changed: they are written already.
	for n := 1; n > 0; {
		n = len(g.table.Changed(1 << 16))
	}
	d.r.log.InfoContext(ctx, "durable keys are loaded", "keys", g.name, "loaded", records, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// finish writes what a machine leaves to be written. Without it the next start takes the end of
// this node for a crash.
func (d *disk) finish(last []protocol.WriteBatch) {
	ctx, cancel := context.WithTimeout(d.r.ctx, protocol.DefaultTiming().Store)
	defer cancel()
	for _, p := range last {
		if err := d.persist(ctx, p); err != nil {
			d.r.log.Error("the last changes of durable keys are not on disk", "keys", p.Group, "error", err)
		}
	}
}

// call carries out what the machine wants of the store, on a goroutine of the driver for calls.
func (d *disk) call(ctx context.Context, _ string, c machine.Call) (any, error) {
	switch r := c.Request.(type) {
	case protocol.WriteBatch:
		return nil, d.persist(ctx, r)
	case protocol.RenewID:
		return d.renew(ctx, r.Of)
	default:
		return nil, fmt.Errorf("ddata: a call to port %q with a %T", c.Port, c.Request)
	}
}

// renew gives the store another id, unless an earlier call has done so that came too late.
func (d *disk) renew(ctx context.Context, of protocol.ReplicaID) (protocol.ReplicaID, error) {
	d.renewing.Lock()
	defer d.renewing.Unlock()
	if d.store.ID() == uint64(of) {
		if err := d.store.NewID(ctx); err != nil {
			return 0, fmt.Errorf("ddata: the store gets no other id: %w", err)
		}
	}
	return protocol.ReplicaID(d.store.ID()), nil
}

// persist writes a batch. A group has one call at a time; the store gathers the calls of
// several groups.
func (d *disk) persist(ctx context.Context, p protocol.WriteBatch) error {
	b := store.Batch{Group: p.Group, Meta: wire.AppendMeta(nil, p.Meta), Drop: p.Drop, Wipe: p.Wipe, Aside: p.Aside}
	for _, e := range p.Entries {
		value, err := wire.AppendRecord(nil, e)
		if err != nil {
			return fmt.Errorf("ddata: key %q: %w", e.Key, err)
		}
		b.Put = append(b.Put, store.Record{Key: e.Key, Value: value})
	}
	var before []string
	if p.Aside {
		before = d.store.Asides()
	}
	err := d.store.Apply(ctx, []store.Batch{b})
	d.persisted(err)
	if err == nil && p.Aside {
		for _, file := range d.store.Asides() {
			if !slices.Contains(before, file) {
				d.r.log.WarnContext(ctx, "durable keys were put aside; look at the file, and remove it when nothing in it is missed", "keys", p.Group, "file", file)
			}
		}
	}
	return err
}

// persisted counts what the store does, and logs when it begins to fail and when it works
// again.
func (d *disk) persisted(err error) {
	switch failing := err != nil; {
	case failing && !d.r.counters.storeFailing.Swap(true):
		d.r.log.Error("the store of durable keys does not write: durable keys are not confirmed until it does", "error", err)
	case !failing && d.r.counters.storeFailing.Swap(false):
		d.r.log.Info("the store of durable keys writes again")
	}
}
