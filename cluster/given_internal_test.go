// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/shutdown"
)

// pool closes when it is let go.
type pool struct {
	let    chan struct{}
	closed int
}

var errPool = errors.New("a connection was not given back")

func (p *pool) Close() error {
	<-p.let
	p.closed++
	return errPool
}

// What the program has given is closed once, whoever asks, and nobody waits longer than he said.
func TestWhatWasGivenIsClosedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{let: make(chan struct{})}
		g := newGiven("the store pg", p)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		require.EqualError(t, g.close(ctx), "cluster: the store pg does not close, and is left behind: context deadline exceeded")
		require.Equal(t, 3*time.Second+givenMoment, time.Since(began))
		require.ErrorIs(t, g.drop(), context.DeadlineExceeded)
		close(p.let)
		require.ErrorIs(t, g.close(ctx), errPool, "a moment is left when the time is over")
		require.ErrorIs(t, g.drop(), errPool)
		require.Equal(t, 1, p.closed)

		var none *given
		require.NoError(t, none.close(ctx))
		require.NoError(t, newGiven("a number", 7).drop())
	})
}

// A node that is still leaving when its time is over is late; any other task that does not return is not the node.
func TestWhoIsStillLeavingIsLate(t *testing.T) {
	report := func(phase, name string, err error) shutdown.Report {
		return shutdown.Report{Results: []shutdown.Result{{Phase: shutdown.Serve, Name: "http"}, {Phase: phase, Name: name, Err: err}}}
	}
	late := verdict(report(shutdown.Leave, leaveTask, shutdown.ErrUnfinished))
	require.ErrorIs(t, late, ErrLate)
	require.ErrorIs(t, late, shutdown.ErrUnfinished)
	require.Equal(t, ExitLate, ExitStatus(late))
	require.Equal(t, ExitFailed, ExitStatus(verdict(report(shutdown.Leave, "queue", shutdown.ErrUnfinished))))
	require.Equal(t, ExitFailed, ExitStatus(verdict(report(shutdown.Leave, leaveTask, errPool))))
	require.NoError(t, verdict(report(shutdown.Leave, leaveTask, nil)))
}
