// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/sharding"
)

type (
	plainEntity   struct{}
	oddStart      struct{ plainEntity }
	oddStop       struct{ plainEntity }
	oddSnapshot   struct{ plainEntity }
	halfSnapshot  struct{ plainEntity }
	oddTimeout    struct{ plainEntity }
	oddAllocation struct{ allocation.Strategy }
)

func (plainEntity) Receive(c *sharding.Context, m text) error              { return c.Reply(m) }
func (oddStart) Start(*sharding.Context)                                   {}
func (oddStop) Stop(*sharding.Context) error                               { return nil }
func (oddSnapshot) Snapshot() ([]byte, error)                              { return nil, nil }
func (halfSnapshot) Snapshot(*sharding.Context) ([]byte, error)            { return nil, nil }
func (oddTimeout) ReceiveTimeout(context.Context, *sharding.Context) error { return nil }
func (oddAllocation) Class() string                                        { return "pure" }

// An entity with a method that has the name of an optional one, and another signature, does not start, and its askers
// hear why: the method would never be called.
func TestAnEntityWithAnotherSignatureIsRefused(t *testing.T) {
	for fault, entity := range map[string]sharding.Entity[text]{
		"": plainEntity{},
		"method Start of sharding_test.oddStart is a func(*sharding.Context), and has to be a func(*sharding.Context) error": oddStart{},
		"method Stop of sharding_test.oddStop is a func(*sharding.Context) error, and has to be a func(*sharding.Context)":   oddStop{},
		"method Snapshot of sharding_test.oddSnapshot is a func() ([]uint8, error)":                                          oddSnapshot{},
		"sharding_test.halfSnapshot has a method of sharding.Snapshotter, and no method Restore":                             halfSnapshot{},
		"method ReceiveTimeout of sharding_test.oddTimeout":                                                                  oddTimeout{},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			w.kind = func(_ *node, k *sharding.Kind[text]) {
				k.New = func(*sharding.Context) sharding.Entity[text] { return entity }
			}
			w.form(1)
			w.nodes[0].startKind()
			_, err := w.nodes[0].ask("a", "x", limit)
			if fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			require.ErrorContains(t, err, fault)
		})
	}
}

// So is an allocation strategy.
func TestAStrategyWithAnotherSignatureIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.form(1)
		_, err := sharding.New(w.nodes[0].Node, sharding.Default(), sharding.WithAllocation(oddAllocation{}))
		require.ErrorContains(t, err, "method Class of sharding_test.oddAllocation is a func() string, and has to be a func() allocation.Class")
	})
}
