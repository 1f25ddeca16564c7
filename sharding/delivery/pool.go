// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery/internal/workpool"
)

// A pool drives a machine of package workpool, which decides: Submit puts jobs into it, next makes a call of each frame
// that is to be sent, and call asks the worker and tells the machine the answer.

// Pool gives jobs to whichever of its workers is free: entities of a kind, each of which is given as many jobs as
// its inbox takes, and no more until it has done them. It is safe for concurrent use.
//
//   - A job that was accepted is done by some worker: its Receive has returned nil. That takes a pool that runs; with a
//     [Queue], the next pool with the same queue goes on.
//   - The jobs of a worker that fails, does not answer within Timeout, or is lost with its node go to another worker.
//     So a job may be done twice, by two workers at the same moment too.
//   - Jobs have no order.
//   - A pool holds Messages jobs of Bytes together at most. Beyond that Submit waits.
//
// A frame of several jobs at which a worker fails is given out as a whole: with [Inbox.Window] of 1 a worker does one
// job after the other, each for itself. A job at which every worker fails goes from one to the next for ever; the log
// says so.
type Pool[M any] struct {
	*driver[M]

	machine *workpool.Pool[*job[M]] // Guarded by mu, as stats.
	stats   PoolStats
}

// job is what the machine holds of a job.
type job[M any] struct {
	entry   EntryID // In the queue.
	message M
	encoded []byte
	told    chan struct{} // Nil, or closed when the job is done.
}

// PoolStats are counts of a pool since it was started, and what it has at present.
type PoolStats struct {
	Held      int    // Jobs that are accepted, or about to be, and not done.
	UnderWay  int    // Those of them that a worker has.
	Busy      int    // Workers that have some.
	Confirmed uint64 // Jobs that were done.
	Failed    uint64 // Attempts without a usable answer.
	Nonsense  uint64 // Those of them with an answer that confirmed what was not sent.
}

// NewPool starts a pool of workers, which are entities of a region by their ids, and loads what its queue has.
// Close ends it. PerEntity and Calls of the configuration mean nothing: each worker has one frame under way. The
// error wraps [ErrConfig], [ErrInvalid] or [ErrQueue].
func NewPool[M any](ctx context.Context, region *sharding.Region[*Frame[M]], workers []string, cfg Config) (*Pool[M], error) {
	d, err := newDriver(region, cfg)
	if err != nil {
		return nil, err
	}
	p := &Pool[M]{driver: d, machine: workpool.New[*job[M]](workpool.Config{
		Jobs: cfg.Messages, Bytes: cfg.Bytes, Frame: cfg.Frame, FrameBytes: cfg.FrameBytes, RetryMin: cfg.RetryMin, RetryMax: cfg.RetryMax,
	}, d.cfg.Rand)}
	if err := p.SetWorkers(workers); err != nil {
		return nil, err
	}
	if err := p.load(ctx, p.restore); err != nil {
		return nil, err
	}
	go p.run(p.machine, p.next, "jobs") // Ended by Close, which waits for it, or by the end of the node.
	return p, nil
}

// restore gives the machine what the queue has of an earlier pool.
func (p *Pool[M]) restore(e Entry, message M) error {
	if e.To != "" {
		return fmt.Errorf("it is to %q, and not for a pool", e.To)
	}
	p.machine.Restore(e.Number, &job[M]{entry: e.EntryID, message: message, encoded: e.Message}, len(e.Message))
	return nil
}

// SetWorkers replaces the workers. A former worker still finishes the frame that it has. Without workers, jobs wait.
// The error wraps [ErrInvalid]; nothing has changed then.
func (p *Pool[M]) SetWorkers(ids []string) error {
	for i, id := range ids {
		if err := checkID(id); err != nil {
			return err
		}
		if slices.Contains(ids[:i], id) {
			return fmt.Errorf("%w: worker %q is named twice", ErrInvalid, id)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machine.SetWorkers(ids)
	p.rouse()
	return nil
}

// Submit has a job done, and returns when it is accepted: when it is in the queue, if there is one. While the pool
// holds as much as it may, Submit waits until ctx ends. The job must not be changed after the call. The error wraps
// [ErrFull] and the cause of ctx, [ErrInvalid], [ErrClosed] or [ErrQueue].
func (p *Pool[M]) Submit(ctx context.Context, message M) error { return p.submit(ctx, message, nil) }

// Do is Submit, and waits until the job is done. If ctx or the pool ends before that, the error wraps
// [ErrUnconfirmed] or [ErrClosed].
func (p *Pool[M]) Do(ctx context.Context, message M) error {
	told := make(chan struct{})
	if err := p.submit(ctx, message, told); err != nil {
		return err
	}
	return p.await(ctx, told, ErrUnconfirmed)
}

// Flush waits until everything that was accepted is done. The error wraps [ErrUnconfirmed] or [ErrClosed].
func (p *Pool[M]) Flush(ctx context.Context) error { return p.flush(ctx, p.machine) }

// Stats returns the counts of the pool.
func (p *Pool[M]) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Held, s.UnderWay, s.Busy = p.machine.Held(), p.machine.UnderWay(), p.machine.Busy()
	return s
}

// Close ends the pool, and waits for its goroutines. What is not done stays in the queue, or is
// lost if there is none: see Flush. It may be called twice.
func (p *Pool[M]) Close() { p.close() }

// submit accepts a job.
func (p *Pool[M]) submit(ctx context.Context, message M, told chan struct{}) error {
	encoded, err := p.encode("the job", message)
	if err != nil {
		return err
	}
	j := &job[M]{message: message, encoded: encoded, told: told}
	return p.accept(ctx, func() (<-chan struct{}, error) { return p.offer(ctx, j) }, ErrFull)
}

// offer puts a job into the machine if there is room. If there is none, it returns a channel that is closed when
// there may be.
func (p *Pool[M]) offer(ctx context.Context, j *job[M]) (<-chan struct{}, error) {
	p.mu.Lock()
	id, ok := p.machine.Reserve(len(j.encoded))
	if !ok {
		room := p.awaited()
		p.mu.Unlock()
		return room, nil
	}
	p.mu.Unlock()
	j.entry = EntryID{p.session, id}
	var err error
	if p.cfg.Queue != nil { // Jobs have no order, so that several may be appended at one time.
		err = p.cfg.Queue.Append(ctx, Entry{EntryID: j.entry, Message: j.encoded})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.machine.Cancel(len(j.encoded))
		p.freed()
		return nil, fmt.Errorf("%w: %w", ErrQueue, err)
	}
	p.machine.Put(id, j, len(j.encoded))
	p.rouse()
	return nil, nil
}

// next returns the call of the next frame that the machine wants sent.
func (p *Pool[M]) next(now time.Duration) func(context.Context) {
	f, ok := p.machine.Next(now)
	if !ok {
		return nil
	}
	return func(ctx context.Context) { p.call(ctx, f) }
}

// call sends a frame and tells the machine how that has ended.
func (p *Pool[M]) call(ctx context.Context, f workpool.Frame[*job[M]]) {
	frame := &Frame[M]{session: p.session, items: make([]item[M], len(f.Jobs))}
	attempts := 0
	for i, j := range f.Jobs {
		frame.items[i] = item[M]{j.Number, j.Value.message, j.Value.encoded}
		attempts = max(attempts, j.Attempts)
	}
	ack, err := p.ask(ctx, f.To, frame)
	var confirmed []workpool.Job[*job[M]]
	if err == nil && ack.session != p.session {
		err = workpool.ErrNonsense
	}
	if err == nil {
		confirmed, err = p.confirm(ctx, f.To, ack)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.machine.Answered(time.Since(p.began), f.To, workpool.Answer{Confirmed: ack.confirmed, Demand: ack.demand})
		p.stats.Confirmed += uint64(len(confirmed))
	} else {
		p.machine.Unanswered(time.Since(p.began), f.To)
		p.stats.Failed++
		if errors.Is(err, workpool.ErrNonsense) {
			p.stats.Nonsense++
		}
	}
	for _, j := range confirmed {
		if j.Value.told != nil {
			close(j.Value.told)
		}
	}
	p.freed()
	p.rouse()
	if err != nil && attempts >= 4 && bits.OnesCount(uint(attempts)) == 1 && ctx.Err() == nil {
		p.cfg.Log.WarnContext(ctx, "workers do not do a job", "worker", f.To, "attempts", attempts, "error", err)
	}
}

// confirm has the queue forget what an answer confirms, and returns it. Until the queue has, nothing is confirmed.
func (p *Pool[M]) confirm(ctx context.Context, to string, ack *Ack) ([]workpool.Job[*job[M]], error) {
	p.mu.Lock()
	confirmed, err := p.machine.Confirms(to, workpool.Answer{Confirmed: ack.confirmed, Demand: ack.demand})
	p.mu.Unlock()
	if err != nil || len(confirmed) == 0 || p.cfg.Queue == nil {
		return confirmed, err
	}
	ids := make([]EntryID, len(confirmed))
	for i, j := range confirmed {
		ids[i] = j.Value.entry
	}
	if err := p.forget(ctx, ids); err != nil {
		return nil, err
	}
	return confirmed, nil
}
