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

// Config describes work that runs without messages.
type Config struct {
	Noun      string   // What the caller calls it: "singleton"; the key of its name in the log.
	Name      string   // Of the kind.
	Role      string   // Of the kind.
	Instances []string // The ids of the instances.
	Shards    int      // Of the kind.
	InUse     int      // Of the kind.
	OnOldest  bool     // Of the kind.

	// Run is the work of one instance.
	Run func(ctx context.Context, id string, scale sharding.Scale, epoch sharding.Epoch) error

	HandOverTimeout time.Duration    // Of the kind: how long Run may take to return when the instance is to move.
	OnStuck         sharding.OnStuck // Of the kind: how the move goes on when it takes longer.
	Lease           *lease.Keeper    // Is held while Run runs; nil: none.
	Log             *slog.Logger     // Nil: [slog.Default].
}

// ErrLeaseLost is the cause with which the context of Run ends when the lease is lost.
var ErrLeaseLost = errors.New("the lease is lost")

// Start runs the instances that live on this node, as soon as they do. They end with the host. The error
// is that of [sharding.Start].
func Start(h sharding.Host, c Config) error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = machine.LimitLog(c.Log)
	j := &job{Config: c, started: make(chan struct{})}
	region, err := sharding.Start(h, sharding.Kind[*news]{
		Name: c.Name, Role: c.Role, Codec: nothing{}, HandoffTimeout: c.HandOverTimeout, OnStuck: c.OnStuck,
		Shards: c.Shards, InUse: c.InUse, Permanent: c.Instances, OnOldest: c.OnOldest,
		New: func(*sharding.Context) sharding.Entity[*news] { return &instance{job: j} },
	})
	if err != nil {
		return err
	}
	j.region = region
	close(j.started)
	return nil
}
