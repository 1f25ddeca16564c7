// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"errors"
	"time"

	"github.com/quorate/quorate/sharding/state/store"
)

// A hold is what one instance of an entity has of its record. Its driver calls the store with what [Hold.Claim] or
// [Hold.Save] returns, passes the answer to [Hold.Answered] or [Hold.Unanswered], and does what the returned [Step]
// says: it goes on, repeats the same call after a pause, or ends the instance.

// The ways in which a hold ends.
var (
	// ErrFenced says that a later owner has the record.
	ErrFenced = errors.New("a later owner has the record")
	// ErrForeign says that the record has this owner, and a version that the hold has not written.
	ErrForeign = errors.New("the record has a version that this owner has not written")
	// ErrUnanswered says that the store has not answered in time.
	ErrUnanswered = errors.New("the store has not answered in time")
)

// Config says for how long a hold repeats calls.
type Config struct {
	// Limit bounds the time from the first attempt of a claim or a save to the beginning of its last.
	Limit time.Duration
	// Pause is the time between two attempts at first; it doubles up to PauseMost.
	Pause, PauseMost time.Duration
}

// Step is what follows an answer: with neither field set, the operation has succeeded.
type Step struct {
	Again time.Duration // Above zero: repeat the call after this time.
	Err   error         // Not nil: the hold has ended, for one of the reasons above.
}

// Hold is the record of one instance.
//
// I1: as long as the hold has not ended, only the write that is under way may have written a version above expected
// under its owner. So if the head has the owner and the version of that write, the write has been made, by whichever
// attempt.
type Hold struct {
	cfg      Config
	key      store.Key
	owner    store.Owner
	expected uint64      // The version that the instance knows of.
	write    store.Write // The write under way; with no version for a claim.
	attempts int         // Those of the present operation that have had no answer.
	claimed  bool
	err      error
}

// NewHold returns the hold of an instance that has not claimed its record.
func NewHold(cfg Config, key store.Key, owner store.Owner) *Hold {
	return &Hold{cfg: cfg, key: key, owner: owner}
}

// Owner returns the owner under which the record is claimed.
func (h *Hold) Owner() store.Owner { return h.owner }

// Version returns the version of the record that the instance knows of.
func (h *Hold) Version() uint64 { return h.expected }

// Err returns why the hold has ended; nil if it has not.
func (h *Hold) Err() error { return h.err }

// Attempts returns how many attempts of the present operation have had no answer.
func (h *Hold) Attempts() int { return h.attempts }

// Claim returns the claim of the record, which is the first call.
func (h *Hold) Claim() store.Claim { return store.Claim{Key: h.key, Owner: h.owner} }

// Save begins a change: by events if there are any, else to a snapshot. The version rises by the number of events, or
// by steps. The record has to be claimed, and no other change under way.
func (h *Hold) Save(steps uint64, snapshot store.Value, events []store.Value) store.Write {
	if len(events) > 0 {
		steps = uint64(len(events))
	}
	h.write = store.Write{
		Key: h.key, Owner: h.owner, Expected: h.expected, Version: h.expected + steps,
		Snapshot: snapshot, Events: events,
	}
	return h.write
}

// Answered takes the answer of the store: the head of the record after the claim or the write.
func (h *Hold) Answered(head store.Head) Step {
	h.attempts = 0
	switch {
	case h.err != nil:
	case head.Owner != h.owner && !head.Owner.Less(h.owner):
		h.err = ErrFenced
	case !h.claimed && head.Owner == h.owner:
		h.claimed, h.expected = true, head.Version
	case h.claimed && head == h.write.After():
		h.expected = h.write.Version
	default:
		h.err = ErrForeign
	}
	return Step{Err: h.err}
}

// Unanswered takes that an attempt has failed, at a time after the operation began. It may have had its effect, or may
// have it later.
func (h *Hold) Unanswered(since time.Duration) Step {
	h.attempts++
	pause := h.cfg.Pause << min(h.attempts-1, 20)
	if pause > h.cfg.PauseMost || pause <= 0 {
		pause = h.cfg.PauseMost
	}
	pause = h.spread(pause)
	if h.err == nil && since+pause > h.cfg.Limit {
		h.err = ErrUnanswered
	}
	if h.err != nil {
		return Step{Err: h.err}
	}
	return Step{Again: pause}
}

// Abandon ends the hold: its driver waits for no answer any more.
func (h *Hold) Abandon() {
	if h.err == nil {
		h.err = ErrUnanswered
	}
}

// spread returns a time from half of d to d, which depends on the numbers of the instance and of the attempt: so the
// instances of a node, whose calls have failed together, do not repeat them at the same time.
func (h *Hold) spread(d time.Duration) time.Duration {
	const golden = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: multiples of it are spread evenly.
	x := (h.owner.Instance + uint64(h.attempts)*7) * golden
	return d - time.Duration(float64(d)/2*(float64(x>>11)/(1<<53)))
}
