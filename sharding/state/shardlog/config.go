// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardlog

import (
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/eventlog"
)

// Config is what an operator may set. Start from [Default]. All nodes need the same Name and Pages.
type Config struct {
	// Name is the kind of the records in the store, 1 to 128 bytes: no entity with a saved state may be
	// of a kind with this name.
	Name string `koanf:"name"`

	// Pages is how many records a shard has, 1 to 64. It cannot be changed while ids are remembered.
	Pages int `koanf:"pages" unit:"records" range:"1..64"`

	// State says how the store is called. MaxBytes must be 128 KiB at least.
	State state.Config `koanf:"state"`
}

// Default returns the default configuration.
func Default() Config { return Config{Name: "remembered", Pages: 4, State: state.Default()} }

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Name == "" || len(c.Name) > 128, "name", "%d bytes, want 1 to 128", len(c.Name))
	faults.Add(field.Ranges(c))
	faults.Refuse(c.State.MaxBytes < 2*eventlog.EventBytes, "state.max-bytes", "%d is below %d", c.State.MaxBytes, 2*eventlog.EventBytes)
	faults.Add(field.Within("state", c.State.Validate()))
	return faults.Err()
}
