// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding/protocol"
)

// Config is what an operator may set. Start from [Default].
type Config struct {
	// NumberOfShards is the number of shards of kinds that give none, 1 to
	// 65,536. All nodes need the same; it can change only while the whole
	// cluster is stopped.
	NumberOfShards int `koanf:"number-of-shards"`

	// Allocation says how shards are given to nodes.
	Allocation allocation.Config `koanf:"allocation"`

	// MailboxSize bounds the messages that wait for one entity, at least 1.
	// Further ones end with ErrOverloaded.
	MailboxSize int `koanf:"mailbox-size"`

	// WindowBytes bounds what one node has sent to one shard without an
	// acknowledgement, at least 4 KiB. Tell waits when it is full.
	WindowBytes int `koanf:"window-bytes"`

	// TransitBytes bounds what waits on a node for a shard that is on its way
	// between two homes, at least 4 KiB. What is over is sent again by its
	// origin.
	TransitBytes int `koanf:"transit-bytes"`

	// MaxMessageBytes bounds one encoded message, 1 to 3,145,728.
	MaxMessageBytes int `koanf:"max-message-bytes"`

	// RetryInterval is the time after which an unanswered request between
	// regions and coordinator is repeated, above 0.
	RetryInterval time.Duration `koanf:"retry-interval"`

	// HandoffTimeout is how long a shard may take to stop before its move is
	// called off, above 0.
	HandoffTimeout time.Duration `koanf:"handoff-timeout"`

	// EntityRestartBackoff is how long an entity that could not start fails its
	// messages before the next try, the first time; it doubles up to thirty
	// times that. Above 0.
	EntityRestartBackoff time.Duration `koanf:"entity-restart-backoff"`
}

// Default returns the default configuration.
func Default() Config {
	return Config{
		NumberOfShards:       1000,
		Allocation:           allocation.Default(),
		MailboxSize:          1000,
		WindowBytes:          256 << 10,
		TransitBytes:         256 << 10,
		MaxMessageBytes:      1 << 20,
		RetryInterval:        time.Second,
		HandoffTimeout:       time.Minute,
		EntityRestartBackoff: time.Second,
	}
}

// FieldError is a fault of one field of a [Config].
type FieldError struct{ field, text string }

// Error describes the fault, beginning with the key of the field.
func (e *FieldError) Error() string { return e.field + ": " + e.text }

// Field returns the key of the field as in a configuration file.
func (e *FieldError) Field() string { return e.field }

// messageBytesMax leaves room for the envelope in a frame of the default size.
const messageBytesMax = 3 << 20

// Validate reports every fault in one error.
func (c Config) Validate() error {
	var faults []error
	within := func(key string, value, low, high int) {
		if value < low || value > high {
			faults = append(faults, &FieldError{key, fmt.Sprintf("%d is not in the range from %d to %d", value, low, high)})
		}
	}
	positive := func(key string, d time.Duration) {
		if d <= 0 {
			faults = append(faults, &FieldError{key, fmt.Sprintf("%v is not above 0", d)})
		}
	}
	within("number-of-shards", c.NumberOfShards, 1, protocol.MaxShards)
	within("mailbox-size", c.MailboxSize, 1, 1<<24)
	within("window-bytes", c.WindowBytes, 4<<10, 1<<30)
	within("transit-bytes", c.TransitBytes, 4<<10, 1<<30)
	within("max-message-bytes", c.MaxMessageBytes, 1, messageBytesMax)
	positive("retry-interval", c.RetryInterval)
	positive("handoff-timeout", c.HandoffTimeout)
	positive("entity-restart-backoff", c.EntityRestartBackoff)
	if err := c.Allocation.Validate(); err != nil {
		faults = append(faults, &FieldError{"allocation", err.Error()})
	}
	return errors.Join(faults...)
}
