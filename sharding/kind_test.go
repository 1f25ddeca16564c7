// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The kinds of a node: first settings that differ between nodes, kinds that only send, and
// what Start refuses; then several kinds and roles side by side; last what a kind brings
// along: a codec that fails, and an allocation strategy of the program.

// A node whose settings differ is refused. Its senders, those that wait and those that come
// later, are told the setting that differs and both values. The other node goes on.
// covers F47.
func TestDifferentSettingsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 4 << 10 }
		w.kind = func(n *node, k *sharding.Kind[text]) { k.Shards = 12 + n.i }
		w.start(1)
		other := w.build()
		other.startKind()
		var waiting []<-chan error
		for range 6 { // Some asks wait for a reply, the others for room in the window.
			waiting = append(waiting, other.asked("a", strings.Repeat("x", 1000)))
		}
		tell := other.region.Tell(t.Context(), "a", say(strings.Repeat("x", 1000)))
		_, later := other.ask("a", "x", limit)
		errs := []error{tell, later, other.region.Tell(t.Context(), "a", say("x"))}
		for _, r := range waiting {
			errs = append(errs, within(t, r))
		}
		for _, err := range errs {
			var refused *sharding.SettingsError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "number-of-shards", refused.Setting)
			require.ErrorContains(t, err, `kind "test": number-of-shards is "13" here, but "12" at the coordinator`)
		}
		w.nodes[0].must("a", "x")
	})
}

// A node that was refused is accepted when a coordinator with its settings takes over: its
// messages failed in between, and are handled from then on.
func TestARefusalEndsWithTheCoordinatorThatMadeIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) { k.Shards = 12 + min(n.i, 1) }
		w.start(1)
		for range 2 {
			w.build().startKind()
		}
		for _, n := range w.nodes[1:] {
			var refused *sharding.SettingsError
			_, err := n.ask("a", "x", limit)
			require.ErrorAs(t, err, &refused)
			require.ErrorAs(t, n.region.Tell(t.Context(), "a", say("x")), &refused)
		}
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[0].Leave(ctx))
		for _, n := range w.nodes[1:] {
			eventually(t, "it is accepted", func() bool {
				_, err := n.ask("a", "x", limit)
				return err == nil
			})
			require.NoError(t, n.region.Tell(ctx, "a", say("x")))
		}
	})
}

// A node that only sends needs no entities of its own, and hosts none.
func TestAProxySendsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) {
			if n.i != 1 {
				k.New, k.ProxyOnly = nil, true
			}
		}
		w.start(3)
		for i := range 20 {
			for _, n := range w.nodes {
				require.Equal(t, w.nodes[1].Self().String(), n.must(fmt.Sprint(i), "where"))
			}
		}
		for _, n := range w.nodes {
			hosted := 0
			if n.i == 1 {
				hosted = 12
			}
			require.Equal(t, []sharding.KindInfo{{Name: "test", Shards: 12, Hosted: hosted, Proxy: n.i != 1}}, n.system.Kinds())
		}
	})
}

// The other settings of a kind are compared too: they must be the same on all nodes.
func TestEverySettingIsCompared(t *testing.T) {
	tests := map[string]func(k *sharding.Kind[text]){
		"codec":           func(k *sharding.Kind[text]) { k.Codec = moody{} },
		"role":            func(k *sharding.Kind[text]) { k.Role = "other" },
		"hosting":         func(k *sharding.Kind[text]) { k.OnOldest = true },
		"on-stuck":        func(k *sharding.Kind[text]) { k.OnStuck = sharding.OnStuckAbandon },
		"handoff-timeout": func(k *sharding.Kind[text]) { k.HandoffTimeout, k.ProxyOnly = 3*time.Second, true }, // Its node may coordinate.
	}
	for setting, change := range tests {
		t.Run(setting, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.start(1)
				w.kind = func(_ *node, k *sharding.Kind[text]) { change(k) }
				other := w.build()
				other.startKind()
				_, err := other.ask("a", "x", limit)
				var refused *sharding.SettingsError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, setting, refused.Setting)
			})
		})
	}
}

// Nodes that host a kind host it by one rule: one without leases would host what another one has a lease for. A node
// that only sends goes with any, also as the coordinator.
func TestNodesHostByOneRule(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(n *node, k *sharding.Kind[text]) {
			switch n.i {
			case 0:
				k.ProxyOnly = true
			case 2:
				k.InUse = 3
			default:
			}
		}
		w.form(3)
		for _, n := range w.nodes[:2] {
			n.startKind()
		}
		w.nodes[0].must("a", "x")
		w.nodes[2].startKind()
		_, err := w.nodes[2].ask("a", "x", limit)
		require.ErrorContains(t, err, `hosting is "a part of the shards in use" here, but "any node, all shards" at the coordinator`)
		w.nodes[0].must("a", "x")
	})
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		w.leased()
		other := w.build()
		other.startKind()
		_, err := other.ask("a", "x", limit)
		require.ErrorContains(t, err, `hosting is "a lease for each shard" here, but "any node, all shards" at the coordinator`)
	})
}

// Start refuses a kind with every fault in one error.
func TestStartRefusesWhatCannotBe(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		s := w.nodes[0].system
		create := func(*sharding.Context) sharding.Entity[text] { return nil }
		start := func(k sharding.Kind[text]) error {
			_, err := sharding.Start(s, k)
			return err
		}
		require.ErrorContains(t, start(sharding.Kind[text]{Name: "test", New: create}), `"test" runs on this node already`)
		err := start(sharding.Kind[text]{Name: "", Shards: 65537})
		for _, part := range []string{"the name must have 1 to 128 bytes", "number of shards 65537", "New must be set"} {
			require.ErrorContains(t, err, part)
		}
		require.Error(t, start(sharding.Kind[text]{Name: strings.Repeat("n", 129), New: create}))
		for _, shards := range []int{-1, math.MinInt, protocol.MaxShards + 1, 10_000_000, math.MaxInt} {
			require.EqualError(t, start(sharding.Kind[text]{Name: "a", New: create, Shards: shards}),
				fmt.Sprintf(`sharding: kind "a": number of shards %d, want 1 to %d`, shards, protocol.MaxShards))
		}
		_, err = sharding.Start(s, sharding.Kind[string]{Name: "s", New: func(*sharding.Context) sharding.Entity[string] { return nil }})
		require.ErrorContains(t, err, "messages must be pointers, not string")
		_, err = sharding.Start(s, sharding.Kind[*int]{Name: "i", New: func(*sharding.Context) sharding.Entity[*int] { return nil }})
		require.ErrorContains(t, err, "*int is not a generated protocol buffer message")
		_, err = sharding.New(w.nodes[0].Node, sharding.Default())
		require.ErrorContains(t, err, "sharding: ", "a node has one sharding")
		_, err = sharding.New(w.nodes[0].Node, sharding.Config{})
		require.ErrorContains(t, err, "mailbox-size")
		require.ErrorContains(t, start(sharding.Kind[text]{Name: "a", New: create, OnFailure: 7}), "OnFailure is 7")
		require.NoError(t, start(sharding.Kind[text]{Name: "proxy", ProxyOnly: true}))
		require.NoError(t, w.nodes[0].Close())
		require.ErrorIs(t, start(sharding.Kind[text]{Name: "b", New: create}), sharding.ErrClosed)
	})
}

// Several kinds run side by side; the same id names another entity in each.
func TestKindsAreApart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		var sums []*sharding.Region[*wrapperspb.Int64Value]
		for _, n := range w.nodes {
			r, err := sharding.Start(n.system, sharding.Kind[*wrapperspb.Int64Value]{
				Name: "counter", Shards: 5, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
			})
			require.NoError(t, err)
			sums = append(sums, r)
		}
		w.nodes[0].must("a", "x")
		for i := range 6 {
			sum, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), sums[i%2], "a", wrapperspb.Int64(1))
			require.NoError(t, err)
			require.EqualValues(t, i+1, sum.GetValue())
		}
		require.Len(t, w.journal.of("a", "x"), 1)
	})
}

// counter is an entity that adds its messages up.
type counter struct{ sum int64 }

func (c *counter) Receive(ctx *sharding.Context, add *wrapperspb.Int64Value) error {
	c.sum += add.GetValue()
	return ctx.Reply(wrapperspb.Int64(c.sum))
}

// A node without the role of the kind sends, and hosts nothing.
func TestANodeWithoutTheRoleSendsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) {
			if m.Node.Address != address(0) {
				m.Node.Roles = []string{"host"}
			}
		}
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Role = "host" }
		w.start(3)
		homes := map[string]bool{}
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			homes[w.nodes[0].must(id, "where")] = true
		}
		require.NotContains(t, homes, w.nodes[0].Self().String())
		require.Len(t, homes, 2)
	})
}

// Permanent entities start without a message, stay for longer than the others, and start again when
// their node has gone.
func TestPermanentEntities(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ids := []string{"a", "b", "c", "d", "e", "f"}
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Permanent, k.PassivateAfter = ids, time.Minute }
		w.start(3)
		pass(10 * time.Second)
		for _, id := range ids {
			require.Len(t, w.journal.of(id, "start"), 1, id)
		}
		pass(10 * time.Minute)
		require.Len(t, w.journal.of("first", "stop"), 1)
		for _, id := range ids {
			require.Empty(t, w.journal.of(id, "stop"), id)
		}
		w.crash(w.nodes[2])
		pass(30 * time.Second)
		again := 0
		for _, id := range ids {
			if starts := w.journal.of(id, "start"); starts[0].node == 2 {
				require.Len(t, starts, 2, id)
				again++
			}
		}
		require.NotZero(t, again)
	})
}

func TestPermanentEntitiesThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.build()
		for want, k := range map[string]sharding.Kind[text]{
			`Permanent[1]: the id is empty`:           {Permanent: []string{"a", ""}},
			`Permanent[1]: "a" is listed twice`:       {Permanent: []string{"a", "a"}},
			`HandoffTimeout -1s is negative`:          {HandoffTimeout: -time.Second},
			`OnStuck: "kill" is neither`:              {OnStuck: "kill"},
			`Permanent[0]: the id is not valid UTF-8`: {Permanent: []string{"\xff"}},
		} {
			k.Name, k.ProxyOnly = "test", true
			_, err := sharding.Start(n.system, k)
			require.ErrorContains(t, err, want)
		}
	})
}

// moody is a codec that fails at the messages whose text tells it to.
type moody struct{ sharding.Protobuf }

func (moody) Name() string { return "moody" }

func (c moody) Append(dst []byte, m any) ([]byte, error) {
	switch t, _ := m.(text); t.GetValue() {
	case "unencodable":
		return nil, errors.New("no")
	case "grows":
		return make([]byte, 2<<20), nil
	case "empty":
		return nil, nil
	}
	return c.Protobuf.Append(dst, m)
}

func (c moody) Decode(b []byte, m any) error {
	if strings.Contains(string(b), "undecodable") {
		return errors.New("no")
	}
	if strings.Contains(string(b), "poison") {
		panic("poison")
	}
	return c.Protobuf.Decode(b, m)
}

// A codec that fails makes the message fail. The entity is not stopped for it.
func TestACodecThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Codec = moody{} }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		for command, detail := range map[string]string{"unencodable": "cannot be encoded", "grows": "max-message-bytes"} {
			_, err := w.nodes[0].ask(id, command, limit)
			require.ErrorIs(t, err, sharding.ErrInvalid)
			require.ErrorContains(t, err, detail)
		}
		for _, command := range []string{"undecodable", "poison"} {
			_, err := w.nodes[0].ask(id, command, limit)
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
			require.ErrorContains(t, err, "cannot be decoded")
		}
		require.Equal(t, "heard ", w.nodes[0].must(id, "empty"))
		require.Len(t, w.journal.of(id, "start"), 1, "the entity stays")
	})
}

// poisoned is a codec that fails once poison is set.
type poisoned struct {
	sharding.Protobuf

	poison *bool
}

func (c poisoned) Append(dst []byte, message any) ([]byte, error) {
	if *c.poison {
		return dst, errors.New("poisoned")
	}
	return c.Protobuf.Append(dst, message)
}

func (c poisoned) Decode(b []byte, message any) error {
	if *c.poison {
		return errors.New("poisoned")
	}
	return c.Protobuf.Decode(b, message)
}

// A message to an entity of the same node is given away as it is: neither it nor its reply is encoded, for a new
// entity, for one that lives, and for one whose mailbox is full, once its shard has a home.
func TestMessagesWithinANodeAreNotEncoded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize, s.MaxMessageBytes = 2, 100 }
		poison := false
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Codec = poisoned{poison: &poison} }
		w.start(1)
		n := w.nodes[0]
		_ = n.hosted(n, 12) // All shards.
		poison = true
		require.Equal(t, "heard a", n.must("new", "a"))
		require.Equal(t, "heard b", n.must("new", "b"))
		long := strings.Repeat("x", 200)
		require.Equal(t, "heard "+long, n.must("new", long), "what bounds encoded messages does not bound it")
		for i := range 10 {
			n.tell("full", fmt.Sprintf("n %d", i+1))
		}
		n.must("full", "x")
		w.inOrder("full", "n", 10)
	})
}

// strategy is an allocation strategy whose answers come from the test, and that moves
// nothing.
type strategy struct {
	allocate func(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error)
}

func (s strategy) Allocate(ctx context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return s.allocate(ctx, r)
}

func (strategy) Rebalance(context.Context, allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	return allocation.RebalanceResult{}, nil
}

// toLast gives every shard to the last region.
func toLast(_ context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
	var res allocation.AllocateResult
	for _, p := range r.Shards {
		res.Placements = append(res.Placements, allocation.Placement{
			Shard: p.Shard, Region: r.Regions[len(r.Regions)-1].ID, Reason: "it is the last",
		})
	}
	return res, nil
}

// A strategy of the program decides where shards live. Least-shard decides in its place when
// the strategy fails, breaks the contract, or does not return.
func TestAStrategyOfTheProgramDecides(t *testing.T) {
	tests := map[string]struct {
		allocate func(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error)
		homes    int
	}{
		"decides": {toLast, 1},
		"fails": {func(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
			return allocation.AllocateResult{}, errors.New("no idea")
		}, 3},
		"nonsense": {func(_ context.Context, r allocation.AllocateRequest) (allocation.AllocateResult, error) {
			return allocation.AllocateResult{Placements: []allocation.Placement{{Shard: r.Shards[0].Shard, Region: "nowhere", Reason: "why not"}}}, nil
		}, 3},
		"blocks": {func(ctx context.Context, _ allocation.AllocateRequest) (allocation.AllocateResult, error) {
			<-ctx.Done()
			return allocation.AllocateResult{}, ctx.Err()
		}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				w.options = []sharding.Option{sharding.WithAllocation(strategy{test.allocate})}
				before := time.Now()
				w.start(3)
				require.Less(t, time.Since(before), 30*time.Second)
				homes := map[string]bool{}
				for i := range 12 {
					homes[w.nodes[0].must(sibling(strings.Repeat("s", i+1)), "where")] = true
				}
				require.Len(t, homes, test.homes)
				synctest.Wait()
			})
		})
	}
}

// A strategy that is built in is chosen by its name, and says why an entity lives where it does.
func TestABuiltInStrategyIsChosenByItsName(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, c *sharding.Config) {
			c.Allocation.Strategy = allocation.ConsistentHashingName
		}
		w.start(2)
		w.nodes[0].must("a", "where")
		ctx := patience.Expiring(t, 5*time.Second)
		x, err := w.nodes[0].region.Explain(ctx, "a")
		require.NoError(t, err)
		require.Contains(t, x.String(), "consistent-hashing: it has the highest lot of ")
		synctest.Wait()
	})
}

// A name that nobody knows is refused, and not replaced in silence.
func TestAnUnknownStrategyIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		cfg := sharding.Default()
		cfg.Allocation.Strategy = "alphabetical"
		for _, opts := range [][]sharding.Option{nil, {sharding.WithAllocation(nil)}} {
			_, err := sharding.New(w.nodes[0].Node, cfg, opts...)
			require.ErrorIs(t, err, allocation.ErrUnknownStrategy)
			require.ErrorContains(t, err, `sharding.allocation.strategy: "alphabetical" is neither built in (consistent-hashing, least-shard, least-shard-threshold, load-aware)`)
		}
		synctest.Wait()
	})
}

// Each id is alone in the shard of its number, and begins with the number. They are those of all nodes, and of all
// releases: they must not change.
func TestOnePerShard(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 100, 1000} {
		all := sharding.OnePerShard(n)
		require.Len(t, all, n)
		for i, id := range all {
			require.EqualValues(t, i, protocol.ShardOf(id, uint32(n)))
			number, _, _ := strings.Cut(id, "/")
			require.Equal(t, strconv.Itoa(i), number)
		}
	}
	require.Equal(t, []string{"0", "1/1", "2/2", "3/9"}, sharding.OnePerShard(4))
}
