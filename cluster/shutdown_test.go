// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/shutdown"
	"github.com/quorate/quorate/sharding"
)

// The tasks of a program run in their phases: servers end while the node is still a member and says that it is not
// ready, and what entities have used is closed when the node is gone.
func TestANodeEndsInPhases(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "shutdown: {unready-for: 10ms}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.AwaitUp(t.Context()))
	var saw []string
	see := func(phase string) {
		_, err := node.OnShutdown(phase, phase, func(context.Context) error {
			gone := false
			select {
			case <-node.Done():
				gone = true
			default:
			}
			saw = append(saw, fmt.Sprint(phase, " gone ", gone, " ", node.Ready()[0]))
			return nil
		})
		require.NoError(t, err)
	}
	see(shutdown.Close)
	see(shutdown.Serve)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("a signal"))
	require.NoError(t, node.Run(ctx))
	require.Len(t, saw, 2)
	require.Contains(t, saw[0], "serve gone false the node ends")
	require.Contains(t, saw[1], "close gone true")
	report := node.Shutdown(t.Context(), "again")
	require.Equal(t, "a signal", report.Reason)
	require.Len(t, report.Results, 4)
	require.NoError(t, node.Close())
}

// A node that was declared down goes through the same phases, and its process ends with another status.
func TestANodeThatWasDeclaredDownEndsInPhases(t *testing.T) {
	path, address := lone(t)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.AwaitUp(t.Context()))
	closed := false
	_, err = node.OnShutdown(shutdown.Close, "store", func(context.Context) error { closed = true; return nil })
	require.NoError(t, err)
	require.NoError(t, node.Membership().Down(t.Context(), address))
	err = node.Run(t.Context())
	require.ErrorIs(t, err, membership.ErrDown)
	require.Equal(t, cluster.ExitDown, cluster.ExitStatus(err))
	require.True(t, closed)
	require.NoError(t, node.Close())
}

// sleeper is an entity that does not return until it is let go.
type sleeper struct{ begun, until chan struct{} }

func (s sleeper) Receive(*sharding.Context, *wrapperspb.Int64Value) error {
	close(s.begun)
	<-s.until
	return nil
}

// A node that cannot leave in time ends all the same, and says so.
func TestANodeThatIsLateEnds(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "shutdown: {deadline: 1s}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	of := sleeper{make(chan struct{}), make(chan struct{})}
	region, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "sleeper", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return of },
	})
	require.NoError(t, err)
	require.NoError(t, region.Tell(t.Context(), "one", wrapperspb.Int64(1)))
	<-of.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = node.Run(ctx)
	close(of.until)
	require.ErrorIs(t, err, cluster.ErrLate)
	require.Equal(t, cluster.ExitLate, cluster.ExitStatus(err))
	require.NoError(t, node.Close())
}

func TestExitStatuses(t *testing.T) {
	path, _ := lone(t, "shutdown: {deadline: 10s, unready-for: 3s}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.ErrorContains(t, err, "shutdown.unready-for: 3s is not from 0s to a quarter of shutdown.deadline, 2.5s")
	require.Equal(t, cluster.ExitConfig, cluster.ExitStatus(err))
	for want, err := range map[int]error{
		cluster.ExitLeft: nil, cluster.ExitFailed: errors.New("other"), cluster.ExitDown: fmt.Errorf("x: %w", membership.ErrDown),
		cluster.ExitYielded: membership.ErrYielded, cluster.ExitDisk: membership.ErrDisk, cluster.ExitLate: cluster.ErrLate, cluster.ExitConfig: config.Errors{},
	} {
		require.Equal(t, want, cluster.ExitStatus(err), "%v", err)
	}
	require.Error(t, cluster.ShutdownConfig{Deadline: time.Millisecond}.Validate())
}
