// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/statistics"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// The measurement of a swap ([measureSwap]): the plugin is swapped in a loop, while goroutines ask it
// questions of its policy and count those without an answer.

// askers is how many goroutines ask a plugin that is swapped, where its policy permits several.
const askers = 3

// measureSwap swaps a plugin again and again while it is asked without a pause. A question without
// an answer counts as lost, which fails the run.
func measureSwap(ctx context.Context, s process.Spec, k *process.Link) (out process.Outcome, err error) {
	p, err := openPlugin(ctx, k.Launcher, pluginRoles()[swapRoles()[s.Role]])
	if err != nil {
		return out, err
	}
	defer shut(p, &err)
	cfg, err := pluginOf(k.Launcher, pluginRoles()[swapRoles()[s.Role]])
	if err != nil {
		return out, err
	}
	stop, asked := make(chan struct{}), new(load)
	for range askersOf(p) {
		asked.running.Go(func() { asked.run(ctx, p, stop) }) // Ends with stop.
	}
	var took []time.Duration
	for began := time.Now(); err == nil && (len(took) == 0 || time.Since(began) < s.Time); {
		once := time.Now()
		err = p.Swap(ctx, cfg)
		took = append(took, time.Since(once))
	}
	close(stop)
	asked.running.Wait()
	if err != nil {
		return out, err
	}
	out.Lost = asked.missed.Load()
	out.Values = map[string]float64{"took": measure.Microseconds(statistics.Percentile(took, 0.5)) / 1000, "missed": float64(out.Lost)}
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
	return askers
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

// measureJudge measures the processor time of a second of heartbeats, one from each of many nodes,
// for the built-in failure detector or for the same one as a plugin, both processes together. The
// seconds follow each other at once.
func measureJudge(ctx context.Context, s process.Spec, k *process.Link) (process.Outcome, error) {
	seconds, spent, err := judged(ctx, s, k, s.Time)
	if err != nil {
		return process.Outcome{}, err
	}
	if s.Role == rolePluginJudge { // What a launch costs is not part of it.
		_, launch, err := judged(ctx, s, k, 0)
		if err != nil {
			return process.Outcome{}, err
		}
		spent -= launch
		seconds--
	}
	per := measure.Microseconds(spent) / float64(max(seconds, 1))
	return process.Outcome{Values: map[string]float64{"cpu": per}, Note: fmt.Sprintf("%d seconds of %d heartbeats", seconds, s.Nodes)}, nil
}

// judged has seconds of heartbeats judged for a time, at least one, and returns how many and the
// processor time.
func judged(ctx context.Context, s process.Spec, k *process.Link, limit time.Duration) (seconds int, spent time.Duration, err error) {
	before := measure.CPUTime() + measure.ChildrenCPUTime()
	factory, err := fd.NewFactory(fd.Default())
	if err != nil {
		return 0, 0, err
	}
	judge := fd.Judge(fd.NewDetectorJudge(factory))
	closed := func() error { return nil }
	if s.Role == rolePluginJudge {
		p, err := openPlugin(ctx, k.Launcher, pluginRoles()[plugins.FailureDetector])
		if err != nil {
			return 0, 0, err
		}
		closed = func() (err error) { shut(p, &err); return err }
		if judge, err = p.FailureDetector(); err != nil {
			return 0, 0, errors.Join(err, closed())
		}
	}
	session := newSession(judge, s.Nodes)
	for began := time.Now(); err == nil && (seconds == 0 || time.Since(began) < limit); seconds++ {
		err = session.next(ctx)
	}
	if ended := closed(); err == nil {
		err = ended
	}
	return seconds, measure.CPUTime() + measure.ChildrenCPUTime() - before, err
}

// session is what a judge is told: of nodes that answer once a second.
type session struct {
	judge fd.Judge
	batch fd.Batch
}

func newSession(j fd.Judge, nodes int) *session {
	s := &session{judge: j}
	for i := range nodes {
		s.batch.Subjects = append(s.batch.Subjects, fd.Subject{
			ID: fmt.Sprintf("10.0.%d.%d:7946#%016x", i/256, i%256, i+1), Available: true, Ages: []time.Duration{time.Duration(i%900) * time.Millisecond},
		})
	}
	return s
}

// next tells of the next second. A judge that does not know the session is told of a new one, as a
// node does after a swap.
func (s *session) next(ctx context.Context) error {
	s.batch.Number++
	s.batch.Elapsed = time.Second
	if s.batch.Number == 1 {
		s.batch.Elapsed = 0
	}
	v, err := s.judge.Judge(ctx, s.batch)
	if errors.Is(err, fd.ErrOutOfStep) {
		s.batch.Number, s.batch.Elapsed = 1, 0
		v, err = s.judge.Judge(ctx, s.batch)
	}
	if err == nil {
		err = v.Check(s.batch)
	}
	if err == nil && len(v.Changes) > 0 {
		err = fmt.Errorf("bench: a node that answers is suspected: %s", v.Changes[0].Reason)
	}
	return err
}
