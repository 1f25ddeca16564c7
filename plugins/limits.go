// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// NoLimit in place of a limit means that there is none.
const NoLimit = -1

// Bounds of the limits.
const (
	memoryLeast = 128 << 20
	tasksLeast  = 16
)

// Limits bound what the process of a plugin may use of its machine. Zero means the default.
// A process that reaches a limit is the plugin's own fault like a crash: it ends and is
// replaced. Both limits are kept on Linux alone; package host says what the present system
// does not keep.
type Limits struct {
	// MemoryBytes is how much memory for data each process of the plugin may have, as
	// Linux counts it for RLIMIT_DATA: what it has mapped privately and writable, used or
	// not, and so somewhat more than what tools show as resident. 128 MiB or more, by
	// default 2 GiB; -1 for no limit.
	MemoryBytes int64 `koanf:"memory-bytes" unit:"bytes" range:"-1.."`
	// Tasks is how many processes and threads the plugin may have, with everything that
	// it has started: 16 or more, by default 512; -1 for no limit. They are counted five
	// times a second, and if they are more the plugin is killed with all of them. If the
	// plugin has a user of its own, the kernel keeps the number besides, for all
	// processes of that user together.
	Tasks int `koanf:"tasks" unit:"processes and threads" range:"-1.."`
}

// DefaultLimits returns the limits of a plugin that names none.
func DefaultLimits() Limits { return Limits{MemoryBytes: 2 << 30, Tasks: 512} }

// WithDefaults returns l with the default in place of every limit that is zero.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	return Limits{MemoryBytes: cmp.Or(l.MemoryBytes, d.MemoryBytes), Tasks: cmp.Or(l.Tasks, d.Tasks)}
}

// validate returns the faults of the limits, each with its key in the plugin's section.
func (l Limits) validate() error {
	var faults field.Faults
	d := l.WithDefaults()
	faults.Refuse(d.MemoryBytes != NoLimit && d.MemoryBytes < memoryLeast, "limits.memory-bytes", "%d is neither %d or more nor %d for no limit", d.MemoryBytes, memoryLeast, NoLimit)
	faults.Refuse(d.Tasks != NoLimit && d.Tasks < tasksLeast, "limits.tasks", "%d is neither %d or more nor %d for no limit", d.Tasks, tasksLeast, NoLimit)
	return faults.Err()
}

// validateUser returns the faults of the user and the group.
func (c Config) validateUser() error {
	var faults field.Faults
	faults.Refuse(strings.ContainsAny(c.User, "\x00:\n"), "user", "%q is the name of no user", c.User)
	faults.Refuse(strings.ContainsAny(c.Group, "\x00:\n"), "group", "%q is the name of no group", c.Group)
	return faults.Err()
}
