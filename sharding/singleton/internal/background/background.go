// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding"
)

// Config describes a function and its instances, which are the entities of a kind.
type Config struct {
	Noun string // What the caller's users call it, such as "singleton": the key of Name in the log.

	// These are the fields of [sharding.Kind]; Instances are its permanent entities.
	Name            string
	Role            string
	Instances       []string
	Shards          int
	InUse           int
	OnOldest        bool
	HandOverTimeout time.Duration // How long Run may take to return when its instance is to move.
	OnStuck         sharding.OnStuck

	// Run is the function, called for one instance by its id.
	Run func(ctx context.Context, id string, scale sharding.Scale, epoch sharding.Epoch) error

	Lease *lease.Keeper // Is held while Run runs; nil: none.
	Log   *slog.Logger  // Nil: [slog.Default].
}

// ErrLeaseLost is the cause with which the context of Run ends when the lease is lost.
var ErrLeaseLost = errors.New("the lease is lost")

// Start runs the instances that live on this node, from when they do. They end with the host. The error
// is that of [sharding.Start].
func Start(h sharding.Host, c Config) error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = machine.LimitLog(c.Log)
	j := &job{Config: c, started: make(chan struct{})}
	region, err := sharding.Start(h, sharding.Kind[*notice]{
		Name: c.Name, Role: c.Role, Codec: noticeCodec{}, HandoffTimeout: c.HandOverTimeout, OnStuck: c.OnStuck,
		Shards: c.Shards, InUse: c.InUse, Permanent: c.Instances, OnOldest: c.OnOldest,
		New: func(*sharding.Context) sharding.Entity[*notice] { return &instance{job: j} },
	})
	if err != nil {
		return err
	}
	j.region = region
	close(j.started)
	return nil
}
