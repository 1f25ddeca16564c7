// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// The store of states that a file chooses: entities keep their states in it, reminders too, and it is
// closed after them. Then what the file may say wrong.

// ledger is the section of a store of the program.
type ledger struct {
	Shelf string `koanf:"shelf"`
}

// Validate refuses a ledger without a shelf.
func (l ledger) Validate() error {
	if l.Shelf == "" {
		return field.Errorf("shelf", "none given")
	}
	return nil
}

// shelved is a store that notes its end.
type shelved struct {
	store.Store

	closed *atomic.Int32
}

func (s shelved) Close() error { s.closed.Add(1); return nil }

// ledgers links the store, over one in memory.
func ledgers(closed *atomic.Int32, under store.Store) cluster.Option {
	return cluster.WithStates("ledger", ledger{}, func(l ledger) (store.Store, error) {
		if l.Shelf == "none" {
			return nil, errors.New("there is no such shelf")
		}
		return shelved{under, closed}, nil
	})
}

const chooses = "states: {store: ledger, call-timeout: 2s}"

func TestAFileChoosesTheStoreOfStates(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	reader, under := metertest.New(), memory.New()
	path, _ := lone(t, chooses, "state-ledger: {shelf: a}", "reminders: {in-flight: 7}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), ledgers(&closed, under),
		cluster.WithMeterProvider(reader.Provider()))...)
	require.NoError(t, err)
	purses, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "purse", Shards: 10,
		New: state.Snapshots(node.States(), state.JSON[int64](), func(c *state.Context[int64], cents *wrapperspb.Int64Value) error {
			*c.State() += cents.GetValue()
			return c.Reply(wrapperspb.Int64(*c.State()))
		}),
	})
	require.NoError(t, err)
	reminders, err := node.Reminders()
	require.NoError(t, err)
	ctx := patience.Context(t)
	_, err = sharding.Ask[*wrapperspb.Int64Value](ctx, purses, "ada", wrapperspb.Int64(7))
	require.NoError(t, err)
	require.EqualValues(t, 1, node.States().Stats().Saves)
	require.InDelta(t, 2, reader.Value(t, "quorate.sharding.state.records"), 0, "a load and a save")

	again, err := node.Reminders()
	require.NoError(t, err)
	require.Same(t, reminders, again)
	came := make(chan reminder.Fired, 1)
	require.NoError(t, reminders.Target("purse", func(_ context.Context, f reminder.Fired) error {
		select {
		case came <- f:
		default:
		}
		return nil
	}))
	require.NoError(t, reminders.Set(ctx, reminder.Reminder{Kind: "purse", ID: "ada", Name: "pay", Due: time.Now()}))
	require.Equal(t, "pay", patience.Receive(t, came, "the reminder").Name)
	require.NoError(t, node.Close())
	require.NoError(t, node.Close())
	require.EqualValues(t, 1, closed.Load())
}

// Without a store the node runs, has no keeper, and says what is missing for reminders.
func TestANodeWithoutStates(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "reload: {watch: false}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.Nil(t, node.States())
	_, err = node.Reminders()
	require.ErrorIs(t, err, cluster.ErrNoStates)
	require.NoError(t, node.Close())
}

func TestStatesThatCannotBe(t *testing.T) {
	var closed atomic.Int32
	linked := ledgers(&closed, memory.New())
	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"a store that is not linked":   {[]string{"states: {store: postgres}"}, `states.store: the store "postgres" is not part of this program, which links ["ledger"]`},
		"a setting of the store":       {[]string{chooses, "state-ledger: {shelf: ''}"}, "state-ledger.shelf: none given"},
		"a setting nobody knows":       {[]string{chooses, "state-ledger: {shelf: a, colour: red}"}, "state-ledger.colour: unknown key"},
		"a time":                       {[]string{"states: {store: ledger, call-timeout: 0s}", "state-ledger: {shelf: a}"}, "states.call-timeout: 0s is not above 0"},
		"a key":                        {[]string{"states: {stroe: ledger}"}, `states.stroe: unknown key; did you mean "store"?`},
		"reminders":                    {[]string{"reminders: {in-flight: 1}"}, "reminders.in-flight: 1 is not from 2 to 10000"},
		"reminders with little a page": {[]string{"reminders: {state: {max-bytes: 1}}"}, "reminders.state.max-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := lone(t, c.lines...)
			_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), linked)...)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{linked}}, path), c.says)
		})
	}
	path, _ := lone(t, chooses, "state-ledger: {shelf: none}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), linked)...)
	require.ErrorContains(t, err, "state-ledger: there is no such shelf")

	// Who does not link the store takes its section as it is, and says what is to be linked.
	path, _ = lone(t, "states: {store: postgres}", "state-postgres: {url: 'postgres:///bank'}")
	err = cluster.Check(cluster.Extensions{}, path)
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.ErrorContains(t, err, "cluster.WithStates(\"postgres\", ...)")
	require.NotContains(t, err.Error(), "state-postgres")
	require.NoError(t, cluster.Check(cluster.Extensions{Whole: true}, path))
	require.NoError(t, cluster.Check(cluster.Extensions{Strategies: []string{"postgres"}}, path))
}
