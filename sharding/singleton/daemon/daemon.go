// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton/internal/background"
)

// MaxInstances is the largest number of instances.
const MaxInstances = 1000

// Config describes the instances.
type Config struct {
	// Name names them in the cluster: 1 to 128 bytes. They share one space of names with the kinds
	// of entities.
	Name string

	// Role limits them to nodes with this role. Empty: all nodes. It must be the same on all nodes.
	Role string

	// Instances is how many there are at first, 1 to 1,000. [Rescale] changes the number; what the cluster has said
	// counts, whatever a node that starts later has here.
	Instances int

	// Max is the largest number that [Rescale] may ask for, Instances to 1,000; the same on all nodes. Zero: Instances,
	// so that the number can become lower, and that again.
	Max int

	// Run is the work of one instance, by its number from 0. It runs from when this node takes the
	// instance over until its context ends, and should then return soon. An error before that, or a
	// panic, has it run again, at once the first time and after a rest from the second on:
	// sharding.entity-restart-backoff, doubling up to thirty times that; a run of a minute begins
	// the count anew. With nil before that the work is done: it runs again only when another node
	// takes the instance over, or with the next revision. A run whose context has ended with the standing of the node is
	// followed by another when that is regained.
	//
	// The epoch is a fencing token: higher than that of every node that had the instance before.
	Run func(ctx context.Context, number int, epoch sharding.Epoch) error

	// Work is Run for work that depends on how many instances there are. One of the two is set.
	Work func(ctx context.Context, i Instance) error

	// HandOverTimeout is how long Run may take to return when the instance is to move, before OnStuck
	// says how the move goes on. Zero: sharding.handoff-timeout.
	HandOverTimeout time.Duration

	// OnStuck says what becomes of a move when Run does not return within HandOverTimeout: with
	// [sharding.OnStuckAbort] it is called off and tried again, and no other instance starts before Run has
	// returned or the node is gone; with [sharding.OnStuckAbandon] the other node starts its instance then,
	// whatever Run does, which only the epoch tells from its successor. [Rescale] then goes on too, and is not
	// called off. Empty: as sharding.on-stuck says.
	OnStuck sharding.OnStuck

	// Log takes the failures of Run. Nil: [slog.Default].
	Log *slog.Logger
}

// Instance is one of the instances, as it knows itself.
type Instance struct {
	// Number is from 0 to Count-1.
	Number int
	// Count is how many instances there are, and Revision grows with each change of that by one, from 1 on. All
	// instances that run anywhere have the same two.
	Count    int
	Revision uint64
	// Epoch is a fencing token, as of Run.
	Epoch sharding.Epoch
}

// ErrConfig is wrapped by the errors of [Start] that say what is wrong with the configuration.
var ErrConfig = errors.New("daemon: the configuration is wrong")

// Start runs on a host the instances that live on its node, as soon as they do. The error wraps
// [ErrConfig], or is that of [sharding.Start].
func Start(h sharding.Host, c Config) error {
	if c.Max == 0 {
		c.Max = c.Instances
	}
	switch {
	case c.Run == nil && c.Work == nil:
		return fmt.Errorf("%w: %q has no Run: give it what it is to do", ErrConfig, c.Name)
	case c.Run != nil && c.Work != nil:
		return fmt.Errorf("%w: %q has Run and Work: give it one of them", ErrConfig, c.Name)
	case c.Instances < 1 || c.Instances > MaxInstances:
		return fmt.Errorf("%w: %q has %d instances, want 1 to %d", ErrConfig, c.Name, c.Instances, MaxInstances)
	case c.Max < c.Instances || c.Max > MaxInstances:
		return fmt.Errorf("%w: %q may have up to %d instances, want %d to %d", ErrConfig, c.Name, c.Max, c.Instances, MaxInstances)
	}
	work := c.Work
	if work == nil {
		work = func(ctx context.Context, i Instance) error { return c.Run(ctx, i.Number, i.Epoch) }
	}
	all := sharding.OnePerShard(c.Max)
	numbers := make(map[string]int, len(all))
	for i, id := range all {
		numbers[id] = i
	}
	return background.Start(h, background.Config{
		Noun: "daemon", Name: c.Name, Role: c.Role, Instances: all, Shards: c.Max, InUse: c.Instances,
		Run: func(ctx context.Context, id string, scale sharding.Scale, epoch sharding.Epoch) error {
			if scale.Count == 0 { // The coordinator is of a version in which the number was fixed.
				scale.Count = c.Instances
			}
			return work(ctx, Instance{Number: numbers[id], Count: scale.Count, Revision: scale.Revision, Epoch: epoch})
		},
		HandOverTimeout: c.HandOverTimeout, OnStuck: c.OnStuck, Log: c.Log,
	})
}

// Rescale changes the number of instances while they run, from 1 to [Config.Max], and returns when all nodes know it
// and the instances are about to start. Any node may be asked that has started them. First every instance is stopped,
// each within the hand-over limit; then the next revision is told to all nodes; then the instances start, with their
// new count. So no two instances of different revisions run at one time. A coordinator that dies or leaves meanwhile is
// no failure: its successor is asked again.
//
// The error is a [*sharding.ScaleError]. It wraps [sharding.ErrScaleBusy] if another change is under way or came first,
// [sharding.ErrScaleStuck] if an instance did not stop in time, after which all run as before (see [Config.OnStuck]),
// [sharding.ErrInvalid] for a number that cannot be, and [sharding.ErrScaleUnknown] if ctx ended meanwhile.
func Rescale(ctx context.Context, h sharding.Host, name string, instances int) (sharding.Scale, error) {
	return sharding.Rescale(ctx, h, name, instances)
}

// State returns how many instances there are, and whether a change is under way, as [sharding.ScaleOf] does.
func State(ctx context.Context, h sharding.Host, name string) (sharding.ScaleState, error) {
	return sharding.ScaleOf(ctx, h, name)
}
