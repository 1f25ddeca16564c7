// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"time"

	"github.com/quorate/quorate/config/field"
)

// Config is the section "discovery-file" of a node. With a path and nothing else the file is
// read at each lookup, and new content counts at once; start from [Default].
type Config struct {
	// Path is the path of the file, which need not exist before the first lookup. The path
	// must be given.
	Path string `koanf:"path"`

	// Interval is for how long an answer is given again before the file is read anew, from
	// 0 to 1 hour. A change of the file is seen after that time at the latest.
	Interval time.Duration `koanf:"interval" range:"0s..1h"`

	// Settle is how long new content must stay as it is before it counts, from 0 to 10
	// seconds; 0: it counts at once, which is right where the file is only ever renamed
	// into its place. If the time is too long, a lookup runs into its limit.
	Settle time.Duration `koanf:"settle" range:"0s..10s"`
}

// Default returns the settings without a path: read once a second, content that stayed
// for 100 milliseconds.
func Default() Config {
	return Config{Interval: time.Second, Settle: 100 * time.Millisecond}
}

// Paths returns pointers to the names of files, for a caller that makes these relative to a
// directory.
func (c *Config) Paths() []*string { return []*string{&c.Path} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Path == "", "path", "none given")
	faults.Add(field.Ranges(c))
	return faults.Err()
}
