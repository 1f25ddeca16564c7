// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import "github.com/quorate/quorate/config/field"

// Kind is the name of this store in a configuration.
const Kind = "file"

// Config is what an operator sets. The zero value is not valid.
type Config struct {
	// Directory is the directory of the leases, on a local disk, the same for all processes.
	// It is made if it is not there.
	Directory string `koanf:"directory"`
}

// Default returns the settings without the directory.
func Default() Config { return Config{} }

// Paths returns a pointer to the directory, for a caller that makes it relative to another
// one.
func (c *Config) Paths() []*string { return []*string{&c.Directory} }

// Validate reports a directory that is missing, as a [field.Error].
func (c Config) Validate() error {
	if c.Directory == "" {
		return field.Errorf("directory", "must be set: a directory on a local disk, the same for all nodes of this machine")
	}
	return nil
}

// Open returns the store of a configuration. Unlike that of [New] it has a lease last for its
// TTL when the process of its holder ends without giving it back: whoever comes next waits for
// so long, see [ErrUndecided].
func Open(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s, err := New(c.Directory)
	if err == nil {
		s.lasts = true
	}
	return s, err
}
