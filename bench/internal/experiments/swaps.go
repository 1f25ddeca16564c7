// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// The measurement of a swap ([measureSwap]): the plugin is swapped in a loop, while goroutines ask it
// questions of its policy and count those without an answer.

// pluginAskers is how many goroutines ask a plugin that is swapped, where its policy permits several.
const pluginAskers = 3

// measureSwap swaps a plugin again and again while it is asked without a pause. A question without
// an answer counts as lost, which fails the run.
func measureSwap(ctx context.Context, s harness.Spec, p *host.Plugin, cfg plugins.Config) (out figure.Outcome, err error) {
	stop, asked := make(chan struct{}), new(load)
	for range askersOf(p) {
		asked.running.Go(func() { asked.run(ctx, p, stop) }) // Ends with stop.
	}
	took, err := harness.Repeat(s.Time, func() error { return p.Swap(ctx, cfg) })
	close(stop)
	asked.running.Wait()
	if err != nil {
		return out, err
	}
	out.Lost = asked.missed.Load()
	out.Values = map[string]float64{"took": harness.Milliseconds(figure.Percentile(took, 0.5)), "missed": float64(out.Lost)}
	out.Note = fmt.Sprintf("%d swaps, %d answers", len(took), asked.answered.Load())
	return out, nil
}

// load asks a plugin without a pause.
type load struct {
	running          sync.WaitGroup
	answered, missed atomic.Uint64
}

// askersOf returns how many may ask: a session with a judge of heartbeats has one.
func askersOf(p *host.Plugin) int {
	if p.Manifest().Policy == plugins.FailureDetector {
		return 1
	}
	return pluginAskers
}

// run asks until stop is closed.
func (l *load) run(ctx context.Context, p *host.Plugin, stop <-chan struct{}) {
	ask := func() error { _, err := p.Try(ctx); return err }
	if judge, err := p.FailureDetector(); err == nil {
		session := newSession(judge, 9)
		ask = func() error { return session.next(ctx) }
	}
	for {
		select {
		case <-stop:
			return
		default:
		}
		if ask() != nil {
			l.missed.Add(1)
			continue
		}
		l.answered.Add(1)
	}
}
