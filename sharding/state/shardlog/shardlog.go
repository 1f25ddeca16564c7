// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shardlog

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// The store opens all pages of a shard at once, and a set hands each change to the pages of its ids; what a page
// is and how it is written is in page.go. The calls for several pages, and for several shards, go into one call of
// the store of states: the keeper sees to that.

// Store remembers entities in a store of states.
type Store struct {
	cfg    Config
	keeper *state.Keeper
}

var _ remember.Store = (*Store)(nil)

// New returns a store over a store of states. The error is that of [Config.Validate]. The options are those of the
// keeper that calls the store.
func New(st store.Store, cfg Config, options ...state.Option) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("shardlog: %w", err)
	}
	keeper, err := state.NewKeeper(st, cfg.State, options...)
	if err != nil {
		return nil, fmt.Errorf("shardlog: %w", err)
	}
	return &Store{cfg: cfg, keeper: keeper}, nil
}

// Stats returns what the keeper of the store counts.
func (s *Store) Stats() state.Stats { return s.keeper.Stats() }

// Open implements [remember.Store].
func (s *Store) Open(ctx context.Context, shard remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	o := &set{shard: shard, pages: make([]page, s.cfg.Pages)}
	err := remember.Each(len(o.pages), func(i int) error {
		return o.pages[i].open(ctx, s.keeper, s.key(shard, i), under, s.cfg.State.MaxBytes)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("shardlog: %v: %w", shard, err)
	}
	n := 0
	for i := range o.pages {
		n += len(o.pages[i].ids)
	}
	ids := make([]string, 0, n)
	for i := range o.pages {
		for id := range o.pages[i].ids { //quorate:unordered The caller gets them in any order.
			ids = append(ids, id)
		}
	}
	return o, ids, nil
}

// key returns the name of a page. The numbers are the last three parts, so no two kinds share a record.
func (s *Store) key(shard remember.Shard, page int) store.Key {
	return store.Key{Kind: s.cfg.Name, ID: shard.Kind + "/" + strconv.Itoa(shard.Of) + "/" + strconv.Itoa(shard.Number) + "/" + strconv.Itoa(page)}
}

// set is the set of a shard in the hands of one owner.
type set struct {
	shard remember.Shard
	pages []page
}

var _ remember.Set = (*set)(nil)

// Change implements [remember.Set].
func (s *set) Change(ctx context.Context, add, remove []string) error {
	for _, id := range add {
		s.page(id).queue(id, opRemember)
	}
	for _, id := range remove {
		s.page(id).queue(id, opForget)
	}
	full := &remember.FullError{Shard: s.shard}
	var mu sync.Mutex // Guards full.IDs.
	err := remember.Each(len(s.pages), func(i int) error {
		rest, err := s.pages[i].save(ctx)
		mu.Lock()
		defer mu.Unlock()
		full.IDs = append(full.IDs, rest...)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("shardlog: %v: %w", s.shard, err)
	case len(full.IDs) > 0:
		return full
	default:
		return nil
	}
}

// page returns the page of an id. The function is part of the form: another one would not find what is there.
func (s *set) page(id string) *page {
	// The shard is the rest of the same sum by the number of shards, so the high half says more.
	return &s.pages[(xxhash.Sum64String(id)>>32)%uint64(len(s.pages))]
}
