// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/remember"
)

// resharded waits until no node knows of a change any more, and all have a number of shards.
func (w *world) resharded(shards int) {
	w.t.Helper()
	eventually(w.t, "the change is over", func() bool {
		for _, n := range w.nodes {
			if k := n.system.Kinds()[0]; k.Shards != shards || k.Resharding != nil {
				return false
			}
		}
		return true
	})
}

// The number of shards changes while several goroutines of every node send and ask: no message is
// lost, doubled or overtaken, no ask fails, and entities keep their ids and little else.
// covers I20 for changes of the number of shards.
func TestTheNumberOfShardsChangesUnderLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		const rounds = 150
		var senders sync.WaitGroup
		for _, n := range w.nodes {
			for s := range 3 {
				senders.Go(func() {
					for i := range rounds {
						for e := range 6 {
							n.tell(fmt.Sprintf("id-%d", e), fmt.Sprintf("from-%d-%d %d", n.i, s, i+1))
						}
						n.must(fmt.Sprintf("id-%d", i%6), "x")
					}
				})
			}
		}
		for _, shards := range []int{20, 7, 1} {
			require.NoError(t, w.nodes[1].system.Reshard(t.Context(), "test", shards))
			w.resharded(shards)
		}
		senders.Wait()
		for e := range 6 {
			id := fmt.Sprintf("id-%d", e)
			for _, n := range w.nodes {
				n.must(id, "x")
				for s := range 3 {
					w.inOrder(id, fmt.Sprintf("from-%d-%d", n.i, s), rounds)
				}
			}
		}
		for _, n := range w.nodes {
			stats := n.system.Stats()
			require.Zero(t, stats.Panics)
			require.Zero(t, stats.Failed)
		}
	})
}

// Explanations and lists know of both layouts, by the numbers that people know.
func TestAChangeIsExplained(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		w.nodes[0].tell(id, "wait") // Its shard does not stop.
		eventually(t, "it waits", func() bool { return len(w.journal.of(id, "wait")) == 1 })
		require.NoError(t, w.nodes[0].system.Reshard(t.Context(), "test", 30))
		eventually(t, "all but one are retired", func() bool {
			k := w.nodes[0].system.Kinds()[0]
			return k.Resharding != nil && *k.Resharding == (sharding.Resharding{From: 12, To: 30, Retired: 11})
		})
		var refused *sharding.ReshardError
		require.ErrorAs(t, w.nodes[1].system.Reshard(t.Context(), "test", 5), &refused)
		require.Equal(t, "sharding: test does not get 5 shards: a change is under way: from 12 to 30 shards, and 11 of the former are retired", refused.Error())
		x, err := w.nodes[0].system.Explain(t.Context(), "test", id)
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(x.Pending), "the kind gets 30 shards instead of 12")
		shards, err := w.nodes[0].system.Shards("test")
		require.NoError(t, err)
		states := map[string]int{}
		for _, s := range shards {
			states[fmt.Sprint(s.Layout, s.State == "retired")]++
		}
		require.Equal(t, map[string]int{"0 true": 11, "0 false": 1, "1 false": 30}, states)
		x, err = w.nodes[0].system.ExplainShard(t.Context(), "test", 29)
		require.NoError(t, err)
		require.Equal(t, 29, x.Shard)

		w.release()
		w.resharded(30)
		require.Equal(t, "test/"+id, w.nodes[0].must(id, "kind"))
		eventually(t, "what is over is forgotten", func() bool {
			shards, err := w.nodes[1].system.Shards("test")
			require.NoError(t, err)
			return len(shards) == 30 && shards[3].Layout == 1 && shards[3].Shard == 3
		})
		handled := w.nodes[0].system.Stats().Handled + w.nodes[1].system.Stats().Handled
		w.nodes[0].must(id, "x")
		require.Equal(t, handled+1, w.nodes[0].system.Stats().Handled+w.nodes[1].system.Stats().Handled, "counters only grow")
	})
}

// A kind of which each shard has a lease, or of which a part of the shards is in use, has its number for good.
func TestKindsThatKeepTheirNumberOfShards(t *testing.T) {
	refused := func(t *testing.T, w *world, reason string) {
		t.Helper()
		w.start(2)
		w.populate(4)
		var refused *sharding.ReshardError
		require.ErrorAs(t, w.nodes[1].system.Reshard(t.Context(), "test", 13), &refused)
		require.Contains(t, refused.Reason, reason)
		shards, err := w.nodes[0].system.Shards("test")
		require.NoError(t, err)
		require.Len(t, shards, 12)
	}
	inBubble(t, func(t *testing.T, w *world) {
		w.leased()
		refused(t, w, "a lease for each shard")
	})
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.InUse = 12 }
		refused(t, w, "a part of the shards in use")
	})
}

// What cannot be changed is refused in words, wherever it is asked for.
func TestChangesThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		for want, err := range map[string]error{
			"test does not get 0 shards: a kind has 1 to 65536 shards":     w.nodes[0].system.Reshard(t.Context(), "test", 0),
			"test does not get 70000 shards: a kind has 1 to 65536 shards": w.nodes[0].system.Reshard(t.Context(), "test", 70_000),
			"test does not get 12 shards: the kind has 12 shards":          w.nodes[1].system.Reshard(t.Context(), "test", 12),
			"knows nothing of the kind":                                    w.nodes[1].system.Reshard(t.Context(), "none", 13),
		} {
			var refused *sharding.ReshardError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, err.Error(), want)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.nodes[0].system.Reshard(over, "test", 3), context.Canceled)
	})
}

// All are told, slowly, while the number of shards changes: a shard whose layout is gone before its turn is left open.
func TestAllAreToldWhileTheNumberOfShardsChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.populate(400)
		ctx := patience.Expiring(t, 15*time.Second)
		type said struct {
			told sharding.Told
			err  error
		}
		all := make(chan said, 1)
		// Owner: this test, which waits.
		go func() {
			told, err := sharding.TellAll(ctx, w.nodes[0].region, say("news"), 20)
			all <- said{told, err}
		}()
		pass(500 * time.Millisecond)
		require.NoError(t, w.nodes[1].system.Reshard(t.Context(), "test", 30))
		w.resharded(30)
		out := <-all
		if out.err != nil {
			require.ErrorIs(t, out.err, context.DeadlineExceeded)
		}
		require.Positive(t, out.told.Open)
		require.False(t, out.told.Complete())
	})
}

// Entities that are permanent run in their new shards once the former ones are retired, each at one node at a time, and
// under a higher epoch.
func TestPermanentEntitiesFollowTheNumberOfShards(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Permanent = ids(10) }
		w.start(3)
		all := func() bool { return !slices.ContainsFunc(ids(10), func(id string) bool { return !w.runs(id) }) }
		eventually(t, "they run", all)
		for _, shards := range []int{30, 1, 7} {
			require.NoError(t, w.nodes[1].system.Reshard(t.Context(), "test", shards))
			w.resharded(shards)
			eventually(t, "they run in their new shards", all)
		}
		require.Zero(t, w.nodes[0].system.Stats().Panics)
	})
}

// Entities that are remembered run in their new shards, without a message: the ids that the store had for the former
// shards are taken over, and nothing is left of them. So it is after a restart of all nodes with another number in the
// files, and after a change that a restart has cut short. covers F48, I26, I28 for changes of the number of shards.
func TestRememberedEntitiesFollowTheNumberOfShards(t *testing.T) {
	records := new(sets)
	run := func(w *world) func() bool {
		return func() bool { return !slices.ContainsFunc(ids(30), func(id string) bool { return !w.runs(id) }) }
	}
	inBubble(t, func(t *testing.T, w *world) {
		shelf := w.shelve(records)
		w.start(3)
		for _, id := range ids(30) {
			w.nodes[0].must(id, "x")
		}
		w.change(20)
		eventually(t, "they run in their new shards", run(w))
		w.change(7)
		w.nodes[1].must("r-3", "passivate")
		pass(5 * time.Second)
		w.rememberedOf(shelf, 12)
		w.rememberedOf(shelf, 20)
		require.False(t, w.runs("r-3"))
		w.nodes[2].must("r-3", "x")
		eventually(t, "they run in their new shards", run(w))
		require.Len(t, w.journal.of("r-1", "x"), 1, "nobody sent another message")
		w.change(30)
		pass(time.Second) // The change is over, or is not.
	})
	for _, shards := range []int{5, 12} {
		inBubble(t, func(t *testing.T, w *world) {
			pass(time.Duration(shards) * time.Hour) // The clock of a bubble begins anew, and with it the epochs.
			shelf := w.shelve(records)
			remembers := w.kind
			w.kind = func(n *node, k *sharding.Kind[text]) {
				remembers(n, k)
				k.Shards = shards
			}
			w.form(3)
			for _, n := range w.nodes {
				n.startKind()
			}
			eventually(t, "they run after a restart with another number", run(w))
			pass(10 * time.Second)
			w.rememberedOf(shelf, 30)
		})
	}
}

// A set of a former shard that cannot be read keeps back what it has, and nothing else: the others are taken over, the
// explanation of the first shard names the set, and no further change begins before it is mended. covers F48 for
// changes of the number of shards.
func TestAFormerSetThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		shelf := w.shelve(new(sets))
		w.start(2)
		for _, id := range ids(30) {
			w.nodes[0].must(id, "x")
		}
		pass(time.Second)
		x, err := w.nodes[0].system.Explain(t.Context(), "test", "r-1")
		require.NoError(t, err)
		unreadable := remember.Shard{Kind: "test", Number: x.Shard, Of: 12}
		shelf.breaks(func(_ context.Context, _ string, of remember.Shard) error {
			if of == unreadable {
				return remember.ErrUnreadable
			}
			return nil
		})
		w.change(20)
		w.resharded(20)
		pass(10 * time.Second)
		require.False(t, w.runs("r-1"))
		running := 0
		for _, id := range ids(30) {
			if w.runs(id) {
				running++
			}
		}
		require.Greater(t, running, 20)
		w.nodes[1].must("r-1", "x")
		require.True(t, w.runs("r-1"), "a message has it begin all the same")
		var said []string
		for _, n := range w.nodes {
			x, err := n.system.ExplainShard(t.Context(), "test", 0)
			require.NoError(t, err)
			said = append(said, x.Pending...)
		}
		require.Contains(t, strings.Join(said, "\n"), fmt.Sprintf("shard %d of 12: ", unreadable.Number))
		var refused *sharding.ReshardError
		require.ErrorAs(t, w.nodes[1].system.Reshard(t.Context(), "test", 5), &refused)
		require.Contains(t, refused.Reason, "taken over")
		require.True(t, w.nodes[1].system.Kinds()[0].TakingOver)
		shelf.breaks(nil)
		w.change(5)
		w.resharded(5)
		eventually(t, "nothing is left", func() bool {
			return !w.nodes[0].system.Kinds()[0].TakingOver && !w.nodes[1].system.Kinds()[0].TakingOver
		})
	})
}

// change has the kind get another number of shards, as soon as that may begin.
func (w *world) change(shards int) {
	w.t.Helper()
	eventually(w.t, "the change begins", func() bool {
		err := w.nodes[1].system.Reshard(w.t.Context(), "test", shards)
		if refused := (*sharding.ReshardError)(nil); errors.As(err, &refused) {
			require.Regexp(w.t, "taken over|under way", refused.Reason)
		}
		return err == nil
	})
}
