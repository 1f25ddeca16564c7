// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// caller asks a plugin again and again, at most once a millisecond. It counts answers and
// failures, and keeps the longest call and the first outcome that no caller should have.
type caller struct {
	answers, failures int
	longest           time.Duration
	strange           error
}

func (c *caller) run(t *testing.T, p *host.Plugin, stop <-chan struct{}) {
	s, err := p.Allocation()
	if err != nil {
		c.strange = err
		return
	}
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for c.strange == nil {
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		watch := patience.Start(t)
		res, err := s.Allocate(t.Context(), request())
		c.longest = max(c.longest, watch.Elapsed())
		switch {
		case err == nil && res.Placements[0].Reason != res.Placements[1].Reason:
			c.strange = errors.New("two processes answered one decision")
		case err == nil:
			c.answers++
		case errors.Is(err, plugins.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			c.failures++
		default:
			c.strange = err
		}
	}
}

// While callers ask, processes are killed, stopped, and swapped for good ones and for ones
// that do not start. Each call ends in time, with an answer or with an error that says why
// there is none, and in the end the plugin runs. covers I34, F56.
func TestRandomFaults(t *testing.T) {
	const (
		callTimeout = 300 * time.Millisecond
		slack       = 10 * time.Second // How late a goroutine may run.
		rounds      = 25
	)
	good := func(version string) plugins.Config {
		cfg := config(t, plugins.Allocation, "slow", "DELAY=2ms", "VERSION="+version)
		cfg.CallTimeout = callTimeout
		return cfg
	}
	p, w := open(t, good("one"))
	stop := make(chan struct{})
	callers := make([]caller, 3)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { callers[i].run(t, p, stop) })
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		pid := p.Status().PID
		switch action := r.IntN(5); {
		case action == 0 && pid > 0:
			_ = syscall.Kill(pid, syscall.SIGKILL) // The process may have ended.
		case action == 1 && pid > 0:
			_ = syscall.Kill(pid, syscall.SIGSTOP) // The process may have ended.
		case action == 2:
			require.NoError(t, p.Swap(t.Context(), good("next")))
		case action == 3:
			require.Error(t, p.Swap(t.Context(), config(t, plugins.Allocation, "diesconfigure")))
		default:
			<-time.After(time.Duration(r.IntN(200)) * time.Millisecond) //quorate:realtime The faults come at random times.
		}
	}
	patience.Eventually(t, func() bool {
		_, err := strategy(t, p).Allocate(t.Context(), request())
		return err == nil && p.Status().State == plugins.StateRunning
	}, "it comes back")
	close(stop)
	wg.Wait()
	s := p.Status()
	for _, c := range callers {
		require.NoError(t, c.strange)
		require.Less(t, c.longest, callTimeout+slack)
		t.Logf("answers %d, failures %d, longest %v", c.answers, c.failures, c.longest)
	}
	t.Logf("restarts %d, swaps %d, away %v in %d gaps, late %d, events %v", s.Restarts, s.Swaps, s.AwayTotal, s.Gaps, s.Late, w.Types())
}
