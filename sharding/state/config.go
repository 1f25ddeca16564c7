// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"github.com/quorate/quorate/config/field"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// CallTimeout bounds one call of the store, above 0. A call that takes longer is repeated, so it
	// should be well above what a slow but healthy store takes.
	CallTimeout time.Duration `koanf:"call-timeout" range:">0s.."`

	// Limit is how long a load or a save is tried before the entity fails, at least CallTimeout.
	// Messages to the entity wait meanwhile.
	Limit time.Duration `koanf:"limit" range:">0s.."`

	// Pause is the time between two attempts at first, above 0; it doubles up to PauseMost.
	Pause time.Duration `koanf:"pause" range:">0s.."`

	// PauseMost is the longest time between two attempts, at least Pause.
	PauseMost time.Duration `koanf:"pause-most" range:">0s.."`

	// Batch is how many entities one call loads or saves at most, 1 to 10,000.
	Batch int `koanf:"batch" unit:"entities" range:"1..10000"`

	// Calls is how many calls of a kind, loads or saves, are under way at one time, 1 to 1,000. While
	// all hang, other entities wait.
	Calls int `koanf:"calls" unit:"calls" range:"1..1000"`

	// MaxBytes bounds one encoded state, or event, 1 to 1,073,741,824. Stores have bounds of their own.
	MaxBytes int `koanf:"max-bytes" unit:"bytes" range:"1..1073741824"`

	// SnapshotEvery is after how many events the whole state is saved in place of further events, at
	// least 1: as many are read when an entity starts.
	SnapshotEvery int `koanf:"snapshot-every" unit:"events" range:"1.."`
}

// Default returns the default configuration.
func Default() Config {
	return Config{
		CallTimeout: 3 * time.Second, Limit: 15 * time.Second,
		Pause: 50 * time.Millisecond, PauseMost: 2 * time.Second,
		Batch: 256, Calls: 4, MaxBytes: 1 << 20, SnapshotEvery: 100,
	}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Relate(c.Limit < c.CallTimeout, "limit", "call-timeout", "%v is below call-timeout, which is %v", c.Limit, c.CallTimeout)
	faults.Relate(c.PauseMost < c.Pause, "pause-most", "pause", "%v is below pause, which is %v", c.PauseMost, c.Pause)
	return faults.Err()
}
