// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// What the nodes of a cluster say about where entities live: first in good health, then
// with something pending, without a coordinator, for questions that have no answer, and
// during a move that is held up; last the text and the JSON of an explanation.

// Every node explains where an entity lives and by which decision, as the coordinator knows
// it.
func TestEveryNodeExplains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		ids := []string{w.nodes[0].on(w.nodes[1]), "nobody has asked me"}
		w.nodes[0].must(ids[0], "x")
		for _, id := range ids {
			home := w.nodes[0].must(id, "where")
			for _, n := range w.nodes {
				var x sharding.Explanation
				eventually(t, "the home has answered the coordinator", func() (serving bool) {
					var err error
					x, err = n.region.Explain(t.Context(), id)
					require.NoError(t, err)
					return x.State == "serving"
				})
				require.True(t, x.Complete)
				require.False(t, x.Since.IsZero())
				require.NotEmpty(t, x.Decision)
				require.Equal(t, home, x.Home)
				require.Equal(t, w.nodes[0].Self().String(), x.Coordinator)
				require.Equal(t, n.Self().String(), x.Self)
				require.Equal(t, w.journal.of(id, "start")[0].epoch.String(), x.Epoch)
				require.Equal(t, int(shardOf(id)), x.Shard)
				other, err := n.system.Explain(t.Context(), "test", id)
				require.NoError(t, err)
				atHome := slices.ContainsFunc(x.Pending, func(p string) bool { return strings.HasPrefix(p, "the entity is idle since ") })
				require.True(t, atHome, "any node tells what its home knows: %v", x.Pending)
				x.Pending, other.Pending = nil, nil // An acknowledgement may have come between the two explanations.
				require.Equal(t, x, other)
				shard, err := n.system.ExplainShard(t.Context(), "test", x.Shard)
				require.NoError(t, err)
				require.Empty(t, shard.Entity)
				require.Equal(t, x.Home, shard.Home)
			}
		}
	})
}

// Every node knows which node coordinates a kind, and under which term, without asking
// another node.
func TestEveryNodeKnowsTheCoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		terms := map[string]bool{}
		for _, n := range w.nodes {
			n.must("a", "x")
			known := n.system.Coordinators()
			require.Len(t, known, 1)
			require.Equal(t, w.nodes[0].Self().String(), known["test"].Node)
			require.NotEmpty(t, known["test"].Term)
			terms[known["test"].Term] = true
		}
		require.Len(t, terms, 1)
	})
}

// Who coordinates is known on a node whose machines stand still, also to the coordinator itself.
func TestABusyNodeKnowsTheCoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		n := w.nodes[0]
		want := n.system.Coordinators()
		require.Equal(t, n.Self().String(), want["test"].Node)
		thaw := n.freeze()
		pass(time.Second)
		require.Equal(t, want, n.system.Coordinators())
		thaw()
	})
}

// When all nodes with the role of a kind have left, an ask waits for one that comes, and its error says that no node
// has the role; so do explanations, and the coordinators of the kinds. A node that comes takes what waits.
func TestNoNodeHasTheRoleOfTheKind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			if len(w.nodes) > 0 {
				m.Node.Roles = []string{"worker"}
			}
		}
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Role = "worker" }
		w.start(3)
		n := w.nodes[0]
		n.must("a", "x")
		for _, worker := range w.nodes[1:] {
			require.NoError(t, worker.Leave(t.Context()))
			require.NoError(t, worker.awaitEnd(limit))
		}
		pass(5 * time.Second)
		for _, id := range []string{"a", "other"} {
			_, err := n.ask(id, "x", 2*time.Second)
			var none *sharding.NoHostError
			require.ErrorAs(t, err, &none)
			require.Equal(t, sharding.NoHostError{Kind: "test", Role: "worker"}, *none)
			require.ErrorContains(t, err, `no node has the role "worker"`)
			require.ErrorIs(t, err, sharding.ErrNotDelivered)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, sharding.CoordinatorInfo{Missing: `no node has the role "worker"`}, n.system.Coordinators()["test"])
		x, err := n.system.Explain(t.Context(), "test", "a")
		require.NoError(t, err)
		require.Contains(t, strings.Join(x.Pending, "\n"), `no node has the role "worker"`)

		answer := n.asked("a", "x")
		fresh := w.build()
		require.NoError(t, fresh.Join(t.Context(), n.Self().Address.String()))
		fresh.startKind()
		require.NoError(t, within(t, answer))
	})
}

// The home of an entity explains what the entity is doing; every node explains which
// messages of its own wait.
func TestWhatIsPendingIsExplained(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		n, far := w.nodes[0], w.nodes[1]
		id := n.on(far)
		waiting := []<-chan error{n.asked(id, "wait"), n.asked(id, "x"), n.asked(id, "y")}
		x, err := far.region.Explain(t.Context(), id)
		require.NoError(t, err)
		require.Contains(t, x.Pending[0], "the entity is busy since ")
		require.Contains(t, x.Pending[0], "; 2 messages wait for it")
		_, err = n.ask("bad-start", "x", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		x, err = w.nodes[w.journal.of("bad-start", "start")[0].node].region.Explain(t.Context(), "bad-start")
		require.NoError(t, err)
		require.Equal(t, "the entity is failed (1 in a row): no storage", x.Pending[0])
		<-time.After(10 * time.Millisecond) // The messages above are acknowledged by then.
		w.cut(far)
		n.tell(id, "z")
		x, err = n.region.Explain(t.Context(), id)
		require.NoError(t, err)
		require.Contains(t, x.String(), "1 messages of this node wait for the home to take them")
		w.network.HealAll()
		w.release()
		for _, r := range waiting {
			require.NoError(t, within(t, r))
		}
	})
}

// When the coordinator does not answer, a node soon explains what it knows itself, and why
// that is not everything.
func TestExplanationsWithoutACoordinator(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		there, here := w.nodes[2].on(w.nodes[1]), w.nodes[2].on(w.nodes[2])
		w.nodes[2].must(there, "x")
		w.network.Cut(w.nodes[0].Self().Address, w.nodes[2].Self().Address)
		before := time.Now()
		x, err := w.nodes[2].region.Explain(t.Context(), there)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(before), 3*time.Second)
		require.False(t, x.Complete)
		require.Empty(t, x.Coordinator)
		require.Equal(t, "hosted elsewhere", x.State)
		require.Equal(t, w.nodes[1].Self().String(), x.Home)
		require.Contains(t, strings.Join(x.Pending, "\n"), w.nodes[0].Self().String())
		x, err = w.nodes[2].region.Explain(t.Context(), here)
		require.NoError(t, err)
		require.Equal(t, "serving", x.State)
		require.Contains(t, x.String(), "this node")
		require.Contains(t, x.String(), "which is not the coordinator")
	})
}

// An explanation says so when no node can coordinate the kind.
func TestExplanationsOfAKindThatNobodyHosts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Role = "host" }
		w.form(2)
		w.nodes[1].startKind()
		x, err := w.nodes[1].region.Explain(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "unknown", x.State)
		require.Empty(t, x.Home)
		require.Contains(t, x.String(), "no coordinator is known")
	})
}

// A question about an id, a kind or a shard that cannot be is refused with the reason. The
// wait for an answer ends with the context of the caller, and with the node.
func TestQuestionsThatHaveNoAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		s := w.nodes[1].system
		for _, id := range []string{"", "\xff", strings.Repeat("x", 1<<20)} {
			_, err := s.Explain(t.Context(), "test", id)
			require.ErrorIs(t, err, sharding.ErrInvalid)
			require.Less(t, len(err.Error()), 300)
		}
		_, err := s.Explain(t.Context(), strings.Repeat("k", 1000), "a")
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "does not run on this node")
		_, err = s.ExplainShard(t.Context(), "none", 0)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		for _, shard := range []int{-1, 12} {
			_, err = s.ExplainShard(t.Context(), "test", shard)
			require.ErrorIs(t, err, sharding.ErrInvalid)
			require.ErrorContains(t, err, "the shards 0 to 11")
		}
		w.cut(w.nodes[0])
		ctx := patience.Expiring(t, 100*time.Millisecond)
		_, err = s.Explain(ctx, "test", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.Explain(ctx, "test", "a")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		result := make(chan error, 1)
		go func() {
			_, err := s.Explain(t.Context(), "test", "a")
			result <- err
		}()
		pass(time.Millisecond)
		require.NoError(t, w.nodes[1].Close())
		require.ErrorIs(t, within(t, result), sharding.ErrClosed)
		_, err = s.Explain(t.Context(), "test", "a")
		require.ErrorIs(t, err, sharding.ErrClosed)
	})
}

// While an entity holds up a leave, an explanation says so; afterwards it tells of the move.
func TestAMoveThatIsHeldUpIsExplained(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.StuckAfter = 4 * time.Second }
		w.start(3)
		leaver := w.nodes[2]
		id := w.nodes[0].on(leaver)
		w.nodes[0].must(id, "x")
		stuck := w.nodes[0].asked(id, "wait")
		left := make(chan error, 1)
		go func() {
			ctx := patience.Context(t)
			left <- leaver.Leave(ctx)
		}()
		pass(6 * time.Second)
		x, err := leaver.region.Explain(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "stopping", x.State)
		require.Contains(t, x.String(), "does not return")
		require.Equal(t, 1, strings.Count(x.String(), "does not return"))
		require.Contains(t, strings.Join(x.Pending, "\n"), ", called off at 2000-01-01T00:01:")
		w.release()
		require.NoError(t, within(t, stuck))
		require.NoError(t, within(t, left))
		eventually(t, "it has moved", func() bool { return w.nodes[0].must(id, "where") != leaver.Self().String() })
		x, err = w.nodes[1].region.Explain(t.Context(), id)
		require.NoError(t, err)
		require.Len(t, x.Moves, 1)
		require.Equal(t, leaver.Self().String(), x.Moves[0].From)
		require.Equal(t, x.Home, x.Moves[0].To)
		require.Equal(t, "moved", x.Moves[0].Outcome)
	})
}

// An explanation can be read as text of at most 80 columns, and as JSON.
func TestExplanationsCanBeRead(t *testing.T) {
	at := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	x := sharding.Explanation{
		Kind: "account", Entity: "a-1", Shard: 17, Self: "10.0.0.1:7946#1", Complete: true, Coordinator: "10.0.0.2:7946#2",
		Home: "10.0.0.1:7946#1", Epoch: "1.2.3", State: "stopping", Since: at,
		Decision: "least-shard: the region has the fewest shards of all five, and none of them is on its way to or from anywhere",
		Pending:  []string{"moves to 10.0.0.3:7946#3", "a " + strings.Repeat("word ", 40)},
		Moves: []sharding.Move{
			{From: "10.0.0.4:7946#4", To: "10.0.0.1:7946#1", Started: at, Ended: at.Add(time.Second), Outcome: "moved", Reason: "it left"},
			{From: "10.0.0.1:7946#1", Started: at, Ended: at.Add(time.Minute), Outcome: "called off"},
		},
	}
	text := x.String()
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80)
	}
	require.Equal(t, `"a-1": shard 17 of account
  home     10.0.0.1:7946#1, this node
  state    stopping since 2026-11-21T16:00:00Z
  epoch    1.2.3
  decision least-shard: the region has the fewest shards of all five, and none
           of them is on its way to or from anywhere
  told by  10.0.0.2:7946#2, the coordinator
  pending  moves to 10.0.0.3:7946#3
  pending  a word word word word word word word word word word word word word
           word word word word word word word word word word word word word word
           word word word word word word word word word word word word word
  move     2026-11-21T16:00:01Z from 10.0.0.4:7946#4 to 10.0.0.1:7946#1: moved;
           it left
  move     2026-11-21T16:01:00Z from 10.0.0.1:7946#1 to nobody yet: called off
`, text)
	require.Equal(t, "shard 3 of k\n  home     none\n  state    unknown\n  told by  n, which is not the coordinator\n",
		sharding.Explanation{Kind: "k", Shard: 3, Self: "n", State: "unknown"}.String())
	b, err := json.Marshal(sharding.Explanation{Kind: "k", State: "unknown", Self: "n"})
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"k","shard":0,"self":"n","complete":false,"state":"unknown"}`, string(b))
}
