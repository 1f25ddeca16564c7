// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/strategy"
)

// named is a strategy of a program, which says its name by the reason of what it decides.
type named string

func (n named) Allocate(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return allocation.AllocateResult{Reason: string(n)}, nil
}

func (n named) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{Reason: string(n)}, nil
}

func ask(t *testing.T, c *strategy.Chosen, request any) (any, error) {
	t.Helper()
	return c.Ask(t.Context(), machine.Call{Port: "allocate", Request: request})
}

// The strategy of a program answers under its name, and stays under other settings.
func TestAStrategyOfTheProgram(t *testing.T) {
	given := strategy.Given("mine", named("mine"))
	require.True(t, given.IsGiven())
	require.Equal(t, "mine", given.Name())
	require.NoError(t, given.Check())
	answer, err := ask(t, given, allocation.AllocateRequest{})
	require.NoError(t, err)
	require.Equal(t, allocation.AllocateResult{Reason: "mine"}, answer)
	answer, err = ask(t, given, allocation.RebalanceRequest{})
	require.NoError(t, err)
	require.Equal(t, allocation.RebalanceResult{Reason: "mine"}, answer)
	_, err = ask(t, given, "something else")
	require.ErrorContains(t, err, `kind "allocate" with a string`)
	later, err := given.With(allocation.Default())
	require.NoError(t, err)
	require.Same(t, given, later)
}

// Least-shard decides in the control machine: who is asked all the same, since the question was put before, has no
// answer.
func TestLeastShardIsNotAsked(t *testing.T) {
	least, err := strategy.BuiltIn(allocation.Default())
	require.NoError(t, err)
	for _, nobody := range []*strategy.Chosen{least, strategy.Given("mine", nil)} {
		require.False(t, nobody.IsGiven())
		require.Empty(t, nobody.Name())
		_, err = ask(t, nobody, allocation.AllocateRequest{})
		require.ErrorContains(t, err, "another strategy")
		_, err = ask(t, nobody, allocation.RebalanceRequest{})
		require.ErrorContains(t, err, "another strategy")
	}
	require.False(t, (*strategy.Chosen)(nil).IsGiven())
}

// A strategy that is built in is made anew from other settings; a name that is none is an error.
func TestBuiltInStrategies(t *testing.T) {
	cfg := allocation.Default()
	cfg.Strategy = "consistent-hashing"
	hashing, err := strategy.BuiltIn(cfg)
	require.NoError(t, err)
	require.False(t, hashing.IsGiven())
	require.Equal(t, cfg.Strategy, hashing.Name())
	later, err := hashing.With(cfg)
	require.NoError(t, err)
	require.NotSame(t, hashing, later)
	cfg.Strategy = "no such"
	_, err = hashing.With(cfg)
	require.ErrorIs(t, err, allocation.ErrUnknownStrategy)
	require.ErrorContains(t, err, "sharding.allocation.strategy")
}
