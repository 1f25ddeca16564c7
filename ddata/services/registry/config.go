// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// Consistency is for how many nodes registering and updating wait. "local", the
	// default: for none, since an entry is of no use longer than its node lives.
	// "majority": for more than half of those that hold the name. "all": for all of them.
	Consistency string `koanf:"consistency" oneof:"local|majority|all"`
}

// Default returns the default configuration.
func Default() Config { return Config{Consistency: "local"} }

// levels are the consistencies by their names.
func levels() map[string]ddata.Consistency {
	return map[string]ddata.Consistency{"local": ddata.Local(), "majority": ddata.Majority(), "all": ddata.All()}
}

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	_, known := levels()[c.Consistency]
	faults.Refuse(!known, "consistency", "%q is none of local, majority, all", c.Consistency)
	return faults.Err()
}

// WithConfig takes over what an operator has set, which was validated. An option behind it
// may override that.
func WithConfig(c Config) Option { return WithConsistency(levels()[c.Consistency]) }
