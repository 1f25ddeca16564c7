// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

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
	"github.com/quorate/quorate/plugins/sdk"
)

const callTimeout = 5 * time.Second

// Downing returns the downing provider as a host sees it; see [As].
func Downing(tb testing.TB, s sdk.Strategy, settings map[string]any) downing.Provider {
	tb.Helper()
	return As[downing.Provider](tb, s, settings)
}

// Allocation returns the allocation strategy as a host sees it; see [As].
func Allocation(tb testing.TB, s sdk.Strategy, settings map[string]any) allocation.Strategy {
	tb.Helper()
	return As[allocation.Strategy](tb, s, settings)
}

// FailureDetector returns the failure detector as a host sees it; see [As].
func FailureDetector(tb testing.TB, s sdk.Strategy, settings map[string]any) fd.Judge {
	tb.Helper()
	return As[fd.Judge](tb, s, settings)
}

// JoinDecider returns the decider as a host sees it; see [As].
func JoinDecider(tb testing.TB, s sdk.Strategy, settings map[string]any) bootstrap.JoinDecider {
	tb.Helper()
	return As[bootstrap.JoinDecider](tb, s, settings)
}

// Discovery returns the method of discovery as a host sees it; see [As].
func Discovery(tb testing.TB, s sdk.Strategy, settings map[string]any) discovery.Discovery {
	tb.Helper()
	return As[discovery.Discovery](tb, s, settings)
}

// As returns the strategy as a host sees it. T is the interface of its policy. The test
// fails if the strategy is for another policy or does not accept the settings; [Configure]
// returns the error instead.
func As[T any](tb testing.TB, s sdk.Strategy, settings map[string]any) T {
	tb.Helper()
	policy, ok := policies.Of[T]()
	if !ok {
		tb.Fatalf("no policy is a %v", reflect.TypeFor[T]())
	}
	conn := connect(tb, s)
	m := configure(tb, conn, policy.Name(), settings)
	// policies.Of found the policy by this type.
	return policy.Client(client.Target{Conn: conn, Name: m.Name, Class: m.Class, Timeout: callTimeout}).(T)
}

// Configure hands the settings to the strategy over the wire and returns what the plugin
// declares, or the error, which matches [plugins.ErrSettings] when the settings are
// refused.
func Configure(tb testing.TB, s sdk.Strategy, settings map[string]any) (plugins.Manifest, error) {
	tb.Helper()
	return client.Configure(tb.Context(), connect(tb, s), "test", "test", settings)
}

func configure(tb testing.TB, conn grpc.ClientConnInterface, policy plugins.Policy, settings map[string]any) plugins.Manifest {
	tb.Helper()
	m, err := client.Configure(tb.Context(), conn, "test", "test", settings)
	if err != nil {
		tb.Fatal(err)
	}
	if m.Policy != policy {
		tb.Fatalf("the strategy is for %s, not %s", m.Policy, policy)
	}
	return m
}

// connect serves the strategy and returns a connection to it.
func connect(tb testing.TB, s sdk.Strategy) *grpc.ClientConn {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(tb.Output(), nil))
	return loopbacktest.Conn(tb, func(r grpc.ServiceRegistrar) { s.Register(r, log, sdk.WithName("test")) })
}
