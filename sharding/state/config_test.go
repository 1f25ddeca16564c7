// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/memory"
)

func TestConfigIsChecked(t *testing.T) {
	require.NoError(t, state.Default().Validate())
	_, err := state.NewKeeper(memory.New(), state.Config{})
	for _, name := range []string{"call-timeout", "pause", "batch", "calls", "max-bytes", "snapshot-every"} {
		require.ErrorContains(t, err, name)
	}
}

// A program that has forgotten its store is told so: by the error of the keeper, and of each entity if it has no
// keeper at all, as on a node whose file names no store.
func TestWithoutAStore(t *testing.T) {
	_, err := state.NewKeeper(nil, state.Default())
	require.EqualError(t, err, "state: the store is nil")
	inBubble(t, func(w *world) {
		w.kind = func(*state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(nil, state.JSON[counter](), add)
		}
		w.start().fails("a", 1, "state: the keeper is nil")
	})
}

// Messages of protocol buffers are states too.
func TestStatesOfProtocolBuffers(t *testing.T) {
	codec := state.Protobuf[wrapperspb.StringValue]()
	b, err := codec.Append([]byte("x"), wrapperspb.String("one"))
	require.NoError(t, err)
	var back wrapperspb.StringValue
	require.NoError(t, codec.Decode(codec.Form(), b[1:], &back))
	require.Equal(t, "one", back.GetValue())
	require.Error(t, codec.Decode(1, []byte{0xff}, &back))
}
