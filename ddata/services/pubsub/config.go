// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"cmp"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/transport"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// MaxMessageBytes bounds the encoding of a message, 0 or more. 0, the default: what
	// fits into a frame of transport.max-frame-bytes. No message can be larger than that.
	MaxMessageBytes int `koanf:"max-message-bytes" unit:"bytes" range:"0.."`
}

// Default returns the default configuration.
func Default() Config { return Config{} }

// headBytes is what a message may need beside its data: topic, groups and lengths.
const headBytes = 4 << 10

// fits is the largest message that fits into a frame.
func fits(t transport.Config) int { return t.MaxMessageBytes() - headBytes }

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	return field.Ranges(c)
}

// ValidateBeside reports, as a [field.Error], a bound that is above what fits into a frame.
func (c Config) ValidateBeside(t transport.Config) error {
	var faults field.Faults
	faults.Refuse(c.MaxMessageBytes > fits(t), "max-message-bytes", "%d is more than fits into a frame beside what a message needs, %d bytes: see transport.max-frame-bytes", c.MaxMessageBytes, fits(t))
	return faults.Err()
}

// WithConfig takes over what an operator has set, which was validated, for a node with a
// transport. An option behind it may override that.
func WithConfig(c Config, t transport.Config) Option {
	return WithMaxMessageBytes(cmp.Or(c.MaxMessageBytes, fits(t)))
}
