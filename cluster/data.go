// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/membership"
)

// openStore opens the store of durable keys in a directory, for a cluster.
type openStore func(ctx context.Context, dir, cluster string) (store.Store, error)

// WithData passes options to the replicated data of the node, such as [ddata.WithTypes] for
// types of the program's own.
func WithData(opts ...ddata.Option) Option {
	return func(o *options) { o.data = append(o.data, opts...) }
}

// WithStore sets how the store of durable keys is opened, such as durable.OpenIn of the
// module ddata/durable. Without it a configuration with durable keys is refused. The node
// closes the store when it ends.
func WithStore(open func(ctx context.Context, dir, cluster string) (store.Store, error)) Option {
	return func(o *options) { o.store = open }
}

// resolveData makes the directory of durable keys relative to the file.
func resolveData(c *Config, path func(string) string) { c.Data.Dir = path(c.Data.Dir) }

// validateData refuses durable keys that have no directory.
func (c Config) validateData() error {
	if key := c.durableKey(); key != "" && c.Data.Dir == "" && c.Node.DataDir == "" {
		return field.Relate(field.Errorf(key, "durable keys need a directory: set node.data-dir, or ddata.dir"), "node.data-dir", "ddata.dir")
	}
	return nil
}

// durableKey returns the setting by which a node has to hold durable keys, "" if it holds none.
func (c Config) durableKey() string {
	holds := func(role string) bool { return role == "" || slices.Contains(c.Node.Roles, role) }
	if len(c.Data.Durable) > 0 && holds(c.Data.Role) {
		return "ddata.durable"
	}
	for i, g := range c.Data.Groups {
		if g.Durable && holds(cmp.Or(g.Role, c.Data.Role)) {
			return fmt.Sprintf("ddata.groups.[%d].durable", i)
		}
	}
	return ""
}

func dataSettings(c configuration) []membership.Setting { return c.Data.Settings() }

// startData starts the replicated data on the membership. It returns when the durable keys
// of this node are loaded.
func startData(_ context.Context, b *builder) (err error) {
	opts := []ddata.Option{ddata.WithLogger(b.log), ddata.WithMeterProvider(b.meters)}
	if b.options.store != nil {
		opts = append(opts, ddata.WithStore(b.options.store))
	}
	if b.data, err = ddata.New(b.member, b.cfg.Data, append(opts, b.options.data...)...); err != nil {
		return err
	}
	close(b.dataStarted)
	b.shown = dataRoutes{data: b.data, self: b.Self().String()}
	return nil
}

// stopData waits for the end of the replicated data, which ends with the membership below
// it: of the two, membership ends first.
func stopData(ctx context.Context, n *Node) error {
	return errors.Join(n.member.Close(), n.data.AwaitEnd(ctx))
}
