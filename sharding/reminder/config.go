// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder

import (
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// Name is the kind of the buckets, and that of their records in the store: 1 to 128 bytes. All
	// nodes need the same.
	Name string `koanf:"name"`

	// Role limits the buckets to nodes with this role. Empty: all nodes. All nodes need the same.
	Role string `koanf:"role"`

	// ProxyOnly says that this node sets reminders and has no buckets.
	ProxyOnly bool `koanf:"proxy-only"`

	// InFlight is how many deliveries of one bucket are under way, or acknowledged and not yet saved, 2
	// to 10,000. As many are repeated when a node is lost.
	InFlight int `koanf:"in-flight" unit:"deliveries" range:"2..10000"`

	// AckTimeout is how long a delivery may take, above 0. After that it is repeated.
	AckTimeout time.Duration `koanf:"ack-timeout" range:">0s.."`

	// RetryMin is the pause after a delivery that was not acknowledged, above 0; it doubles up to
	// RetryMax.
	RetryMin time.Duration `koanf:"retry-min" range:">0s.."`

	// RetryMax is the longest such pause, at least RetryMin.
	RetryMax time.Duration `koanf:"retry-max" range:">0s.."`

	// State says how the store is called. MaxBytes must be 512 KiB at least.
	State state.Config `koanf:"state"`
}

// pageBytes bounds a page as it is written: its reminders, and a few bytes for each.
const pageBytes = 2 * buckets.MaxPageBytes

// Default returns the default configuration.
func Default() Config {
	return Config{
		Name: "reminders", InFlight: 64, AckTimeout: 10 * time.Second, RetryMin: time.Second, RetryMax: time.Minute,
		State: state.Default(),
	}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Name == "" || len(c.Name) > buckets.KindBytes, "name", "%d bytes, want 1 to %d", len(c.Name), buckets.KindBytes)
	faults.Add(field.Ranges(c))
	faults.Relate(c.RetryMax < c.RetryMin, "retry-max", "retry-min", "%v is below retry-min, which is %v", c.RetryMax, c.RetryMin)
	faults.Add(field.Within("state", c.State.Validate()))
	faults.Relate(c.State.MaxBytes < pageBytes, "state.max-bytes", "state.max-bytes", "%d is below %d, what a page may have", c.State.MaxBytes, pageBytes)
	return faults.Err()
}
