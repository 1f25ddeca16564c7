// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding"

	"github.com/quorate/quorate/config/field"
)

func TestTheDefaultConfigurationIsValid(t *testing.T) {
	require.NoError(t, sharding.Default().Validate())
}

// Each number of shards from 1 to the largest is possible, and no other.
func TestTheNumberOfShardsIsBounded(t *testing.T) {
	c := sharding.Default()
	for shards, valid := range map[int]bool{
		math.MinInt: false, -1: false, 0: false, 1: true, 65_536: true, 65_537: false, 10_000_000: false, math.MaxInt: false,
	} {
		c.NumberOfShards = shards
		if err := c.Validate(); valid {
			require.NoError(t, err, shards)
		} else {
			require.ErrorContains(t, err, "number-of-shards: ", shards)
		}
	}
}

// Every fault of a configuration is reported with its key, and nothing else is reported.
func TestEveryFaultOfAConfigurationIsReported(t *testing.T) {
	tests := map[string]func(c *sharding.Config){
		"number-of-shards":  func(c *sharding.Config) { c.NumberOfShards = 0 },
		"mailbox-size":      func(c *sharding.Config) { c.MailboxSize = -1 },
		"window-bytes":      func(c *sharding.Config) { c.WindowBytes = 4<<10 - 1 },
		"transit-bytes":     func(c *sharding.Config) { c.TransitBytes = 1<<30 + 1 },
		"max-message-bytes": func(c *sharding.Config) { c.MaxMessageBytes = 3<<20 + 1 },
		"retry-interval":    func(c *sharding.Config) { c.RetryInterval = 0 },
		"handoff-timeout":   func(c *sharding.Config) { c.HandoffTimeout = -1 },
		"on-stuck":          func(c *sharding.Config) { c.OnStuck = "retry" },

		"rebalance.max-simultaneous":            func(c *sharding.Config) { c.Rebalance.MaxSimultaneous = 0 },
		"rebalance.max-simultaneous-per-region": func(c *sharding.Config) { c.Rebalance.MaxSimultaneousPerRegion = 1 << 17 },
		"rebalance.idle-check":                  func(c *sharding.Config) { c.Rebalance.IdleCheck = 0 },
		"capacity":                              func(c *sharding.Config) { c.Capacity = 0 },
		"rebalance.slow-start":                  func(c *sharding.Config) { c.Rebalance.SlowStart = time.Hour + 1 },

		"entity-restart-backoff":          func(c *sharding.Config) { c.EntityRestartBackoff = 0 },
		"passivate-after":                 func(c *sharding.Config) { c.PassivateAfter = -1 },
		"passivation.active-entity-limit": func(c *sharding.Config) { c.Passivation.ActiveEntityLimit = -1 },
		"passivation.policy":              func(c *sharding.Config) { c.Passivation.Policy = "fifo" },
		"passivation.main":                func(c *sharding.Config) { c.Passivation.Main = "composite" },
		"passivation.protected":           func(c *sharding.Config) { c.Passivation.Protected = math.NaN() },
		"passivation.window":              func(c *sharding.Config) { c.Passivation.Window = 1.1 },

		"stuck-after":         func(c *sharding.Config) { c.StuckAfter = -1 },
		"allocation.strategy": func(c *sharding.Config) { c.Allocation.Strategy = "" },
	}
	all := sharding.Default()
	for key, spoil := range tests {
		t.Run(key, func(t *testing.T) {
			c := sharding.Default()
			spoil(&c)
			err := c.Validate()
			var fault *field.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, key, fault.Field())
			require.True(t, strings.HasPrefix(err.Error(), key+": "), err)
			require.NotContains(t, err.Error(), "\n", "one fault")
		})
		spoil(&all)
	}
	require.Equal(t, len(tests), strings.Count(all.Validate().Error(), "\n")+1)
}

func TestProtobufCodec(t *testing.T) {
	codec := sharding.Protobuf{}
	require.Equal(t, "protobuf", codec.Name())
	require.NoError(t, codec.Check(new(wrapperspb.StringValue)))
	rapid.Check(t, func(t *rapid.T) {
		prefix, value := rapid.SliceOf(rapid.Byte()).Draw(t, "prefix"), rapid.String().Draw(t, "value")
		b, err := codec.Append(append([]byte(nil), prefix...), say(value))
		require.NoError(t, err)
		require.Equal(t, string(prefix), string(b[:len(prefix)]), "what is there is kept")
		var back wrapperspb.StringValue
		require.NoError(t, codec.Decode(b[len(prefix):], &back))
		require.Equal(t, value, back.GetValue())
	})
}

// A value that is not a generated message makes every method of the codec fail, and never
// panic.
func TestProtobufCodecRefusesOthers(t *testing.T) {
	codec := sharding.Protobuf{}
	for _, other := range []any{nil, 1, new(int), "text"} {
		require.ErrorContains(t, codec.Check(other), "is not a generated protocol buffer message")
		b, err := codec.Append([]byte("kept"), other)
		require.Error(t, err)
		require.Equal(t, "kept", string(b))
		require.Error(t, codec.Decode(nil, other))
	}
}

// FuzzProtobufDecode proves that no bytes make the codec panic.
func FuzzProtobufDecode(f *testing.F) {
	for _, seed := range []string{"", "\x0a\x01x", "\x0a\xff", "\x0a\x02\xff\xfe", "\x08\x01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m wrapperspb.StringValue
		if (sharding.Protobuf{}).Decode(b, &m) == nil {
			_, err := sharding.Protobuf{}.Append(nil, &m)
			require.NoError(t, err)
		}
	})
}

func TestMessageErrors(t *testing.T) {
	cause := fmt.Errorf("%w: %w", sharding.ErrUnknownOutcome, context.Canceled)
	err := error(&sharding.MessageError{Kind: "account", Entity: "a\n", Err: cause})
	require.EqualError(t, err, `sharding: account "a\n": unknown outcome: context canceled`)
	require.ErrorIs(t, err, sharding.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.Canceled)
	err = &sharding.MessageError{Kind: "account", Entity: "a", Detail: "no reply", Err: sharding.ErrExpired}
	require.EqualError(t, err, `sharding: account "a": deadline passed before the message was processed: no reply`)
}

// No error is another one, by errors.Is or by its text: callers branch on them.
func TestErrorsAreDistinct(t *testing.T) {
	all := []error{
		sharding.ErrUnreachable, sharding.ErrOverloaded, sharding.ErrNotDelivered, sharding.ErrNoStanding, sharding.ErrExpired,
		sharding.ErrEntityFailed, sharding.ErrUnknownOutcome, sharding.ErrInvalid, sharding.ErrClosed,
	}
	texts := map[string]bool{}
	for i, a := range all {
		texts[a.Error()] = true
		for j, b := range all {
			require.Equal(t, i == j, errors.Is(a, b))
		}
	}
	require.Len(t, texts, len(all))
}
