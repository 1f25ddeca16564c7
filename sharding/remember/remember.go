// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remember

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quorate/quorate/sharding/epoch"
)

// Shard names a set: that of one shard of a kind with so many shards. The kind is valid UTF-8 of 1 to 128 bytes. A kind
// whose number of shards has changed has sets of several numbers until those of the former ones are taken over. The
// shard with the numbers 0 of 0 is no shard: its set is the index of the kind, and has in decimal digits the numbers of
// shards of which there may be sets that are not empty.
type Shard struct {
	Kind   string
	Number int // 0 to Of-1; 0 of the index.
	Of     int // 1 to 65,536; 0 of the index.
}

// String returns the kind and the numbers.
func (s Shard) String() string {
	if s.Of == 0 {
		return "the index of " + s.Kind
	}
	return fmt.Sprintf("shard %d of %d of %s", s.Number, s.Of, s.Kind)
}

// Store keeps the ids of entities that are remembered. It is called by many goroutines at once, but not for
// one shard, unless a call does not end with its context. A call ends soon after its context.
type Store interface {
	// Open makes the caller the owner of a shard's set, unless it has an owner of a later epoch, and returns the
	// set and the ids in it, in any order, each once. Of two calls under one epoch the later one is the
	// later owner. From then on no change of an earlier owner takes effect which the ids do not have.
	// A set that is not there is empty. The caller owns the slice.
	//
	// The error wraps [ErrFenced] if a later owner has the set. Any other says that the call may be
	// repeated, and that nobody knows whether it has taken effect.
	Open(ctx context.Context, shard Shard, under epoch.Epoch) (Set, []string, error)
}

// Set is the set of a shard in the hands of one owner. One call is under way at a time; after an error there is
// no other one, and the set is opened anew.
type Set interface {
	// Change adds ids to the set and takes others out, all that the store is given in any order, and
	// returns nil when the store will not lose that. An id that is there already, or is not there, is no error.
	// No id is in both lists; each is valid UTF-8 of 1 to 512 bytes. The slices stay as they are during
	// the call and are not kept.
	//
	// The error wraps [ErrFenced] if a later owner has the set; then nothing was changed. A [*FullError]
	// says which ids have no room; everything else was done, and the set may be changed further. After any
	// other error each id may have been added, or taken out, or will be until the set is opened anew.
	Change(ctx context.Context, remember, forget []string) error
}

// What a call may end with, besides a [*FullError] and the errors of what is below the store.
var (
	// ErrFenced: a later owner has the set. The caller does not host the shard any more, or will soon hear that
	// it does not.
	ErrFenced = errors.New("a later owner has the set of remembered entities")
	// ErrUnreadable: what the store has of the set is not what was written.
	ErrUnreadable = errors.New("the set of remembered entities cannot be decoded")
	// ErrNewerForm: a newer program has written the set.
	ErrNewerForm = errors.New("the set of remembered entities was written in a newer form")
)

// FullError says that a set has no room for some ids. Everything else that was asked for was done.
type FullError struct {
	Shard Shard
	IDs   []string // Those that are not remembered.
}

// Error names the shard, and how many ids have no room.
func (e *FullError) Error() string {
	return fmt.Sprintf("remember: %v has no room for %d entities", e.Shard, len(e.IDs))
}

// Each calls f with 0 to n-1 at once, and returns when all calls have, for stores that keep a set in several parts. Of
// several errors one that wraps [ErrFenced] is returned alone: whatever else has failed, the set has a later owner.
func Each(n int, f func(part int) error) error {
	faults := make([]error, n)
	var calls sync.WaitGroup
	for i := range n {
		// The goroutines are owned by this call, which waits for them; each ends with f.
		calls.Go(func() { faults[i] = f(i) })
	}
	calls.Wait()
	for _, err := range faults {
		if errors.Is(err, ErrFenced) {
			return err
		}
	}
	return errors.Join(faults...)
}
