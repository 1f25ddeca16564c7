// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/store"
)

// First the keeper, with what it counts and what only code can give to it; then the handle of one
// record, which an entity, or anything else with an epoch, gets by Open and saves by. How their requests
// become calls of the store is in lane.go.

// Keeper loads and saves the records of one node: what many entities ask for at the same moment goes
// into one call of the store. It has no goroutines of its own: an entity that waits makes the call for
// all. Nothing needs to be closed but the store, after the node has ended.
type Keeper struct {
	cfg       Config
	log       *slog.Logger
	loads     *lane[store.Claim, store.Record]
	saves     *lane[store.Write, store.Head]
	instances atomic.Uint64 // The number of the last instance.
	counts    counts
	logged    atomic.Int64            // When the last failed call was logged, in Unix nanoseconds.
	metrics   atomic.Pointer[metrics] // Nil if nobody measures the keeper.
}

// counts are those of [Stats], and of the metrics.
type counts struct {
	load, save                          tally
	failed, fenced, foreign, unanswered atomic.Uint64
}

// tally counts loads, or saves.
type tally struct {
	done, bytes     atomic.Uint64 // Operations that have succeeded, and the bytes of their states and events.
	calls, requests atomic.Uint64 // Calls of the store, and the requests in them.
}

// add counts an operation that has succeeded.
func (t *tally) add(snapshot store.Value, events []store.Value) {
	n := len(snapshot.Bytes)
	for _, e := range events {
		n += len(e.Bytes)
	}
	t.done.Add(1)
	t.bytes.Add(uint64(n))
}

// Stats count what a keeper has done.
type Stats struct {
	Loads, Saves         uint64 // Records that were loaded, and changes that were saved.
	LoadCalls, SaveCalls uint64 // Calls of the store.
	FailedCalls          uint64 // Calls that have failed, or had no answer in time.

	// Instances that have ended for the reason of [ErrFenced], [ErrForeign] and [ErrUnanswered].
	Fenced, Foreign, Unanswered uint64
}

// Option is what only code can give to [NewKeeper].
type Option func(*Keeper)

// WithLogger says where the keeper reports calls that fail and owners that are replaced. The default
// is [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(k *Keeper) { k.log = log } }

// NewKeeper returns a keeper over a store. A process needs one keeper for a kind of entities; several
// kinds may share it, and then share calls.
func NewKeeper(s store.Store, cfg Config, options ...Option) (*Keeper, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if s == nil {
		return nil, errNoStore
	}
	k := &Keeper{cfg: cfg, log: slog.Default()}
	for _, o := range options {
		o(k)
	}
	k.log = machine.LimitLog(k.log)
	k.loads = newLane(cfg, s.Load, k.calledBy("load", &k.counts.load))
	k.saves = newLane(cfg, s.Save, k.calledBy("save", &k.counts.save))
	return k, nil
}

// Stats returns the counters.
func (k *Keeper) Stats() Stats {
	c := &k.counts
	return Stats{
		Loads: c.load.done.Load(), Saves: c.save.done.Load(), LoadCalls: c.load.calls.Load(), SaveCalls: c.save.calls.Load(),
		FailedCalls: c.failed.Load(), Fenced: c.fenced.Load(), Foreign: c.foreign.Load(), Unanswered: c.unanswered.Load(),
	}
}

// calledBy returns what notes the calls of an operation.
func (k *Keeper) calledBy(op string, t *tally) func(int, time.Duration, error) {
	return func(requests int, took time.Duration, err error) {
		t.calls.Add(1)
		t.requests.Add(uint64(requests)) // At least 1.
		fault := ""
		if err != nil {
			fault = "failed"
			k.failed(op, requests, err)
		}
		if m := k.metrics.Load(); m != nil {
			record(context.Background(), m.calls, op, took, fault)
		}
	}
}

// failed notes a call that has failed. One a second is logged: a store that is down fails all of them.
func (k *Keeper) failed(op string, requests int, err error) {
	failed, now, logged := k.counts.failed.Add(1), time.Now().UnixNano(), k.logged.Load()
	if now-logged >= int64(time.Second) && k.logged.CompareAndSwap(logged, now) {
		k.log.Warn("the store of states has failed a call", "op", op, "entities", requests, "failed", failed, "error", err)
	}
}

// ended notes that a handle has ended.
func (k *Keeper) ended(e *Error) {
	switch {
	case errors.Is(e.Err, hold.ErrFenced):
		k.counts.fenced.Add(1)
		k.log.Warn("an entity was replaced, and its instance here stops", "op", e.Op, "record", e.Key.String(),
			"owner", e.Owner.String(), "later", e.Found.Owner.String())
	case errors.Is(e.Err, hold.ErrForeign):
		k.counts.foreign.Add(1)
		k.log.Error("the record of an entity was changed by somebody else", "op", e.Op, "record", e.Key.String(),
			"owner", e.Owner.String(), "found", e.Found.Owner.String(), "version", e.Found.Version)
	default:
		k.counts.unanswered.Add(1)
	}
}

// Handle is the record of one instance: of an entity, or of anything else that has an epoch, such as a
// singleton. Its methods are called by one goroutine at a time.
type Handle struct {
	keeper *Keeper
	record *hold.Hold
	key    store.Key
	failed *Error // Why the handle has ended; nil if it has not.
}

// Open claims a record for an instance that starts under an epoch, and loads it. From then on no
// earlier instance can change the record. The error is an [*Error]; it wraps [ErrFenced] if an
// instance of a later epoch has the record.
func (k *Keeper) Open(ctx context.Context, key store.Key, epoch Epoch) (*Handle, store.Record, error) {
	owner := store.Owner{Epoch: epoch, Instance: k.instances.Add(1)}
	if !valid(key.Kind, 128) || !valid(key.ID, 1024) {
		return nil, store.Record{}, &Error{Op: "load", Key: key, Owner: owner, Err: ErrInvalidKey}
	}
	h := &Handle{keeper: k, key: key, record: hold.NewHold(hold.Config{
		Limit: k.cfg.Limit, Pause: k.cfg.Pause, PauseMost: k.cfg.PauseMost,
	}, key, owner)}
	claim := h.record.Claim()
	loaded, err := attempt(ctx, h, "load", func() (store.Record, store.Head, error) {
		r, err := k.loads.do(ctx, claim, key, h.record.Attempts())
		return r, r.Head, err
	})
	if err != nil {
		return nil, store.Record{}, err
	}
	k.counts.load.add(loaded.Snapshot, loaded.Events)
	return h, loaded, nil
}

// valid reports whether a name can be part of a key.
func valid(name string, most int) bool {
	return name != "" && len(name) <= most && utf8.ValidString(name)
}

// Version returns how often the record has changed, each event counted.
func (h *Handle) Version() uint64 { return h.record.Version() }

// SaveSnapshot has a state take the place of all that the record has; the zero value leaves nothing. The version rises
// by steps, which is at least 1. It returns when that is kept by the store, or with an [*Error], after which the handle
// is of no more use: open the record anew. Nobody changes the bytes after the call.
func (h *Handle) SaveSnapshot(ctx context.Context, snapshot store.Value, steps uint64) error {
	return h.save(ctx, max(1, steps), snapshot, nil)
}

// SaveEvents adds events to the record, otherwise like SaveSnapshot. Without any it does nothing.
func (h *Handle) SaveEvents(ctx context.Context, events []store.Value) error {
	if len(events) == 0 {
		return nil
	}
	return h.save(ctx, 0, store.Value{}, events)
}

func (h *Handle) save(ctx context.Context, steps uint64, snapshot store.Value, events []store.Value) error {
	if h.failed != nil {
		return h.failed
	}
	for _, v := range append(slices.Clip(events), snapshot) {
		if len(v.Bytes) > h.keeper.cfg.MaxBytes {
			h.record.Abandon()
			h.failed = &Error{Op: "save", Key: h.key, Owner: h.record.Owner(), Err: fmt.Errorf("%w: %d, max-bytes is %d", ErrTooLarge, len(v.Bytes), h.keeper.cfg.MaxBytes)}
			return h.failed
		}
	}
	write := h.record.Save(steps, snapshot, events)
	_, err := attempt(ctx, h, "save", func() (store.Head, store.Head, error) {
		head, err := h.keeper.saves.do(ctx, write, h.key, h.record.Attempts())
		return head, head, err
	})
	if err == nil {
		h.keeper.counts.save.add(snapshot, events)
	}
	return err
}
