// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/loopbacktest"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/internal/server"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// The server of a plugin, asked by the client of package client in memory: before it is
// configured, when strategies panic, fail or answer nonsense, when requests are for another
// policy or malformed, and when more calls are in hand than a plugin takes.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const long = 10 * time.Second

// provider decides by a function.
type provider func(ctx context.Context, v downing.View) (downing.Decision, error)

func (p provider) Class() downing.Class { return downing.Class{} }

func (p provider) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	return p(ctx, v)
}

// strategy places by a function.
type strategy func(r allocation.AllocateRequest) allocation.AllocateResult

func (s strategy) Allocate(_ context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return s(r), nil
}

func (s strategy) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{Moves: []allocation.Move{{From: "x", To: "y"}}}, nil
}

func serve(t *testing.T, s server.Strategy) *grpc.ClientConn {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return loopbacktest.Conn(t, func(r grpc.ServiceRegistrar) { server.New(s, log).Register(r) })
}

// decider serves a provider and returns it as the host sees it.
func decider(t *testing.T, p provider) *downingpolicy.Provider {
	t.Helper()
	conn := serve(t, server.Strategy{Service: downingpolicy.Contract().Policy().Service, Name: "p", Configure: func([]byte) (any, error) {
		return p, nil
	}})
	m, err := client.Configure(t.Context(), conn, "p", "", nil)
	require.NoError(t, err)
	return downingpolicy.New(client.Target{Conn: conn, Name: "p", Class: m.Class, Timeout: long})
}

func view() downing.View {
	members := downingtest.Members(3)
	return downingtest.SplitView(members, func(gossip.NodeID) bool { return true }, gossip.Base{downingtest.IDs(members)})
}

func TestNothingIsDecidedBeforeThePluginIsConfigured(t *testing.T) {
	faulty := true
	conn := serve(t, server.Strategy{Service: downingpolicy.Contract().Policy().Service, Name: "p", Configure: func([]byte) (any, error) {
		if faulty {
			return nil, plugins.SettingErrors{{Key: "a", Reason: "is bad"}, {Reason: "too"}}
		}
		return downing.KeepMajority{}, nil
	}})
	d := downingpolicy.New(client.Target{Conn: conn, Name: "p", Timeout: long})
	_, err := d.Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrRequest)
	_, err = client.Configure(t.Context(), conn, "p", "", nil)
	require.ErrorIs(t, err, plugins.ErrSettings)
	require.ErrorIs(t, err, plugins.SettingError{Key: "a", Reason: "is bad"})
	faulty = false
	m, err := client.Configure(t.Context(), conn, "p", "", nil)
	require.NoError(t, err)
	require.Equal(t, plugins.Class{Pure: true, MajorityOnly: true}, m.Class)
	_, err = client.Configure(t.Context(), conn, "p", "", nil)
	require.ErrorIs(t, err, plugins.ErrRequest)
	_, err = d.Decide(t.Context(), view())
	require.NoError(t, err)
}

// A plugin says who it is and what its settings are before it is configured and after it; its class, which may depend
// on them, only then.
func TestAPluginIsDescribedBeforeItIsConfigured(t *testing.T) {
	schema := func() ([]byte, error) { return []byte("{}"), nil }
	conn := serve(t, server.Strategy{
		Service: downingpolicy.Contract().Policy().Service, Name: "p", Version: "1",
		Configure: func([]byte) (any, error) { return downing.KeepMajority{}, nil }, Schema: func() ([]byte, error) { return schema() },
	})
	want := plugins.Manifest{Name: "p", Version: "1", Policy: plugins.Downing, Contract: plugins.Version1}
	m, text, err := client.Describe(t.Context(), conn, "p")
	require.NoError(t, err)
	require.Equal(t, want, m)
	require.Equal(t, "{}", string(text))
	configured, err := client.Configure(t.Context(), conn, "p", "", nil)
	require.NoError(t, err)
	m, _, err = client.Describe(t.Context(), conn, "p")
	require.NoError(t, err)
	require.Equal(t, configured, m)
	for _, schema = range []func() ([]byte, error){
		func() ([]byte, error) { panic("no") },
		func() ([]byte, error) { return nil, errors.New("no") },
		func() ([]byte, error) { return make([]byte, plugins.MaxSchemaBytes+1), nil },
	} {
		_, _, err = client.Describe(t.Context(), conn, "p")
		require.ErrorIs(t, err, plugins.ErrFault)
	}
}

// A strategy that panics fails the call, and answers the next one. covers F56.
func TestAPanicIsAnErrorOfThatCall(t *testing.T) {
	calls := 0
	d := decider(t, func(_ context.Context, v downing.View) (downing.Decision, error) {
		if calls++; calls == 1 {
			return downing.Decision{Reason: v.Members[99].Zone}, nil
		}
		return downing.Decision{Reason: "calm"}, nil
	})
	_, err := d.Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrFault)
	require.ErrorContains(t, err, "index out of range")
	got, err := d.Decide(t.Context(), view())
	require.NoError(t, err)
	require.Equal(t, "calm", got.Reason)
}

func TestAPanicWhileConfiguringIsNoSetting(t *testing.T) {
	conn := serve(t, server.Strategy{Service: downingpolicy.Contract().Policy().Service, Configure: func([]byte) (any, error) { panic("no") }})
	for range 2 { // The second call finds nothing locked by the first.
		_, err := client.Configure(t.Context(), conn, "p", "", nil)
		require.ErrorIs(t, err, plugins.ErrFault)
	}
}

// A strategy that uses gRPC itself may return a status such as Unavailable. The host must
// not take that for the end of the process. Long errors are cut.
func TestErrorsOfTheStrategyAreItsOwn(t *testing.T) {
	d := decider(t, func(context.Context, downing.View) (downing.Decision, error) {
		return downing.Decision{}, errors.Join(status.Error(codes.Unavailable, "witness"), errors.New(strings.Repeat("x", 5000)))
	})
	_, err := d.Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrStrategy)
	require.ErrorContains(t, err, "witness")
	require.Less(t, len(err.Error()), 1200)
}

func TestWhatWasNotInTheRequestIsAFault(t *testing.T) {
	d := decider(t, func(context.Context, downing.View) (downing.Decision, error) {
		return downing.Decision{Verdict: downing.KeepSide, Down: []gossip.NodeID{downingtest.Node(7)}}, nil
	})
	_, err := d.Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrFault)
	require.ErrorContains(t, err, downingtest.Node(7).String())

	conn := serve(t, server.Strategy{Service: allocationpolicy.Contract().Policy().Service, Name: "a", Configure: func([]byte) (any, error) {
		return strategy(func(allocation.AllocateRequest) allocation.AllocateResult {
			return allocation.AllocateResult{Placements: []allocation.Placement{{Region: "elsewhere"}}}
		}), nil
	}})
	m, err := client.Configure(t.Context(), conn, "a", "", nil)
	require.NoError(t, err)
	require.Zero(t, m.Class)
	a := allocationpolicy.New(client.Target{Conn: conn, Name: "a", Class: m.Class, Timeout: long})
	_, err = a.Allocate(t.Context(), allocation.AllocateRequest{})
	require.ErrorIs(t, err, plugins.ErrFault)
	_, err = a.Rebalance(t.Context(), allocation.RebalanceRequest{})
	require.ErrorIs(t, err, plugins.ErrFault)
}

func TestAPluginOfAnotherKindSaysSo(t *testing.T) {
	conn := serve(t, server.Strategy{Service: allocationpolicy.Contract().Policy().Service})
	_, err := downingpolicy.New(client.Target{Conn: conn, Name: "a", Timeout: long}).Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrPolicy)
}

func TestARequestThatIsMalformedIsRefused(t *testing.T) {
	conn := serve(t, server.Strategy{Service: downingpolicy.Contract().Policy().Service, Name: "p", Configure: func([]byte) (any, error) {
		return downing.KeepMajority{}, nil
	}})
	_, err := client.Configure(t.Context(), conn, "p", "", nil)
	require.NoError(t, err)
	_, err = pluginv1.NewDowningClient(conn).Decide(t.Context(), &pluginv1.DowningDecideRequest{Seen: []uint32{1}})
	require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
}

// Calls that the host has given up still run in the plugin. They count towards its limit of
// calls, beyond which it refuses more.
func TestCallsInHandAreBounded(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	d := decider(t, func(context.Context, downing.View) (downing.Decision, error) {
		arrived <- struct{}{}
		<-release // The strategy ignores its context.
		return downing.Decision{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range plugins.MaxCalls {
		group.Go(func() {
			_, err := d.Decide(ctx, view())
			require.ErrorIs(t, err, context.Canceled)
		})
		<-arrived
	}
	cancel()
	group.Wait()
	_, err := d.Decide(t.Context(), view())
	require.ErrorIs(t, err, plugins.ErrLimit)
	close(release)
}
