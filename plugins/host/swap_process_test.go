// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// every is the plugin that can be one for each policy.
var every = builder("./testdata/every")

// asker returns a function that asks a plugin once, and how many may ask it at a time. A judge of
// heartbeats has one who asks it, and who begins a session anew when the judge is another.
func asker(t *testing.T, p *host.Plugin) (ask func(context.Context) error, askers int) {
	t.Helper()
	if p.Manifest().Policy != plugins.FailureDetector {
		return func(ctx context.Context) error { _, err := p.Try(ctx); return err }, 3
	}
	judge, err := p.FailureDetector()
	require.NoError(t, err)
	number := uint64(0)
	return func(ctx context.Context) error {
		number++
		b := fd.Batch{Number: number, Subjects: []fd.Subject{{ID: "node", Available: true, Ages: []time.Duration{time.Millisecond}}}}
		if number > 1 {
			b.Elapsed = 10 * time.Millisecond
		}
		v, err := judge.Judge(ctx, b)
		if errors.Is(err, fd.ErrOutOfStep) { // It is told at once what its predecessor knew.
			number, b.Number, b.Elapsed = 1, 1, 0
			v, err = judge.Judge(ctx, b)
		}
		return errors.Join(err, v.Check(b))
	}, 1
}

// A plugin of each policy is swapped again and again while it is asked without a pause: each
// question has an answer, and each process but the last has ended. covers I34, F56.
func TestSwapOfEachPolicyMissesNoDecision(t *testing.T) {
	path, err := every()
	require.NoError(t, err)
	const swaps = 5
	for _, policy := range host.Policies() {
		t.Run(string(policy), func(t *testing.T) {
			cfg := config(t, policy, string(policy))
			cfg.Path, cfg.SHA256 = path, plugins.Checksums{checksum(t, path)}
			cfg.HealthTimeout = 10 * time.Second // A busy machine is no reason to restart.
			p, w := open(t, cfg)
			ask, askers := asker(t, p)
			stop := make(chan struct{})
			var answered atomic.Int64
			failed := make(chan error, askers)
			var wg sync.WaitGroup
			for range askers {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if err := ask(t.Context()); err != nil {
							failed <- err
							return
						}
						answered.Add(1)
					}
				})
			}
			for i := range swaps {
				cfg.Environment = map[string]string{"SWAP": fmt.Sprint(i)}
				before := answered.Load()
				require.NoError(t, p.Swap(t.Context(), cfg))
				patience.Eventually(t, func() bool { return answered.Load() > before || len(failed) > 0 }, "something is answered after the swap")
			}
			close(stop)
			wg.Wait()
			close(failed)
			for err := range failed {
				require.NoError(t, err, "a decision was missed")
			}
			s := p.Status()
			require.Equal(t, uint64(swaps), s.Swaps)
			require.Zero(t, s.Restarts)
			require.Zero(t, s.Late)
			require.Zero(t, s.Gaps, "there was always a process to ask")
			t.Logf("%d answers during %d swaps, events %v", answered.Load(), swaps, w.Types())
		})
	}
}
