// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

// The driver of protocol.Core: every method takes the lock, lets the core take an input, and
// carries out what the core asks. An alarm makes the ticks; a call to the store has a goroutine,
// at most one at a time. Whoever waits for a change waits for the channel changed, which is
// closed and replaced after each step.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease/internal/alarm"
	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

const maxOwnerBytes = 256

// Keeper asks for one lease, renews it and knows whether it is held. Use [NewKeeper]; Close it
// in the end. It is safe for concurrent use.
type Keeper struct {
	store  Store
	config Config
	name   string

	ctx    context.Context //nolint:containedctx // It ends with Close, and is the parent of the contexts of all calls.
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows
	core    *protocol.Core
	clock   protocol.Clock
	began   time.Time     // when the clock read zero
	alarm   alarm.Alarm   // makes the ticks
	changed chan struct{} // closed and replaced by each step
	lost    chan struct{} // closed when the holding ends; nil without a holding
	calling chan struct{} // closed when the call under way has returned; nil before the first
	waiters int           // calls of Acquire that wait
	closed  bool
}

// Holding is the right to be the only one, while it lasts.
type Holding struct {
	// Token is above the tokens of all holders before.
	Token uint64

	lost <-chan struct{}
}

// Lost returns a channel that is closed when the holding has ended, in whatever way. A process
// that was frozen is told later than [Keeper.Check] tells it.
func (h Holding) Lost() <-chan struct{} { return h.lost }

// NewKeeper returns a keeper of the lease with a name. The owner is for people; to it the
// keeper adds a text of its own, so that no two keepers are the same owner. The error is a
// [field.Error] for each fault. Nothing is asked before the first Acquire.
func NewKeeper(store Store, config Config, name, owner string) (*Keeper, error) {
	var faults field.Faults
	faults.Add(config.Validate())
	faults.Add(CheckName("name", name))
	faults.Refuse(owner == "" || len(owner) > maxOwnerBytes, "owner", "%q is empty or longer than %d bytes", field.Clip(owner), maxOwnerBytes)
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	k := &Keeper{
		store: store, config: config, name: name, changed: make(chan struct{}), began: time.Now(),
	}
	k.clock.Read(k.began)
	k.core = protocol.New(protocol.Config{
		Owner: owner + "/" + rand.Text(), TTL: config.TTL, Renew: config.RenewInterval, Retry: config.RetryInterval, Limit: config.RequestTimeout,
	})
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k, nil
}

// Owner returns the name by which the store knows this keeper. It is another one after each
// release.
func (k *Keeper) Owner() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.core.Owner()
}

// Acquire waits until the lease is held, and returns at once if it is already. The error is a [RefusedError] if another
// has the lease. While the answer is unknown the store is asked again until ctx ends, or, if ctx has no end, for twice
// the TTL of a lease, in which the lease of a holder that has died ends; then the error wraps [ErrUnknown], and what
// the store may have granted meanwhile is given back.
func (k *Keeper) Acquire(ctx context.Context) (Holding, error) {
	if _, limited := ctx.Deadline(); !limited {
		limit, cancel := context.WithTimeout(ctx, 2*k.config.TTL)
		defer cancel()
		ctx = limit
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return Holding{}, ErrClosed
	}
	k.waiters++
	defer func() { k.waiters-- }()
	k.step(protocol.Input{Kind: protocol.Want})
	for {
		if h, ok := k.check(); ok {
			return h, nil
		}
		switch {
		case k.closed:
			return Holding{}, ErrClosed
		case k.core.Phase() == protocol.Idle && k.core.Holder() != "":
			return Holding{}, &RefusedError{Name: k.name, Holder: k.core.Holder()}
		case ctx.Err() != nil:
			err := fmt.Errorf("%w: %s", ErrUnknown, k.state())
			if k.waiters == 1 {
				k.step(protocol.Input{Kind: protocol.Drop})
			}
			return Holding{}, err
		case k.core.Phase() == protocol.Idle, k.core.Phase() == protocol.Releasing:
			return Holding{}, fmt.Errorf("%w: %s", ErrUnknown, k.state())
		}
		k.wait(ctx)
	}
}

// wait waits for a step or for the end of ctx. The lock is held before and after it.
func (k *Keeper) wait(ctx context.Context) {
	changed := k.changed
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// Check returns the holding, and whether the lease is held at this moment. It asks nobody and
// takes well under a microsecond.
func (k *Keeper) Check() (Holding, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.check()
}

func (k *Keeper) check() (Holding, bool) {
	token, ok := k.core.Token(k.clock.Read(time.Now()))
	if !ok {
		return Holding{}, false
	}
	return Holding{Token: token, lost: k.lost}, true
}

// Release gives the lease back. From its begin on the lease is not held. The error wraps
// [ErrNotTold] if the store has not confirmed it when ctx ends; it is asked once.
func (k *Keeper) Release(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return ErrClosed
	}
	return k.release(ctx)
}

func (k *Keeper) release(ctx context.Context) error {
	k.step(protocol.Input{Kind: protocol.Drop})
	released := k.core.Phase() == protocol.Releasing
	for k.core.Phase() == protocol.Releasing && ctx.Err() == nil {
		k.wait(ctx)
	}
	if released && k.core.Untold() {
		return fmt.Errorf("%w: %s", ErrNotTold, k.core.Reason())
	}
	return nil
}

// step lets the core take an input, and carries out what it asks. The lock is held.
func (k *Keeper) step(in protocol.Input) {
	now := k.clock.Read(time.Now())
	ask := k.core.Step(in, now)
	_, held := k.core.Token(now)
	switch {
	case held && k.lost == nil:
		k.lost = make(chan struct{})
	case !held && k.lost != nil:
		close(k.lost)
		k.lost = nil
	}
	if ask.Question != protocol.None {
		k.calling = make(chan struct{})
		go k.call(ask, k.calling) // Started by a step, one at a time; ends with the call, for which Close waits.
	}
	close(k.changed)
	k.changed = make(chan struct{})
	k.arm(now)
}

// arm sets the alarm for the next tick.
func (k *Keeper) arm(now time.Duration) {
	if at, due := k.core.Wake(); due && !(k.closed && k.core.Phase() == protocol.Idle) {
		k.alarm.Set(at-now, k.tick)
	} else {
		k.alarm.Stop()
	}
}

func (k *Keeper) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.step(protocol.Input{Kind: protocol.Tick})
}

// call asks the store and tells the core what came of it.
func (k *Keeper) call(ask protocol.Ask, returned chan struct{}) {
	defer close(returned)
	ctx, cancel := context.WithTimeout(k.ctx, k.config.RequestTimeout)
	defer cancel()
	result := k.ask(ctx, ask)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.step(protocol.Input{Kind: protocol.Answered, Result: result})
}

// ask makes a result of the answer of the store.
func (k *Keeper) ask(ctx context.Context, ask protocol.Ask) protocol.Result {
	claim := Claim{Name: k.name, Owner: ask.Owner, TTL: k.config.TTL}
	if ask.Question == protocol.Give {
		return protocol.Result{Fault: k.store.Give(ctx, claim)}
	}
	a, err := k.store.Take(ctx, claim)
	return protocol.Result{Granted: a.Granted, Owner: a.Owner, Token: a.Token, TTL: a.TTL, Fault: err}
}

// Close gives back what is held, and ends the call under way. It waits at most three times
// as long as one call may take, and may be called more than once. The error wraps
// [ErrNotTold] or [ErrStuck].
func (k *Keeper) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*k.config.RequestTimeout)
	defer cancel()
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	err := k.release(ctx)
	k.cancel()
	k.mu.Unlock()
	return errors.Join(err, k.returned())
}

// returned waits until no call is under way.
func (k *Keeper) returned() error {
	limit := time.NewTimer(k.config.RequestTimeout)
	defer limit.Stop()
	for {
		k.mu.Lock()
		calling := k.calling
		k.mu.Unlock()
		if calling == nil {
			return nil
		}
		select {
		case <-calling:
			k.mu.Lock()
			if k.calling == calling {
				k.calling = nil
			}
			k.mu.Unlock()
		case <-limit.C:
			return ErrStuck
		}
	}
}
