// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"github.com/quorate/quorate/config/field"
)

const (
	logBytesMin     = 64 << 10
	logBytesDefault = 16 << 20
)

// Config says where the store is and what it may take. Start from [Default].
type Config struct {
	// Dir is the directory of the store, for this store alone. It is made, for its owner
	// only, if it is not there. It must be given.
	Dir string `koanf:"dir"`

	// Cluster is the name of the cluster that the data is of, 1 to 255 bytes. It is
	// recorded when the store is made, and opening it for another cluster is refused.
	Cluster string `koanf:"-"`

	// LogBytes is after how many bytes the log is sorted into a run, from 64 KiB to 1
	// GiB. What the log holds is kept in memory too, at times twice as much. Lower,
	// files are rewritten more often; higher, a start reads a longer log.
	LogBytes int64 `koanf:"log-bytes" range:"65536..1073741824"`
}

// Default returns the settings without directory and cluster: a log of 16 MiB.
func Default() Config { return Config{LogBytes: logBytesDefault} }

// Paths returns pointers to the settings that are names of files, so that a caller can make them relative to a
// directory.
func (c *Config) Paths() []*string { return []*string{&c.Dir} }

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Dir == "", "dir", "none given")
	faults.Refuse(c.Cluster == "" || len(c.Cluster) > clusterBytes, "cluster", "the name has %d bytes, 1 to %d are allowed", len(c.Cluster), clusterBytes)
	faults.Add(field.Ranges(c))
	return faults.Err()
}
