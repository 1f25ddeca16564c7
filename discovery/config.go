// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/config/field"
)

// ErrUnknownMethod is wrapped by the error of [New] for a method that the
// configuration names and that was not given to New.
var ErrUnknownMethod = errors.New("unknown method")

// Config is the section "discovery" of a configuration file. The zero value is
// not valid; start from [Default].
type Config struct {
	// Methods are the names of the methods to ask, in order: "static", or the
	// names of those that the program adds. There must be at least one.
	Methods []string `koanf:"methods" known:"static"`

	// Endpoints is the list of the method "static": "host:port" each. Empty, that
	// method finds nothing.
	Endpoints []string `koanf:"endpoints"`

	// LookupTimeout is how long each method may take for a lookup, above zero and
	// at most 5 minutes. If the time is too short, a slow method never answers; if it is
	// too long, a method that hangs delays the methods after it.
	LookupTimeout time.Duration `koanf:"lookup-timeout" range:">0s..5m"`
}

// Default returns the settings with the empty list as the only method, and 3
// seconds for a lookup.
func Default() Config {
	return Config{Methods: []string{MethodStatic}, LookupTimeout: 3 * time.Second}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(len(c.Methods) == 0, "methods", "none given")
	seen := make(map[string]bool, len(c.Methods))
	for i, name := range c.Methods {
		faults.Refuse(name == "", "methods", "entry %d is empty", i)
		faults.Refuse(name != "" && seen[name], "methods", "%q is given twice", name)
		seen[name] = true
	}
	faults.Add(field.Ranges(c))
	if len(c.Endpoints) > MaxTargets {
		faults.Add(field.Errorf("endpoints", "%d are more than %d", len(c.Endpoints), MaxTargets))
	} else if _, err := NewStatic(c.Endpoints); err != nil {
		for _, fault := range field.Parts(err) {
			faults.Add(field.Errorf("endpoints", "%w", fault))
		}
	}
	return faults.Err()
}

// New returns the aggregate of the methods that the configuration names, taken
// from the given methods and the built-in "static". A method that is given and not named
// is not used. The error wraps [ErrUnknownMethod] if a method is named and not given.
func New(config Config, methods ...Method) (*Aggregate, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	list, err := NewStatic(config.Endpoints)
	if err != nil {
		return nil, err
	}
	methods = append([]Method{{Name: MethodStatic, Discovery: list}}, methods...)
	// An aggregate of all methods also reports what is wrong with one that is not named.
	if _, err := NewAggregate(config.LookupTimeout, methods...); err != nil {
		return nil, err
	}
	byName := make(map[string]Method, len(methods))
	known := make([]string, len(methods))
	for i, m := range methods {
		byName[m.Name], known[i] = m, m.Name
	}
	var chosen []Method
	var faults []error
	for _, name := range config.Methods {
		m, ok := byName[name]
		if !ok {
			faults = append(faults, fmt.Errorf("discovery: methods: %w %q, known are %s",
				ErrUnknownMethod, name, strings.Join(known, ", ")))
			continue
		}
		chosen = append(chosen, m)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return NewAggregate(config.LookupTimeout, chosen...)
}
