// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/remember/remembertest"
)

// sets is a store of ids in memory. Its zero value is empty.
type sets struct {
	mu  sync.Mutex
	all map[remember.Shard]*idSet // Guarded by mu, as is what is in it.
}

// idSet is the set of one shard. The latest of those who have opened it may change it.
type idSet struct {
	ids   map[string]bool
	under epoch.Epoch
	opens int
}

func (s *sets) Open(_ context.Context, of remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[remember.Shard]*idSet{}
	}
	set := s.all[of]
	if set == nil {
		set = &idSet{ids: map[string]bool{}}
		s.all[of] = set
	}
	if under.Less(set.under) {
		return nil, nil, remember.ErrFenced
	}
	set.under = under
	set.opens++
	return openSet{s, set, set.opens}, slices.Sorted(maps.Keys(set.ids)), nil
}

// has reports whether some shard has an id.
func (s *sets) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.all {
		if set.ids[id] {
			return true
		}
	}
	return false
}

// openSet is a set in the hands of the n-th who has opened it.
type openSet struct {
	of  *sets
	set *idSet
	n   int
}

func (s openSet) Change(_ context.Context, add, remove []string) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.n != s.set.opens {
		return remember.ErrFenced
	}
	for _, id := range add {
		s.set.ids[id] = true
	}
	for _, id := range remove {
		delete(s.set.ids, id)
	}
	return nil
}

func TestTheStoreOfTheseTestsKeepsTheContract(t *testing.T) {
	remembertest.Test(t, remembertest.Place{New: func(testing.TB) remembertest.Server {
		return remembertest.Server{Store: new(sets)}
	}})
}
