// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	statetest.Test(t, statetest.Place{
		New: func(testing.TB) statetest.Server { return statetest.Server{Store: memory.New()} },
		Run: func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
		},
	})
}

func TestACloneHasWhatTheStoreHadThen(t *testing.T) {
	t.Parallel()
	s, write := memory.New(), store.Write{Key: store.Key{Kind: "account", ID: "a"}, Owner: store.Owner{Epoch: epoch.Epoch{N: 1}}, Version: 1}
	claim := []store.Claim{{Key: write.Key, Owner: write.Owner}}
	_, err := s.Load(t.Context(), claim)
	require.NoError(t, err)
	then := s.Clone()
	heads, err := s.Save(t.Context(), []store.Write{write})
	require.NoError(t, err)
	require.Equal(t, write.After(), heads[0])
	old, err := then.Load(t.Context(), claim)
	require.NoError(t, err)
	require.Equal(t, write.Before(), old[0].Head)
}
