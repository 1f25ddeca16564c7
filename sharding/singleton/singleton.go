// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton/internal/background"
)

// id is the id of the one entity of the kind.
const id = "singleton"

// Config describes a singleton that works by itself.
type Config struct {
	// Name names the singleton in the cluster: 1 to 128 bytes. Singletons and kinds of entities
	// share one space of names.
	Name string

	// Role limits the singleton to nodes with this role. Empty: all nodes. It must be the same on
	// all nodes.
	Role string

	// Run is the work. It runs from when this node takes the instance over until its context
	// ends, and should then return soon. An error before that, or a panic, has it run again, at
	// once the first time and after a rest from the second on: sharding.entity-restart-backoff,
	// doubling up to thirty times that; a run of a minute begins the count anew. With nil before
	// that the work is done: it runs again only when another node takes the instance over. A run
	// whose context has ended with the standing of the node is followed by another when that is
	// regained.
	//
	// The epoch is a fencing token: higher than that of every node that had the instance before.
	Run func(ctx context.Context, epoch sharding.Epoch) error

	// HandOverTimeout is how long Run may take to return when the instance is to move, before OnStuck
	// says how the move goes on. Zero: sharding.handoff-timeout.
	HandOverTimeout time.Duration

	// OnStuck says what becomes of a move when Run does not return within HandOverTimeout: with
	// [sharding.OnStuckAbort] it is called off and tried again, and no other instance starts before Run has
	// returned or the node is gone; with [sharding.OnStuckAbandon] the other node starts its instance then,
	// whatever Run does, which only the epoch tells from its successor. Empty: as sharding.on-stuck says.
	OnStuck sharding.OnStuck

	// Lease is held while Run runs, for work that must not meet its successor even where it outlives
	// its context: in a store that another instance of the work asks as well. Run begins when
	// the lease is held, and its context ends when the holding does. A lease that another holds, or
	// that cannot be asked for, is a failure, after which Run rests. Nil: none. The keeper
	// belongs to the caller, who closes it when the host has ended, and gives it to one singleton.
	Lease *lease.Keeper

	// Log takes the failures of Run. Nil: [slog.Default].
	Log *slog.Logger
}

var (
	// ErrNoWork says that a singleton has no Run.
	ErrNoWork = errors.New("singleton: Run is nil")
	// ErrLeaseLost is the cause with which the context of Run ends when [Config.Lease] is lost.
	ErrLeaseLost = background.ErrLeaseLost
)

// Start runs a singleton on a host, as soon as this node is the one to run it. It ends with the
// host. The error is [ErrNoWork], or that of [sharding.Start].
func Start(h sharding.Host, c Config) error {
	if c.Run == nil {
		return fmt.Errorf("%w: give the singleton %q what it is to do", ErrNoWork, c.Name)
	}
	return background.Start(h, background.Config{
		Noun: "singleton", Name: c.Name, Role: c.Role, Instances: []string{id}, Shards: 1, OnOldest: true,
		Run: func(ctx context.Context, _ string, _ sharding.Scale, epoch sharding.Epoch) error {
			return c.Run(ctx, epoch)
		},
		HandOverTimeout: c.HandOverTimeout, OnStuck: c.OnStuck, Lease: c.Lease, Log: c.Log,
	})
}

// of makes a kind that of a singleton.
func of[C any](k sharding.Kind[C]) sharding.Kind[C] {
	k.Shards, k.Permanent, k.OnOldest = 1, []string{id}, true
	return k
}

// Every returns work that calls f at once and then at an interval above 0, without overlaps: a call
// that takes longer than the interval is followed by the next one at once. The work ends with the
// first error of f.
func Every(interval time.Duration, f func(ctx context.Context, epoch sharding.Epoch) error) func(context.Context, sharding.Epoch) error {
	return func(ctx context.Context, epoch sharding.Epoch) error {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			if err := f(ctx, epoch); err != nil {
				return err
			}
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil { // Also where the interval is over as well.
				return context.Cause(ctx)
			}
		}
	}
}

// Proxy is the way from one node to a singleton that takes messages.
type Proxy[C any] struct{ region *sharding.Region[C] }

// StartEntity runs an entity as a singleton on a host. The entity is started without a message, by
// [sharding.Starter] if it has that, and is never stopped for being idle. The fields Shards,
// Permanent and OnOldest of the kind are not used. A node that only sends sets ProxyOnly.
func StartEntity[C any](h sharding.Host, k sharding.Kind[C]) (*Proxy[C], error) {
	region, err := sharding.Start(h, of(k))
	if err != nil {
		return nil, err
	}
	return &Proxy[C]{region}, nil
}

// Tell sends a message to the singleton, see [sharding.Region.Tell].
func (p *Proxy[C]) Tell(ctx context.Context, message C) error { return p.region.Tell(ctx, id, message) }

// Ask sends a message to the singleton and waits for its reply, see [sharding.Ask].
func Ask[R, C any](ctx context.Context, p *Proxy[C], message C) (R, error) {
	return sharding.Ask[R](ctx, p.region, id, message)
}
