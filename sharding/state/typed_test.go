// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/typed"
)

// saved is an entity of a service with two methods, as one that is generated from a .proto file, whose state is saved.
type saved struct{}

func (saved) Deposit(c *state.Context[int64], m number) (number, error) {
	*c.State() += m.GetValue()
	if *c.State() > 100 {
		return nil, rpc.Refuse("too-much", "%d is above 100", *c.State())
	}
	return wrapperspb.Int64(*c.State()), nil
}

func (saved) Balance(*state.Context[int64], *emptypb.Empty) (number, error) {
	return nil, rpc.Unimplemented("test.Accounts", "Balance")
}

func TestTypedEntitiesMayHaveSavedState(t *testing.T) {
	inBubble(t, func(w *world) {
		n := w.start()
		service := rpc.NewService[saved, *state.Context[int64]]("test.Accounts",
			rpc.Asked("Deposit", saved.Deposit), rpc.Asked("Balance", saved.Balance))
		region, err := sharding.Start(n.system, sharding.Kind[*rpc.Call]{
			Name: "accounts", Codec: typed.Codec(service), New: state.Snapshots(n.keeper, state.JSON[int64](), typed.Receive(service, saved{})),
		})
		require.NoError(w, err)
		deposit := func(amount int64) (number, error) {
			return rpc.Ask[wrapperspb.Int64Value](w.Context(), typed.Caller(region), "a", "Deposit", wrapperspb.Int64(amount))
		}
		for i := range 3 {
			got, err := deposit(2)
			require.NoError(w, err)
			require.EqualValues(w, 2*(i+1), got.GetValue())
		}
		_, err = deposit(100)
		require.ErrorContains(w, err, "106 is above 100")
		got, err := deposit(1)
		require.NoError(w, err)
		require.EqualValues(w, 7, got.GetValue(), "what was refused is not there")
		_, err = rpc.Ask[wrapperspb.Int64Value](w.Context(), typed.Caller(region), "a", "Balance", &emptypb.Empty{})
		require.ErrorIs(w, err, rpc.ErrUnknownMethod)
	})
}
