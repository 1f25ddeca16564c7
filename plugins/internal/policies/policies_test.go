// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

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
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies"
	"github.com/quorate/quorate/plugins/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// strategies has a strategy for each policy. A policy of the table that has none here fails
// the test.
func strategies(t *testing.T) map[plugins.Policy]any {
	t.Helper()
	least, err := allocation.NewLeastShard(allocation.Default().LeastShard)
	require.NoError(t, err)
	phi, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	list, err := discovery.NewStatic([]string{"127.0.0.1:7946", "[::1]:7946", "seed.example:1"})
	require.NoError(t, err)
	return map[plugins.Policy]any{
		plugins.Downing: downing.KeepMajority{}, plugins.Allocation: least, plugins.JoinDecider: bootstrap.LowestAddress{},
		plugins.Discovery: list, plugins.FailureDetector: fd.NewDetectorJudge(phi),
	}
}

// Each policy of the table is complete: its strategies can be served, called and tried.
func TestEveryKindIsServedAndTried(t *testing.T) {
	all := strategies(t)
	require.Len(t, all, len(policies.All()))
	for _, policy := range policies.All() {
		t.Run(string(policy.Name()), func(t *testing.T) {
			strategy := all[policy.Name()]
			require.True(t, reflect.TypeOf(strategy).Implements(policy.Strategy), "%T is no %v", strategy, policy.Strategy)
			s := server.New(server.Strategy{
				Service: policy.Service, Name: "s", Configure: func([]byte) (any, error) { return strategy, nil },
			}, slog.New(slog.DiscardHandler))
			conn := loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { s.Register(r) })
			m, err := client.Configure(t.Context(), conn, "s", "", nil)
			require.NoError(t, err)
			require.Equal(t, policy.Name(), m.Policy)
			require.Equal(t, policy.Service.Class(strategy), m.Class)
			var told []string
			remote := policy.Client(client.Target{
				Conn: conn, Name: "s", Class: m.Class, Timeout: 10 * time.Second,
				Called: func(_ context.Context, call string, _ time.Time, err error) {
					require.NoError(t, err)
					told = append(told, call)
				},
			})
			require.True(t, reflect.TypeOf(remote).Implements(policy.Strategy))
			here, err := policy.Try(t.Context(), strategy)
			require.NoError(t, err)
			there, err := policy.Try(t.Context(), remote)
			require.NoError(t, err)
			require.Equal(t, here, there)
			require.NotEmpty(t, told)
		})
	}
}

func TestKindsAreFoundByNameAndByStrategy(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, policy := range policies.All() {
		require.Contains(t, plugins.Policies(), policy.Name())
		require.False(t, seen[policy.Strategy], "two policies of %v", policy.Strategy)
		seen[policy.Strategy] = true
		found, ok := policies.Named(policy.Name())
		require.True(t, ok)
		require.Equal(t, policy.Strategy, found.Strategy)
	}
	require.Len(t, policies.Names(), len(seen))
	found, ok := policies.Of[downing.Provider]()
	require.True(t, ok)
	require.Equal(t, plugins.Downing, found.Name())
	_, ok = policies.Of[context.Context]()
	require.False(t, ok)
	_, ok = policies.Named("none such")
	require.False(t, ok)
}

// outside promises nothing: its answers depend on what is outside.
type outside struct {
	bootstrap.JoinDecider
	discovery.Discovery
}

// A strategy is told to hosts by the class that it says itself, and the strategy behind a connection has that class.
func TestClassesAreThoseThatStrategiesSay(t *testing.T) {
	list, err := discovery.NewStatic(nil)
	require.NoError(t, err)
	require.True(t, bootstrap.ClassOf(served[bootstrap.JoinDecider](t, bootstrap.LowestAddress{})).Pure)
	require.True(t, discovery.ClassOf(served[discovery.Discovery](t, list)).Pure)
	require.False(t, bootstrap.ClassOf(served[bootstrap.JoinDecider](t, outside{})).Pure)
	require.False(t, discovery.ClassOf(served[discovery.Discovery](t, outside{})).Pure)
}
