// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// Config says how a producer works. [Default] returns a usable one.
type Config struct {
	// Codec encodes the messages: that which the kind gave to [Codec]. Nil: [sharding.Protobuf].
	Codec sharding.Codec

	// Messages and Bytes are how much a producer holds at most that is not confirmed: 1 to
	// 10,000,000 messages, and bytes of encoded messages from 1 on. One message may have more than Bytes.
	Messages, Bytes int

	// PerEntity is how many of them may be for one entity, from 1 to Messages, so that an entity that
	// confirms nothing leaves room for others.
	PerEntity int

	// MessageBytes bounds one encoded message, 1 to 3,000,000. With 100 bytes to spare it
	// must be within sharding.max-message-bytes: a larger message is refused by the region at each attempt.
	MessageBytes int

	// Frame and FrameBytes bound what goes to an entity at one time: 1 to [MaxFrame] messages, and
	// bytes from 1 to MessageBytes; a message that is larger goes alone. The window of the entity bounds it as well.
	Frame, FrameBytes int

	// Calls is how many entities are served at the same moment, 1 to 100,000. An entity that does
	// not answer takes one of them for Timeout, again and again.
	Calls int

	// Timeout is how long an entity may take to handle a frame and acknowledge it, from 1 ms on, before
	// it is sent again.
	Timeout time.Duration

	// RetryMin and RetryMax bound the pause before something is sent again, from 1 ms on: RetryMin after the
	// first failure in a row, and double with each further one. Of each pause a random part of up to a
	// half is left out.
	RetryMin, RetryMax time.Duration

	// Queue keeps what is accepted until it is confirmed. Nil: what is not confirmed when the
	// producer ends, or its process, is lost.
	Queue Queue

	// Rand spreads the pauses; nobody else uses it. Nil: a source that differs with each producer.
	Rand *rand.Rand

	// Log takes what goes wrong for long. Nil: [slog.Default].
	Log *slog.Logger
}

// Default returns a configuration for messages of up to 256 KiB: 10,000 of them are held, 1,000 for one
// entity.
func Default() Config {
	return Config{
		Messages: 10_000, Bytes: 64 << 20, PerEntity: 1000,
		MessageBytes: 256 << 10, Frame: 100, FrameBytes: 64 << 10,
		Calls: 64, Timeout: 10 * time.Second, RetryMin: 200 * time.Millisecond, RetryMax: 30 * time.Second,
	}
}

// ErrConfig is wrapped by the errors of [NewProducer] that say what is wrong with the configuration.
var ErrConfig = errors.New("delivery: the configuration is wrong")

// validate reports every fault.
func (c Config) validate() error {
	var faults []error
	within := func(name string, value, most int) {
		if value < 1 || value > most {
			faults = append(faults, fmt.Errorf("%w: %s is %d, want 1 to %d", ErrConfig, name, value, most))
		}
	}
	within("Messages", c.Messages, 10_000_000)
	within("Bytes", c.Bytes, 1<<40)
	within("PerEntity", c.PerEntity, max(c.Messages, 1))
	within("MessageBytes", c.MessageBytes, 3_000_000)
	within("Frame", c.Frame, MaxFrame)
	within("FrameBytes", c.FrameBytes, max(c.MessageBytes, 1))
	within("Calls", c.Calls, 100_000)
	if c.Timeout < time.Millisecond {
		faults = append(faults, fmt.Errorf("%w: Timeout is %v, want 1ms or more", ErrConfig, c.Timeout))
	}
	if c.RetryMin < time.Millisecond || c.RetryMax < c.RetryMin {
		faults = append(faults, fmt.Errorf("%w: RetryMin is %v and RetryMax %v, want 1ms or more, and the second no less than the first",
			ErrConfig, c.RetryMin, c.RetryMax))
	}
	return errors.Join(faults...)
}

// outbox returns the bounds of the machine.
func (c Config) outbox() producer.Config {
	return producer.Config{
		Messages: c.Messages, Bytes: c.Bytes, PerEntity: c.PerEntity, Frame: c.Frame, FrameBytes: c.FrameBytes,
		Calls: c.Calls, RetryMin: c.RetryMin, RetryMax: c.RetryMax,
	}
}
