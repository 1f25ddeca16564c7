// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/bound"
)

// One function as an entity: the instance runs it on a goroutine, and hears of its end by a message
// to itself, so that the rules of entities say what follows a failure.

// job is what all instances of a kind on this node share.
type job struct {
	Config

	started chan struct{} // Closed when region is set.
	region  *sharding.Region[*notice]
}

// instance is the entity. Its methods are called by one goroutine at a time.
type instance struct {
	job *job
	run *run // The run under way, or the last one.
}

// run is one call of [Config.Run].
type run struct {
	id     string          // That of the instance.
	scale  sharding.Scale  // Under which it was started.
	ctx    context.Context //nolint:containedctx // That of the call.
	cancel context.CancelCauseFunc
	over   chan struct{} // Closed when the call has returned and the instance was told.
	err    error         // Set before the instance is told.
}

// notice tells the instance of a run: that it is over, or lasts.
type notice struct {
	of   *run
	over bool
}

// lasting is how long the program runs in a run that counts as a success.
const lasting = time.Minute

// errStopped ends the context of a run whose instance is stopped.
var errStopped = errors.New("the instance moves to another node, or its node ends")

// Start begins the work.
func (i *instance) Start(c *sharding.Context) error {
	i.begin(c)
	return nil
}

func (i *instance) begin(c *sharding.Context) {
	ctx, cancel := bound.WithCancel(c.Context())
	i.run = &run{id: c.ID(), scale: c.Scale(), ctx: ctx, cancel: cancel, over: make(chan struct{})}
	// The goroutine is owned by the instance, whose Stop waits for it.
	go i.job.work(i.run, c.Epoch())
}

// Stop ends the work, and waits until it has ended.
func (i *instance) Stop(*sharding.Context) {
	i.run.cancel(errStopped)
	<-i.run.over
}

// Receive goes on after the end of a run.
func (i *instance) Receive(c *sharding.Context, n *notice) error {
	if n.of != i.run || !n.over {
		return nil // A run lasts, which counts as a success, or an earlier one has ended.
	}
	switch err := i.run.err; {
	case i.run.ctx.Err() != nil: // The node had lost its standing, and has it again.
		i.begin(c)
	case err != nil:
		i.job.Log.Error("work has failed, and is run again", i.job.Noun, i.job.Name, "instance", numberOf(c.ID()), "epoch", c.Epoch().String(), "error", err)
		return err
	default:
		i.job.Log.Info("work is done", i.job.Noun, i.job.Name, "instance", numberOf(c.ID()), "epoch", c.Epoch().String())
	}
	return nil
}

// numberOf returns the number in the id of an instance, which [sharding.OnePerShard] has put first.
func numberOf(id string) string {
	number, _, _ := strings.Cut(id, "/")
	return number
}

// work does a run.
func (j *job) work(r *run, epoch sharding.Epoch) {
	defer close(r.over)
	<-j.started
	defer j.tell(r, true) // Also when the program ends the goroutine.
	j.call(r, epoch)
}

// errEnded says that the program has ended the goroutine that ran it.
var errEnded = errors.New("the goroutine was ended by runtime.Goexit")

// call calls the program, and makes an error of a panic.
func (j *job) call(r *run, epoch sharding.Epoch) {
	r.err = errEnded
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	r.err = j.leased(r, epoch)
}

// leased calls the program while the lease is held, if there is one.
func (j *job) leased(r *run, epoch sharding.Epoch) error {
	if j.Lease == nil {
		return j.timed(r.ctx, r, epoch)
	}
	held, err := j.Lease.Acquire(r.ctx)
	if err != nil {
		return fmt.Errorf("without the lease: %w", err)
	}
	within, cancel := bound.New(r.ctx, func() bool {
		now, ok := j.Lease.Check()
		return ok && now.Token == held.Token
	}, ErrLeaseLost)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-held.Lost():
			cancel(ErrLeaseLost)
		case <-within.Done():
		}
	})
	defer func() { // Also after a panic.
		cancel(nil)
		watching.Wait()
		limit, done := context.WithTimeout(context.WithoutCancel(r.ctx), releaseTimeout)
		defer done()
		if err := j.Lease.Release(limit); err != nil {
			j.Log.Warn("a lease was not given back, and ends by itself", j.Noun, j.Name, "error", err)
		}
	}()
	err = j.timed(within, r, epoch)
	if err == nil && errors.Is(context.Cause(within), ErrLeaseLost) {
		return ErrLeaseLost // The program has ended since its context did: its work is not done.
	}
	return err
}

// timed calls the program, and tells the instance when that has lasted.
func (j *job) timed(ctx context.Context, r *run, epoch sharding.Epoch) error {
	lasts := time.AfterFunc(lasting, func() { j.tell(r, false) })
	defer lasts.Stop()
	return j.Run(ctx, r.id, r.scale, epoch)
}

// releaseTimeout bounds the time to give a lease back: the node may be leaving.
const releaseTimeout = 2 * time.Second

// tellTimeout bounds the wait of [job.tell]. The mailbox of an instance has room for its news: the
// instance cannot be here any more when the time is over.
const tellTimeout = 5 * time.Second

// tell tells the instance of a run. An instance that is being stopped needs no news, and one
// whose node has ended cannot be told.
func (j *job) tell(r *run, over bool) {
	if errors.Is(context.Cause(r.ctx), errStopped) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), tellTimeout)
	defer cancel()
	_ = j.region.Tell(ctx, r.id, &notice{r, over})
}

// noticeCodec is the codec of notices, which mean something on their node alone: to the successor of an instance
// that has moved on they say nothing.
type noticeCodec struct{}

// Name implements [sharding.Codec].
func (noticeCodec) Name() string { return "nothing" }

// Check implements [sharding.Codec].
func (noticeCodec) Check(any) error { return nil }

// Append implements [sharding.Codec].
func (noticeCodec) Append(dst []byte, _ any) ([]byte, error) { return dst, nil }

// Decode implements [sharding.Codec].
func (noticeCodec) Decode([]byte, any) error { return nil }
