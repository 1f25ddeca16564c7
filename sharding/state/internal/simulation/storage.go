// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// storage is the store, with the delays and failures of calls.
type storage struct {
	w       *World
	records *memory.Store
	claimed map[store.Key]store.Owner // The highest owner that has claimed a record.
	until   time.Duration             // The store is down until then.
}

// takeDown takes the store down for a time.
func (s *storage) takeDown(d time.Duration) {
	s.until = max(s.until, s.w.Now()+d)
	s.w.Log("the store is down for %v", d)
}

// read returns a record as it is: the claim has no owner, and changes none.
func (s *storage) read(k store.Key) store.Record {
	records, _ := s.records.Load(context.Background(), []store.Claim{{Key: k}})
	return records[0]
}

// load carries out claims that have come to the store.
func (s *storage) load(claims []store.Claim) []store.Record {
	for _, c := range claims {
		if s.claimed[c.Key].Less(c.Owner) {
			s.claimed[c.Key] = c.Owner
		}
	}
	records, _ := s.records.Load(context.Background(), claims)
	return records
}

// save carries out writes that have come to the store.
func (s *storage) save(writes []store.Write) []store.Head {
	var heads []store.Head
	for _, write := range writes {
		before := s.read(write.Key)
		answer, _ := s.records.Save(context.Background(), []store.Write{write})
		heads = append(heads, answer...)
		changed := !reflect.DeepEqual(s.read(write.Key), before)
		if owner := s.claimed[write.Key]; changed && owner != write.Owner {
			s.w.Fail(fmt.Errorf("S5: %v is changed by %v, though %v has claimed it", write.Key, write.Owner, owner))
		}
		if !changed && answer[0] == write.After() {
			s.w.Counts.Repeated++
		}
	}
	return heads
}

// carry makes a call after a delay: it calls carryOut with how many of the requests take effect and, after another
// delay, answer, which tells whether the call has succeeded. Some calls are lost on the way.
func (s *storage) carry(requests int, carryOut func(n int), answer func(ok bool)) {
	w := s.w
	w.Counts.Calls++
	if requests > 1 {
		w.Counts.Batched++
	}
	way, back := time.Millisecond+w.upTo(4*time.Millisecond), time.Millisecond+w.upTo(4*time.Millisecond)
	effect, ok := requests, true
	switch {
	case w.chance(0.02): // Lost on its way.
		return
	case w.chance(0.05): // Done, and the answer lost.
		back, ok = back+w.upTo(time.Second), false
	case w.chance(0.02): // Done in part.
		effect, ok = w.rand.IntN(requests+1), false
	case w.chance(0.05): // Late, perhaps after nobody waits any more.
		way = w.upTo(30 * time.Second)
	}
	w.After(way, func() {
		if w.Now() < s.until {
			w.After(back, func() { answer(false) })
			return
		}
		if way > callTimeout {
			w.Counts.Late++
		}
		carryOut(effect)
		w.After(back, func() { answer(ok) })
	})
}

// checkMemory checks that the owner of a record has in memory what the store has.
func (s *storage) checkMemory(k store.Key, owner store.Owner, state []string) {
	if s.claimed[k] != owner {
		return // It was replaced, and does not know it (docs/state.md, "may answer with an old state; it cannot change it.").
	}
	has, err := Content(s.read(k))
	if err != nil || !slices.Equal(has, state) {
		s.w.Fail(fmt.Errorf("S6: %v has %v of %v in memory, the store has %v", owner, state, k, has))
	}
}
