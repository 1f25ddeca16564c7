// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/kinds"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// strategies has one of each kind, so that a row without a test fails here.
func strategies(t *testing.T) map[plugins.Kind]any {
	t.Helper()
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	return map[plugins.Kind]any{plugins.Downing: downing.KeepMajority{}, plugins.Allocation: least}
}

// Each row is whole: what it describes can be served, called and tried.
func TestEveryKindIsServedAndTried(t *testing.T) {
	all := strategies(t)
	require.Len(t, all, len(kinds.All()))
	for _, kind := range kinds.All() {
		t.Run(string(kind.Name()), func(t *testing.T) {
			strategy := all[kind.Name()]
			require.True(t, reflect.TypeOf(strategy).Implements(kind.Strategy), "%T is no %v", strategy, kind.Strategy)
			s := server.New(server.Strategy{
				Service: kind.Service, Name: "s", Configure: func([]byte) (any, error) { return strategy, nil },
			}, slog.New(slog.DiscardHandler))
			conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { s.Register(r) })
			m, err := client.Configure(t.Context(), conn, "s", "", nil)
			require.NoError(t, err)
			require.Equal(t, kind.Name(), m.Kind)
			require.Equal(t, kind.Service.Class(strategy), m.Class)
			var told []string
			remote := kind.Client(client.Target{
				Conn: conn, Name: "s", Class: m.Class, Timeout: 10 * time.Second,
				Called: func(call string, _ time.Time, err error) {
					require.NoError(t, err)
					told = append(told, call)
				},
			})
			require.True(t, reflect.TypeOf(remote).Implements(kind.Strategy))
			here, err := kind.Try(t.Context(), strategy)
			require.NoError(t, err)
			there, err := kind.Try(t.Context(), remote)
			require.NoError(t, err)
			require.Equal(t, here, there)
			require.NotEmpty(t, told)
		})
	}
}

func TestKindsAreFoundByNameAndByStrategy(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, kind := range kinds.All() {
		require.Contains(t, plugins.Kinds(), kind.Name())
		require.False(t, seen[kind.Strategy], "two kinds of %v", kind.Strategy)
		seen[kind.Strategy] = true
		found, ok := kinds.Named(kind.Name())
		require.True(t, ok)
		require.Equal(t, kind.Strategy, found.Strategy)
	}
	require.Len(t, kinds.Names(), len(seen))
	found, ok := kinds.Of[downing.Provider]()
	require.True(t, ok)
	require.Equal(t, plugins.Downing, found.Name())
	_, ok = kinds.Of[context.Context]()
	require.False(t, ok)
	_, ok = kinds.Named(plugins.Discovery)
	require.False(t, ok)
}
