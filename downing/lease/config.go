// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

// Config is what an operator sets. The zero value is not valid; start from [Default].
type Config struct {
	// TTL is how long a lease lasts after its holder has died, from 3 seconds to 5
	// minutes, in whole seconds. All keepers of a lease have the same TTL.
	TTL time.Duration `koanf:"ttl" range:"3s..5m"`

	// RenewInterval is the time from one renewal to the next, at least 50 milliseconds. With
	// two more attempts it must fit into the 95 % of the TTL that a holder uses.
	RenewInterval time.Duration `koanf:"renew-interval" range:"50ms..5m"`

	// RequestTimeout is how long the store may take for one answer, at least 100
	// milliseconds.
	RequestTimeout time.Duration `koanf:"request-timeout" range:"100ms..5m"`

	// RetryInterval is the pause after a call whose result is unknown, at least 50
	// milliseconds.
	RetryInterval time.Duration `koanf:"retry-interval" range:"50ms..5m"`
}

// Default returns leases of 20 seconds, renewed every 3, with 3 seconds for a call and
// a second before the next attempt.
func Default() Config {
	return Config{TTL: 20 * time.Second, RenewInterval: 3 * time.Second, RequestTimeout: 3 * time.Second, RetryInterval: time.Second}
}

// Validate reports every fault of c in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Add(field.Ranges(c))
	faults.Relate(c.TTL%time.Second != 0, "ttl", "ttl", "%v is not in whole seconds", c.TTL)
	if err := faults.Err(); err != nil {
		return err
	}
	needed := c.RenewInterval + 2*(c.RequestTimeout+c.RetryInterval)
	faults.Refuse(needed > protocol.Usable(c.TTL), "renew-interval",
		"with two more attempts of request-timeout and retry-interval it makes %v, and a holder uses %v of a ttl of %v",
		needed, protocol.Usable(c.TTL), c.TTL)
	return faults.Err()
}
