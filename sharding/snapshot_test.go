// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Entities that take their memory along: what they take in which moves, and what becomes of those
// that cannot.

// rememberer is an actor with a memory: the words of "add", one after the other. How its Snapshot and
// Restore go depends on the beginning of its id.
type rememberer struct {
	actor

	memory string
}

func (r *rememberer) Receive(c *sharding.Context, m text) error {
	if w := words(m); w[0] == "add" {
		r.memory += w[1]
		r.note(c, m.GetValue())
		return c.Reply(say(r.memory))
	}
	return r.actor.Receive(c, m)
}

func (r *rememberer) Snapshot(c *sharding.Context) ([]byte, error) {
	defer r.enter()()
	r.note(c, "snapshot "+c.StopReason().String())
	switch {
	case strings.HasPrefix(c.ID(), "bad-snapshot"):
		return nil, errors.New("no memory")
	case strings.HasPrefix(c.ID(), "panic-snapshot"):
		panic("no memory")
	case strings.HasPrefix(c.ID(), "exit-snapshot"):
		runtime.Goexit()
	case strings.HasPrefix(c.ID(), "slow-snapshot"):
		<-r.n.w.hold
	case strings.HasPrefix(c.ID(), "large-snapshot"):
		return make([]byte, 1001), nil
	case strings.HasPrefix(c.ID(), "no-snapshot"):
		return nil, nil
	}
	return []byte(r.memory), nil
}

func (r *rememberer) Restore(c *sharding.Context, snapshot []byte) error {
	defer r.enter()()
	r.note(c, "restore")
	r.memory = string(snapshot)
	switch {
	case strings.HasPrefix(c.ID(), "bad-restore"):
		return errors.New("unknown version")
	case strings.HasPrefix(c.ID(), "panic-restore"):
		panic("unknown version")
	}
	return nil
}

// remember has the entities of a world take their memory along.
func (w *world) remember() {
	w.kind = func(n *node, k *sharding.Kind[text]) {
		k.New = func(*sharding.Context) sharding.Entity[text] { return &rememberer{actor: actor{n: n}} }
		k.HandoffTimeout = 10 * time.Second
	}
	w.config = func(_ *membership.Config, c *sharding.Config) {
		c.SnapshotBytes, c.SnapshotShardBytes, c.PassivateAfter = 1000, 3000, time.Minute
		c.Allocation.LeastShard.RebalanceAbsoluteLimit = 0 // Shards stay where a test moves them.
	}
}

// named returns an id with a prefix whose shard lives on host.
func (n *node) named(host *node, prefix string) string {
	n.w.t.Helper()
	at := n.on(host)
	for i := 0; ; i++ {
		if id := prefix + strings.Repeat("i", i); shardOf(id) == shardOf(at) {
			return id
		}
	}
}

// moved has the shard of an entity move from one node to another, and waits until it is there.
func (w *world) moved(id string, to *node) {
	w.t.Helper()
	ctx := patience.Context(w.t)
	eventually(w.t, "the shard may move", func() bool {
		return to.system.Move(ctx, "test", int(shardOf(id)), to.Self().String()) == nil
	})
	eventually(w.t, "the shard has moved", func() bool {
		shards, err := to.system.Shards("test")
		require.NoError(w.t, err)
		return shards[shardOf(id)].State == "serving"
	})
}

// The memory goes with the shard: it is asked for after the last message and the stop, and restored
// before the start and the first message.
func TestTheMemoryGoesWithTheShard(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(2)
		a, b := w.nodes[0], w.nodes[1]
		id := a.on(b)
		require.Equal(t, "x", a.must(id, "add x"))
		a.must(id, "add y")
		w.moved(id, a)
		require.Equal(t, "xyz", b.must(id, "add z"))
		require.Equal(t, []string{"start", "add x", "add y", "stop moved", "snapshot none", "restore", "start", "add z"}, w.journal.words(id, ""))

		w.moved(id, b)
		w.moved(id, a) // Nobody has asked for it on the way: it is handed on.
		require.Equal(t, "xyz!", b.must(id, "add !"))
		require.Len(t, w.journal.of(id, "restore"), 2)
	})
}

// A node that is drained, and one that leaves, hand on the memory of all their entities.
func TestNodesThatGoHandOnTheMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(3)
		ids := w.nodes[0].hosted(w.nodes[1], 3)
		for _, id := range ids {
			w.nodes[0].must(id, "add x")
		}
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[1].system.Drain(ctx))
		for _, id := range ids {
			require.Equal(t, "xy", w.nodes[0].must(id, "add y"))
		}
		ids = w.nodes[0].hosted(w.nodes[2], 2)
		for _, id := range ids {
			w.nodes[0].must(id, "add x")
		}
		require.NoError(t, w.nodes[1].system.Undrain(ctx))
		require.NoError(t, w.nodes[2].Leave(ctx))
		for _, id := range ids {
			memory := w.nodes[0].must(id, "add y")
			require.True(t, strings.HasSuffix(memory, "xy"), memory)
		}
	})
}

// Who cannot take its memory along begins without, and the others of its shard do not; Explain says
// why at the new home.
func TestAMemoryThatIsLost(t *testing.T) {
	for prefix, why := range map[string]string{
		"bad-snapshot":   "its Snapshot failed",
		"panic-snapshot": "its Snapshot failed",
		"exit-snapshot":  "its Snapshot failed",
		"slow-snapshot":  "its Snapshot took longer",
		"large-snapshot": "sharding.snapshot-bytes",
		"bad-restore":    "its Restore failed",
		"panic-restore":  "its Restore failed",
		"no-snapshot":    "",
	} {
		t.Run(prefix, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.remember()
				w.start(2)
				a, b := w.nodes[0], w.nodes[1]
				id := a.named(b, prefix)
				neighbour := sibling(id)
				b.must(id, "add x")
				b.must(neighbour, "add x")
				w.moved(id, a)
				require.Equal(t, "y", b.must(id, "add y"))
				require.Equal(t, "xy", b.must(neighbour, "add y"))
				x, err := a.system.Explain(t.Context(), "test", id)
				require.NoError(t, err)
				pending := strings.Join(x.Pending, "\n")
				require.Equal(t, why != "", strings.Contains(pending, "the memory that the entity had"), pending)
				require.Contains(t, pending, why)
				x, err = a.system.Explain(t.Context(), "test", neighbour)
				require.NoError(t, err)
				require.NotContains(t, strings.Join(x.Pending, "\n"), "memory")
			})
		})
	}
}

// What the snapshots of a shard may have together is bounded: some come along, the others begin anew.
func TestAShardWithTooMuchMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(2)
		a, b := w.nodes[0], w.nodes[1]
		first := a.on(b)
		ids := []string{first}
		for i := 0; len(ids) < 6; i++ {
			if id := strings.Repeat("n", i+1); shardOf(id) == shardOf(first) {
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			b.must(id, "add "+strings.Repeat("m", 900))
		}
		w.moved(first, a)
		whole := 0
		for _, id := range ids {
			if len(a.must(id, "add x")) > 1 {
				whole++
			}
		}
		require.Equal(t, 3, whole, "of 900 bytes each three have room in 3000")
	})
}

// More memory than a lane takes at a time waits for its turn, and all of it comes along.
func TestMuchMemoryComesAlong(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		remember := w.config
		w.config = func(m *membership.Config, c *sharding.Config) {
			remember(m, c)
			c.SnapshotBytes, c.SnapshotShardBytes = sharding.Default().SnapshotBytes, sharding.Default().SnapshotShardBytes
		}
		w.start(2)
		a, b := w.nodes[0], w.nodes[1]
		var ids []string
		for _, first := range a.hosted(b, 5) {
			for i := range 4 {
				id := strings.Repeat("n", i) + first
				for shardOf(id) != shardOf(first) {
					id += "n"
				}
				ids = append(ids, id)
			}
		}
		for _, id := range ids {
			b.must(id, "add "+strings.Repeat("m", 64_000))
		}
		ctx := patience.Context(t)
		require.NoError(t, b.system.Drain(ctx))
		for _, id := range ids {
			require.Len(t, a.must(id, "add x"), 64_001, "%s", id)
		}
	})
}

// The memory of an entity to which nobody talks is kept for as long as an idle entity, and no longer.
func TestAMemoryThatNobodyAsksFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(2)
		a, b := w.nodes[0], w.nodes[1]
		id := a.on(b)
		b.must(id, "add x")
		w.moved(id, a)
		pass(2 * time.Minute)
		require.Equal(t, "y", b.must(id, "add y"))
		x, err := a.system.Explain(t.Context(), "test", id)
		require.NoError(t, err)
		require.Contains(t, strings.Join(x.Pending, "\n"), "no message came for sharding.passivate-after")
	})
}

// No memory is asked for when an entity stops for another reason, and none comes back after a crash.
func TestOnlyPlannedMovesTakeTheMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(3)
		a, b := w.nodes[0], w.nodes[1]
		id := a.on(b)
		b.must(id, "add x")
		b.must(id, "passivate")
		require.Equal(t, "y", a.must(id, "add y"))
		w.crash(b)
		require.Equal(t, "z", a.insist(id, "add z"))
		require.Empty(t, w.journal.of(id, "snapshot"))
	})
}

// A move that is called off leaves every entity with its memory.
func TestAMoveThatIsCalledOffKeepsTheMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.remember()
		w.start(2)
		a, b := w.nodes[0], w.nodes[1]
		stuck := a.named(b, "slow-stop")
		id := sibling(stuck)
		b.must(id, "add x")
		b.must(stuck, "add x")
		require.NoError(t, a.system.Move(t.Context(), "test", int(shardOf(id)), a.Self().String()))
		pass(15 * time.Second)
		require.Equal(t, "xy", b.must(id, "add y"))
		require.Equal(t, b.Self().String(), a.must(id, "where"))
	})
}

var _ sharding.Snapshotter = (*rememberer)(nil)
