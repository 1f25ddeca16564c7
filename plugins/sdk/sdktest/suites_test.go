// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type none struct{}

func served(p downing.Provider) sdk.Strategy {
	return sdk.Downing(func(none) (downing.Provider, error) { return p, nil })
}

// The strategies of the project keep their contract over the wire as they do in one program.
func TestDowningProvidersKeepTheContractOverTheWire(t *testing.T) {
	for name, p := range map[string]downing.Provider{downing.KeepMajorityName: downing.KeepMajority{}, downing.DownAllName: downing.All{}} {
		t.Run(name, func(t *testing.T) {
			downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
				tb.Helper()
				return sdktest.Downing(tb, served(p), nil)
			})
		})
	}
}

func leastShard() sdk.Strategy {
	return sdk.Allocation(func(none) (allocation.Strategy, error) {
		return allocation.NewLeastShard(allocation.Default().LeastShard)
	})
}

func TestLeastShardKeepsTheContractOverTheWire(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		return sdktest.Allocation(tb, leastShard(), nil)
	})
}

func TestTheRuleOfBootstrapKeepsTheContractOverTheWire(t *testing.T) {
	bootstraptest.TestJoinDecider(t, func(tb testing.TB) bootstrap.JoinDecider {
		tb.Helper()
		return sdktest.JoinDecider(tb, sdk.JoinDecider(func(none) (bootstrap.JoinDecider, error) { return bootstrap.LowestAddress{}, nil }), nil)
	})
}

// A decision over the wire is the one that the provider makes in one program.
func TestTheWireChangesNoDecision(t *testing.T) {
	p := sdktest.Downing(t, served(downing.KeepMajority{}), nil)
	require.Equal(t, downing.KeepMajority{}.Class(), p.Class())
	members := downingtest.Members(5)
	v := downingtest.SplitView(members, func(id gossip.NodeID) bool { return id.Compare(members[3].Node) < 0 }, gossip.Base{downingtest.IDs(members)})
	want, err := downing.KeepMajority{}.DecideNow(v)
	require.NoError(t, err)
	got, err := p.Decide(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, downing.KeepSide, got.Verdict)
}
