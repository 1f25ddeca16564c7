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
	"github.com/quorate/quorate/sharding/internal/background"
)

// InstancesMax is the largest number of instances.
const InstancesMax = 1000

// Config describes the instances.
type Config struct {
	// Name names them in the cluster: 1 to 128 bytes. They share one space of names with the kinds
	// of entities.
	Name string

	// Role limits them to nodes with this role. Empty: all nodes. It must be the same on all nodes.
	Role string

	// Instances is how many there are, 1 to 1,000; the same on all nodes.
	Instances int

	// Run is the work of one instance, by its number from 0. It runs from when this node takes the
	// instance over until its context ends, and should then return soon. An error before that, or a
	// panic, has it run again, at once the first time and after a rest from the second on:
	// sharding.entity-restart-backoff, doubling up to thirty times that; a run of a minute begins
	// the count anew. With nil before that the work is done: it runs again only when another node
	// takes the instance over, or when this node has regained a standing that it had lost.
	//
	// The epoch is a fencing token: higher for each start of this instance in the cluster.
	Run func(ctx context.Context, number int, epoch sharding.Epoch) error

	// HandOverTimeout is how long Run may take to return when the instance is to move, before the
	// move is called off and tried again. Zero: sharding.handoff-timeout.
	HandOverTimeout time.Duration

	// Log takes the failures of Run. Nil: [slog.Default].
	Log *slog.Logger
}

// ErrConfig is wrapped by the errors of [Start] that say what is wrong with the configuration.
var ErrConfig = errors.New("daemon: the configuration is wrong")

// Start runs on a host the instances that live on its node, as soon as they do. The error wraps
// [ErrConfig], or is that of [sharding.Start].
func Start(h sharding.Host, c Config) error {
	switch {
	case c.Run == nil:
		return fmt.Errorf("%w: %q has no Run: give it what it is to do", ErrConfig, c.Name)
	case c.Instances < 1 || c.Instances > InstancesMax:
		return fmt.Errorf("%w: %q has %d instances, want 1 to %d", ErrConfig, c.Name, c.Instances, InstancesMax)
	}
	all := background.IDs(c.Instances)
	numbers := make(map[string]int, len(all))
	for i, id := range all {
		numbers[id] = i
	}
	return background.Start(h, background.Config{
		Noun: "daemon", Name: c.Name, Role: c.Role, Instances: all, Shards: c.Instances,
		Run: func(ctx context.Context, id string, epoch sharding.Epoch) error {
			return c.Run(ctx, numbers[id], epoch)
		},
		HandOverTimeout: c.HandOverTimeout, Log: c.Log,
	})
}
