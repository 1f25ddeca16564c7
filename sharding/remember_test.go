// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
)

// Entities that are remembered, on clusters of a few nodes: first that they come back, then that they
// are forgotten, then what a store does to them that is slow, fails or lies, and last what is refused.

// shelved is a store of ids whose calls a test may hold up, or have fail.
type shelved struct {
	remember.Store

	mu    sync.Mutex
	fault func(ctx context.Context, op string, of remember.Shard) error // Guarded by mu; nil: none.
	opens []time.Time                                                   // Guarded by mu.
}

func (s *shelved) breaks(f func(ctx context.Context, op string, of remember.Shard) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *shelved) at(ctx context.Context, op string, of remember.Shard) error {
	s.mu.Lock()
	f := s.fault
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx, op, of)
}

func (s *shelved) Open(ctx context.Context, of remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	s.mu.Lock()
	s.opens = append(s.opens, time.Now())
	s.mu.Unlock()
	if err := s.at(ctx, "open", of); err != nil {
		return nil, nil, err
	}
	set, ids, err := s.Store.Open(ctx, of, under)
	if err != nil {
		return nil, nil, err
	}
	return shelvedSet{set, s, of}, ids, nil
}

type shelvedSet struct {
	remember.Set

	of    *shelved
	shard remember.Shard
}

func (s shelvedSet) Change(ctx context.Context, add, remove []string) error {
	if err := s.of.at(ctx, "change", s.shard); err != nil {
		return err
	}
	if err := s.Set.Change(ctx, add, remove); err != nil {
		return err
	}
	return s.of.at(ctx, "answer", s.shard)
}

// shelve has the kind of a world remember its entities in a store that outlives the world.
func (w *world) shelve(ids remember.Store) *shelved {
	s := &shelved{Store: ids}
	w.kind = func(_ *node, k *sharding.Kind[text]) { k.Remember = s }
	return s
}

// remembered expects the ids that the store has.
func (w *world) remembered(s remember.Store, want ...string) {
	w.t.Helper()
	w.rememberedOf(s, 12, want...)
}

// rememberedOf expects the ids that the store has in the sets of a number of shards.
func (w *world) rememberedOf(s remember.Store, shards int, want ...string) {
	w.t.Helper()
	var all []string
	for n := range shards {
		_, ids, err := s.Open(w.t.Context(), remember.Shard{Kind: "test", Number: n, Of: shards}, epoch.Epoch{Born: time.Now().Add(time.Hour).UnixMilli()})
		require.NoError(w.t, err)
		all = append(all, ids...)
	}
	require.ElementsMatch(w.t, want, all)
}

// runs reports whether an entity runs, at one node.
func (w *world) runs(id string) bool {
	at := 0
	for _, n := range w.nodes {
		for _, e := range n.entities() {
			if e.ID == id && (e.State == "idle" || e.State == "busy") {
				at++
			}
		}
	}
	return at == 1
}

// entities returns the entities of a node; none after its end.
func (n *node) entities() []sharding.EntityInfo {
	all, _, err := n.system.Entities("test", 1<<20)
	require.NoError(n.w.t, err)
	return all
}

func ids(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("r-", i))
	}
	return all
}

// Entities that got a message run again after the crash of their node, a planned move, and a restart of all nodes,
// without another message, and at one node.
// covers F48, I26.
func TestRememberedEntitiesComeBack(t *testing.T) {
	records := new(sets)
	inBubble(t, func(t *testing.T, w *world) {
		w.shelve(records)
		w.start(3)
		for _, id := range ids(30) {
			w.nodes[0].must(id, "x")
		}
		pass(300 * time.Millisecond)
		for _, id := range ids(30) {
			require.True(t, records.has(id), "the store has %s soon", id)
		}
		all := func() bool { return !slices.ContainsFunc(ids(30), func(id string) bool { return !w.runs(id) }) }
		w.crash(w.nodes[2])
		w.nodes = w.nodes[:2]
		eventually(t, "they run after a crash", all)
		before := len(w.journal.of("r-1", "start"))
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[1].Leave(ctx))
		w.nodes = w.nodes[:1]
		eventually(t, "they run after a leave", all)
		require.GreaterOrEqual(t, len(w.journal.of("r-1", "start")), before)
		require.Len(t, w.journal.of("r-1", "x"), 1, "nobody sent another message")
	})
	inBubble(t, func(t *testing.T, w *world) {
		pass(3 * time.Hour) // The clock of a bubble begins anew, and with it the epochs.
		w.shelve(records)
		w.form(3)
		for _, n := range w.nodes {
			n.startKind()
		}
		// Nobody sends anything: shards get their homes ahead of the first message.
		eventually(t, "they run after a restart of everything", func() bool {
			return !slices.ContainsFunc(ids(30), func(id string) bool { return !w.runs(id) })
		})
	})
}

// An entity that fails is started again, by the rests that failures take; and one that is idle stays.
func TestRememberedEntitiesStay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.PassivateAfter = time.Second }
		w.shelve(new(sets))
		w.start(1)
		n := w.nodes[0]
		n.must("a", "x")
		_, err := n.ask("a", "fail", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		pass(100 * time.Millisecond)
		require.True(t, w.runs("a"))
		require.Len(t, w.journal.of("a", "start"), 2)
		pass(time.Minute)
		require.True(t, w.runs("a"), "it is idle")
		_, err = n.ask("bad-start", "x", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		before := len(w.journal.of("bad-start", "start"))
		pass(time.Minute)
		tries := len(w.journal.of("bad-start", "start")) - before
		require.Positive(t, tries, "it is tried again without a message")
		require.Less(t, tries, 10, "and rests in between")
	})
}

// An entity that asks to be stopped is forgotten, unless a message comes; one that asks for it while its shard moves
// is not.
func TestAnEntityThatStopsItselfIsForgotten(t *testing.T) {
	records := new(sets)
	inBubble(t, func(t *testing.T, w *world) {
		ids := w.shelve(records)
		w.start(1)
		n := w.nodes[0]
		for _, id := range []string{"a", "b", "c"} {
			n.must(id, "x")
		}
		n.must("a", "passivate")
		n.must("c", "passivate")
		pass(time.Second)
		require.False(t, w.runs("a"))
		n.must("c", "x")
		pass(time.Second)
		require.True(t, w.runs("c"))
		w.remembered(ids, "b", "c", "first")
	})
	inBubble(t, func(t *testing.T, w *world) {
		pass(3 * time.Hour)
		w.shelve(records)
		w.form(1)
		w.nodes[0].startKind()
		eventually(t, "the others run", func() bool { return w.runs("b") && w.runs("c") })
		pass(time.Minute)
		require.Empty(t, w.journal.of("a", "start"))
	})
}

// While the store is down entities begin all the same, the explanation says what is the matter, and everything is
// written when the store is back. covers I26, F48.
func TestAStoreOfIDsThatIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ids := w.shelve(new(sets))
		w.start(1)
		pass(time.Second)
		ids.breaks(func(context.Context, string, remember.Shard) error { return errors.New("no connection") })
		n := w.nodes[0]
		n.must("a", "x")
		n.must("b", "x")
		pass(10 * time.Second)
		require.True(t, w.runs("a"))
		x, err := n.region.Explain(t.Context(), "a")
		require.NoError(t, err)
		require.Contains(t, strings.Join(x.Pending, "\n"), "1 ids of entities are to be written")
		require.Contains(t, strings.Join(x.Pending, "\n"), "no connection")
		n.must("b", "passivate") // Its wish takes the place of the first one.
		ids.breaks(nil)
		pass(15 * time.Second)
		x, err = n.region.Explain(t.Context(), "a")
		require.NoError(t, err)
		require.NotContains(t, strings.Join(x.Pending, "\n"), "store of remembered")
		w.remembered(ids, "a", "first")
	})
}

// silent is an error that panics when it is asked for its text, as one does that is a nil pointer.
type silent struct{ text string }

func (s *silent) Error() string { return s.text }

// A store that changes the ids and gives no answer, ends the goroutine, panics, or gives an answer that is none.
func TestAStoreOfIDsThatLosesAnswers(t *testing.T) {
	for name, fault := range map[string]func(ctx context.Context) error{
		"no answer":        func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"a lost answer":    func(context.Context) error { return errors.New("the connection is lost") },
		"a panic":          func(context.Context) error { panic("oops") },
		"a nil pointer":    func(context.Context) error { return (*silent)(nil) },
		"a goroutine ends": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(_ *testing.T, w *world) {
				ids := w.shelve(new(sets))
				w.start(2)
				calls := 0
				var mu sync.Mutex
				ids.breaks(func(ctx context.Context, op string, _ remember.Shard) error {
					mu.Lock()
					calls++
					fails := calls%2 == 1
					mu.Unlock()
					if op != "answer" || !fails {
						return nil
					}
					return fault(ctx)
				})
				for i := range 10 {
					w.nodes[0].must(fmt.Sprint("r-", i), "x")
				}
				w.nodes[0].must("r-3", "passivate")
				pass(2 * time.Minute)
				ids.breaks(nil)
				w.remembered(ids, "first", "r-0", "r-1", "r-2", "r-4", "r-5", "r-6", "r-7", "r-8", "r-9")
			})
		})
	}
}

// With RememberFirst no message is handled before the store has the entity; when it does not come to have it in time,
// the message is refused, and entities that are known go on.
func TestTheFirstMessageWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ids := w.shelve(new(sets))
		kind := w.kind
		w.kind = func(n *node, k *sharding.Kind[text]) {
			kind(n, k)
			k.RememberFirst = true
		}
		w.start(1)
		n := w.nodes[0]
		n.must("known", "x")
		goes := make(chan struct{})
		ids.breaks(func(_ context.Context, op string, _ remember.Shard) error {
			if op == "change" {
				<-goes
			}
			return nil
		})
		answer := n.asked("a", "x")
		pass(5 * time.Second)
		require.Empty(t, w.journal.of("a", "start"))
		n.must("known", "x")
		close(goes)
		require.NoError(t, within(t, answer))
		require.True(t, w.runs("a"))

		ids.breaks(func(context.Context, string, remember.Shard) error { return errors.New("no connection") })
		began := time.Now()
		_, err := n.ask("b", "x", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, "the store of remembered entities did not take it: no connection")
		require.WithinRange(t, time.Now(), began.Add(15*time.Second), began.Add(30*time.Second))
		require.Empty(t, w.journal.of("b", "start"))
		n.must("known", "x")
		ids.breaks(nil)
		pass(time.Minute)
		n.must("b", "x")
		n.must("known", "passivate")
		pass(time.Second)
		w.remembered(ids, "a", "b", "first")
	})
}

// Entities come back at the rate of the configuration, which can be changed while they do; one to which a message
// comes does not wait.
// covers I28, F48.
func TestRecoveryIsBounded(t *testing.T) {
	records := new(sets)
	config := func(_ *membership.Config, s *sharding.Config) { s.Remember.RecoveryRate = 20 }
	const n = 400
	inBubble(t, func(_ *testing.T, w *world) {
		w.shelve(records)
		w.start(1)
		for i := range n {
			w.nodes[0].tell(fmt.Sprint("r-", i), "x")
		}
		pass(time.Second)
	})
	inBubble(t, func(t *testing.T, w *world) {
		pass(3 * time.Hour) // The clock of a bubble begins anew, and with it the epochs.
		w.config = config
		w.shelve(records)
		w.form(1)
		node := w.nodes[0]
		node.startKind()
		eventually(t, "the first one runs", func() bool { return len(node.entities()) > 0 })
		began, had := time.Now(), len(node.entities())
		pass(5 * time.Second)
		require.InDelta(t, 20*time.Since(began).Seconds(), len(node.entities())-had, 3)
		x, err := node.system.ExplainShard(t.Context(), "test", 0)
		require.NoError(t, err)
		require.Contains(t, strings.Join(x.Pending, "\n"), "remembered entities wait to begin")
		late := ""
		for i := range n {
			if id := fmt.Sprint("r-", i); !w.runs(id) {
				late = id
			}
		}
		node.must(late, "x")
		cfg := sharding.Default()
		cfg.NumberOfShards = 12
		config(nil, &cfg)
		cfg.Remember.RecoveryRate = 0
		require.NoError(t, node.system.Reload(cfg))
		pass(time.Second)
		require.Len(t, node.entities(), n+1)
		cfg.Remember.Batch++
		require.ErrorIs(t, node.system.Reload(cfg), sharding.ErrFixed)
	})
}

// liar is a store with ids that no entity can have.
type liar struct{ remember.Store }

func (l liar) Open(ctx context.Context, of remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	set, ids, err := l.Store.Open(ctx, of, under)
	return set, append(ids, "", "r-1", "\xff", strings.Repeat("x", 513), "r-2"), err
}

// Ids in the store that are not of their shard, or of nobody, begin no entity: two shards with one entity would be
// two instances of it.
// covers F47, I1.
func TestIDsThatAreNotOfTheirShard(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ids := w.shelve(new(sets))
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Remember = liar{ids} }
		w.start(2)
		pass(time.Second)
		require.True(t, w.runs("r-1"))
		require.True(t, w.runs("r-2"))
		for _, n := range w.nodes {
			for _, e := range n.entities() {
				require.Contains(t, []string{"first", "r-1", "r-2"}, e.ID)
			}
		}
	})
}

// What a shard has not written when it is to move is written before it goes; a store that does not answer holds the
// move up for half of the handoff timeout at most.
func TestAMoveWaitsForWhatIsToBeWritten(t *testing.T) {
	for _, down := range []time.Duration{5 * time.Second, time.Hour} {
		t.Run(down.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				ids := w.shelve(new(sets))
				w.start(2)
				pass(time.Second)
				id := w.nodes[0].on(w.nodes[0])
				pass(time.Second)
				back := time.Now().Add(down)
				ids.breaks(func(_ context.Context, op string, _ remember.Shard) error {
					if op == "change" && time.Now().Before(back) {
						return errors.New("no connection")
					}
					return nil
				})
				began := time.Now()
				w.nodes[0].must(id, "x")
				require.NoError(t, w.nodes[0].system.Drain(t.Context()))
				took := time.Since(began)
				pass(time.Second)
				if down == time.Hour {
					require.WithinDuration(t, began.Add(30*time.Second), began.Add(took), 10*time.Second)
					require.False(t, w.runs(id))
				} else {
					require.Less(t, took, 20*time.Second)
					eventually(t, "it runs elsewhere", func() bool { return w.runs(id) })
				}
				w.nodes[1].must(id, "x")
			})
		})
	}
}

// A kind whose settings contradict that its entities are remembered is refused.
func TestWhatContradictsRememberingIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.build()
		ids := w.shelve(new(sets))
		for says, change := range map[string]func(*sharding.Kind[text]){
			"PassivateAfter contradicts Remember": func(k *sharding.Kind[text]) { k.PassivateAfter = time.Second },
			"EntityLimit contradicts Remember":    func(k *sharding.Kind[text]) { k.EntityLimit = 5 },
			"RememberFirst needs Remember":        func(k *sharding.Kind[text]) { k.Remember, k.RememberFirst = nil, true },
		} {
			k := sharding.Kind[text]{Name: "other", Remember: ids, New: func(*sharding.Context) sharding.Entity[text] { return &actor{n: n} }}
			change(&k)
			_, err := sharding.Start(n.system, k)
			require.ErrorContains(t, err, says)
		}
	})
}

// The default configuration is valid, and each fault is said at its key.
func TestTheConfigurationOfRemembering(t *testing.T) {
	for key, change := range map[string]func(*sharding.RememberConfig){
		"remember.recovery-rate": func(c *sharding.RememberConfig) { c.RecoveryRate = -1 },
		"remember.calls":         func(c *sharding.RememberConfig) { c.Calls = 0 },
		"remember.batch":         func(c *sharding.RememberConfig) { c.Batch = 10_001 },
		"remember.call-timeout":  func(c *sharding.RememberConfig) { c.CallTimeout = 0 },
		"remember.retry-min":     func(c *sharding.RememberConfig) { c.RetryMin = 0 },
		"remember.retry-max":     func(c *sharding.RememberConfig) { c.RetryMax = time.Millisecond },
		"remember.first-limit":   func(c *sharding.RememberConfig) { c.FirstLimit = -1 },
	} {
		c := sharding.Default()
		change(&c.Remember)
		require.ErrorContains(t, c.Validate(), key)
	}
}
