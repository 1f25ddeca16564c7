// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// alone is a cluster of one node.
func alone(t *testing.T, f func(t *testing.T, w *world, n *node, ctx context.Context)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) {
		if w.config == nil {
			w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.MaxValueBytes, c.MaxBytes = 4096, 1<<20 }
		}
		w.start(1)
		ctx := patience.Context(t)
		f(t, w, w.nodes[0], ctx)
	})
}

var errNo = errors.New("no")

// An update function that fails changes nothing, however it fails.
func TestAnUpdateFunctionThatFails(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		require.NoError(t, n.add("visits", 3, ddata.Majority()))
		for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority()} {
			var failed *ddata.FunctionError
			_, err := ddata.Update(ctx, n, counter("visits"), level, func(_ crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v, errNo })
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, errNo)
			_, err = ddata.Update(ctx, n, counter("visits"), level, func(crdt.Origin, crdt.GCounter) (crdt.GCounter, error) { panic("on purpose") })
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, "on purpose")
		}
		got, err := n.read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 3, got)
	})
}

// An update that makes nothing of a key that is not there is done at once, at any level, and there is still no key.
func TestAnUpdateThatMakesNothingOfNothing(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		key := ddata.NewKey[crdt.ORSet[string]]("set")
		for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority(), ddata.All()} {
			began := time.Now()
			_, err := ddata.Update(ctx, n, key, level, func(_ crdt.Origin, v crdt.ORSet[string]) (crdt.ORSet[string], error) { return v.Remove("x"), nil })
			require.NoError(t, err)
			require.Less(t, time.Since(began), time.Second)
			_, err = ddata.Get(ctx, n, key, level)
			require.ErrorIs(t, err, ddata.ErrNotFound)
		}
	})
}

// A key belongs to the type that was there first.
// covers B31.
func TestAnotherTypeUnderAKnownKey(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		require.NoError(t, n.add("visits", 1, ddata.Majority()))
		flag := ddata.NewKey[crdt.Flag]("visits")
		for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority()} {
			var clash *ddata.TypeError
			_, err := ddata.Get(ctx, n, flag, level)
			require.ErrorAs(t, err, &clash)
			require.Equal(t, &ddata.TypeError{Key: "visits", Have: "gcounter", Want: "flag"}, clash)
			_, err = ddata.Update(ctx, n, flag, level, func(_ crdt.Origin, v crdt.Flag) (crdt.Flag, error) { return v, nil })
			require.ErrorAs(t, err, &clash)
		}
		_, err := ddata.Subscribe(n, flag).Next(ctx)
		var clash *ddata.TypeError
		require.ErrorAs(t, err, &clash)
	})
}

// A value over the maximum, and data over the memory, are refused before anything is stored.
func TestWhatIsTooLargeIsNotStored(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		add := func(key, text string) error {
			_, err := ddata.Update(ctx, n, ddata.NewKey[crdt.GSet[string]](key), ddata.Majority(),
				func(_ crdt.Origin, v crdt.GSet[string]) (crdt.GSet[string], error) { return v.Add(text), nil })
			return err
		}
		var not *ddata.NotStoredError
		err := add("large", strings.Repeat("x", 5000))
		require.ErrorIs(t, err, ddata.ErrTooLarge)
		require.ErrorAs(t, err, &not)
		_, err = ddata.Get(ctx, n, ddata.NewKey[crdt.GSet[string]]("large"), ddata.Local())
		require.ErrorIs(t, err, ddata.ErrNotFound)
		i := 0
		for err = nil; err == nil && i < 1000; i++ {
			err = add(strings.Repeat("k", i+1), strings.Repeat("x", 2000))
		}
		require.ErrorIs(t, err, ddata.ErrFull)
		require.Greater(t, i, 100)
		require.Less(t, n.Data().Stats().Bytes, int64(1<<20)+1)
	})
}

// tally is a type of the program, which the replicator was not told of.
type tally struct{ crdt.GCounter }

func (tally) TypeName() string          { return "tally" }
func (v tally) Merge(other tally) tally { return tally{v.GCounter.Merge(other.GCounter)} }

// What can never be meant is refused at once.
// covers B37.
func TestCallsThatMeanNothing(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		_, err := ddata.Get(ctx, n, ddata.Key[crdt.GCounter]{}, ddata.Local())
		require.ErrorIs(t, err, ddata.ErrKey)
		for _, name := range []string{"", strings.Repeat("x", 1025), "\xff", "a\nb", "\u202e"} {
			require.ErrorIs(t, n.add(name, 1, ddata.Local()), ddata.ErrKey, "%q", name)
			require.ErrorIs(t, ddata.Delete(ctx, n, counter(name), ddata.Local()), ddata.ErrKey, "%q", name)
		}
		for _, level := range []ddata.Consistency{
			ddata.From(0), ddata.To(-1), ddata.Majority(ddata.Plus(0)), ddata.Majority(ddata.MinCap(-3)),
			ddata.Majority(ddata.MinCap(0), ddata.Plus(2)),
		} {
			require.ErrorIs(t, n.add("visits", 1, level), ddata.ErrConsistency, "%s", level)
		}
		err = n.add("visits", 1, ddata.Majority(ddata.Plus(2), ddata.MinCap(-3)))
		require.ErrorContains(t, err, "a majority with MinCap(-3), the number is at least 1")
		own := ddata.NewKey[tally]("visits")
		_, err = ddata.Get(ctx, n, own, ddata.Local())
		require.ErrorIs(t, err, ddata.ErrUnknownType)
		require.ErrorIs(t, ddata.Delete(ctx, n, own, ddata.Local()), ddata.ErrUnknownType)
		_, err = ddata.Subscribe(n, own).Next(ctx)
		require.ErrorIs(t, err, ddata.ErrUnknownType)
		_, err = ddata.SubscribePrefix[tally](n, "").Next(ctx)
		require.ErrorIs(t, err, ddata.ErrUnknownType)
	})
}

// A type of the program works once the replicator was told of it.
func TestTypesOfTheProgram(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.options = func(int) []ddata.Option { return []ddata.Option{ddata.WithTypes(crdt.TypeOf[tally]())} }
		w.start(2)
		ctx := patience.Context(t)
		key := ddata.NewKey[tally]("votes")
		_, err := ddata.Update(ctx, w.nodes[0], key, ddata.All(), func(at crdt.Origin, v tally) (tally, error) { return tally{v.Add(at, 4)}, nil })
		require.NoError(t, err)
		got, err := ddata.Get(ctx, w.nodes[1], key, ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 4, got.Value())
	})
}

// moody is a content that cannot be encoded if it is below zero, and not decoded above 100;
// -2 and 102 panic.
type moody int

func (m moody) MarshalBinary() ([]byte, error) {
	switch m {
	case -1:
		return nil, errNo
	case -2:
		panic("no encoding")
	default:
		return []byte{byte(m)}, nil
	}
}

func (m *moody) UnmarshalBinary(b []byte) error {
	switch *m = moody(b[0]); *m {
	case 101:
		return errNo
	case 102:
		panic("no decoding")
	default:
		return nil
	}
}

// moodOf is a key with such a content, and setMood writes one.
func moodOf(name string) ddata.Key[crdt.LWWRegister[moody]] {
	return ddata.NewKey[crdt.LWWRegister[moody]](name)
}

func setMood(m moody) func(crdt.Origin, crdt.LWWRegister[moody]) (crdt.LWWRegister[moody], error) {
	return func(at crdt.Origin, v crdt.LWWRegister[moody]) (crdt.LWWRegister[moody], error) {
		return v.Set(at, 1, m), nil
	}
}

// A value that its codec cannot encode is refused before it is stored, on a node that holds
// the key and on one that does not. What is changed beside it reaches the others, and so does
// a value of the same key that can be encoded.
func TestAValueThatCannotBeEncoded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role, c.GossipInterval = "data", time.Hour
			if i < 2 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.options = func(int) []ddata.Option {
			return []ddata.Option{ddata.WithTypes(crdt.TypeOf[crdt.LWWRegister[moody]]())}
		}
		w.start(3)
		for i, n := range []*node{w.nodes[0], w.nodes[2]} {
			set := func(m moody, level ddata.Consistency) error {
				ctx := patience.Context(t)
				_, err := ddata.Update(ctx, n, moodOf("mood"), level, setMood(m))
				return err
			}
			for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority()} {
				var failed *ddata.FunctionError
				require.ErrorAs(t, set(-1, level), &failed, "node %d, %s", i, level)
				require.ErrorIs(t, failed, errNo)
				require.ErrorAs(t, set(-2, level), &failed, "node %d, %s", i, level)
				require.ErrorContains(t, failed, "no encoding")
			}
			require.NoError(t, n.add("visits", 1, ddata.Local()))
			w.nodes[1].holds("visits", uint64(i+1))
			require.NoError(t, set(moody(i), ddata.All()))
		}
		require.Zero(t, w.nodes[0].Data().Stats().Unsent)
	})
}

// A replica refuses a value that it cannot decode, and tells the writer, and its own readers,
// so. Other keys go on.
func TestAReplicaRefusesWhatItCannotDecode(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.options = func(int) []ddata.Option {
			return []ddata.Option{ddata.WithTypes(crdt.TypeOf[crdt.LWWRegister[moody]]())}
		}
		w.start(2)
		for _, m := range []moody{101, 102} {
			ctx := patience.Expiring(t, reportTimeout)
			var refused *ddata.RefusedError
			began := time.Now()
			_, err := ddata.Update(ctx, w.nodes[0], moodOf(fmt.Sprint(m)), ddata.All(), setMood(m))
			require.ErrorAs(t, err, &refused)
			require.Less(t, time.Since(began), time.Second, "all were needed: it does not wait for the end of its time")
			require.Equal(t, w.nodes[1].Self().String(), refused.Node)
			require.Equal(t, []string{w.nodes[0].Self().String()}, refused.Answered)
			require.ErrorContains(t, err, refused.Reason+"; stored on ")
			require.Contains(t, refused.Reason, "mood")
			ctx = patience.Expiring(t, reportTimeout)
			_, err = ddata.Get(ctx, w.nodes[1], moodOf(fmt.Sprint(m)), ddata.All())
			require.ErrorAs(t, err, &refused)
			require.Empty(t, refused.Node)
		}
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
	})
}

// Whoever asks from elsewhere for a value that it cannot decode, or of a type that it does not
// know, is told so at each level.
func TestAValueFromElsewhereThatCannotBeDecoded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role = "data"
			if i == 0 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.options = func(i int) []ddata.Option {
			types := []crdt.Type{crdt.TypeOf[crdt.LWWRegister[moody]](), crdt.TypeOf[tally]()}
			return []ddata.Option{ddata.WithTypes(types[:2-i]...)}
		}
		w.start(2)
		ctx := patience.Context(t)
		home, guest := w.nodes[0], w.nodes[1]
		votes := ddata.NewKey[tally]("votes")
		_, err := ddata.Update(ctx, home, votes, ddata.All(), func(at crdt.Origin, v tally) (tally, error) { return tally{v.Add(at, 4)}, nil })
		require.NoError(t, err)
		for _, level := range []ddata.Consistency{ddata.Local(), ddata.Majority(), ddata.All()} {
			for _, m := range []moody{101, 102} {
				var refused *ddata.RefusedError
				var not *ddata.NotStoredError
				key := moodOf(fmt.Sprint(m))
				_, err = ddata.Update(ctx, home, key, level, setMood(m))
				require.NoError(t, err)
				_, err = ddata.Get(ctx, guest, key, level)
				require.ErrorAs(t, err, &refused, "%s", level)
				require.Empty(t, refused.Node)
				_, err = ddata.Update(ctx, guest, key, level, setMood(1))
				require.ErrorAs(t, err, &not, "%s", level)
			}
			var clash *ddata.TypeError
			_, err = ddata.Get(ctx, guest, counter("votes"), level)
			require.ErrorAs(t, err, &clash, "%s", level)
			require.Equal(t, "tally", clash.Have)
			require.ErrorAs(t, guest.add("votes", 1, level), &clash, "%s", level)
		}
		require.NoError(t, guest.add("visits", 1, ddata.All()))
	})
}

// Two nodes are cut off from the third: what each says of its data is true.
func TestWithoutAMajority(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		for _, o := range w.nodes[1:] {
			w.network.Cut(w.nodes[0].Self().Address, o.Self().Address)
		}
		ctx := patience.Expiring(t, time.Second)
		_, err := ddata.Get(ctx, w.nodes[0], counter("visits"), ddata.Majority())
		var unanswered *ddata.UnansweredError
		require.ErrorAs(t, err, &unanswered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{w.nodes[0].Self().String()}, unanswered.Answered)
		require.Len(t, unanswered.Missing, 2)

		again, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(errNo) })
		began := time.Now()
		_, err = ddata.Update(again, w.nodes[0], counter("visits"), ddata.Majority(), increment)
		var unconfirmed *ddata.UnconfirmedError
		require.ErrorAs(t, err, &unconfirmed)
		require.ErrorIs(t, err, errNo)
		require.Less(t, time.Since(began), 2*time.Second)
		require.Equal(t, []string{w.nodes[0].Self().String()}, unconfirmed.Answered)
		got, err := w.nodes[0].read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 2, got)
		for _, o := range w.nodes[1:] {
			w.network.Heal(w.nodes[0].Self().Address, o.Self().Address)
		}
		w.nodes[1].holds("visits", 2)
	})
}

// Before any replica is known, a call waits for as long as its context allows.
func TestBeforeTheClusterIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, m *membership.Config, _ *ddata.Config) { m.Membership.SeedNodes = nil }
		n := w.build()
		ctx := patience.Expiring(t, time.Second)
		var not *ddata.NotStoredError
		_, err := ddata.Update(ctx, n, counter("visits"), ddata.Local(), increment)
		require.ErrorAs(t, err, &not)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, n.AwaitReady(ctx), context.DeadlineExceeded)
		_, err = ddata.Get(ctx, n, counter("visits"), ddata.Local())
		var unanswered *ddata.UnansweredError
		require.ErrorAs(t, err, &unanswered)
	})
}

// Whatever waits when the node ends, ends with it.
func TestTheNodeEndsWhileCallsWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		w.network.Cut(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		n := w.nodes[0]
		errs := make(chan error, 4)
		wait := func(f func() error) {
			// Owned by the test, which takes its error.
			go func() { errs <- f() }()
		}
		s, p := ddata.Subscribe(n, counter("other")), ddata.SubscribePrefix[crdt.GCounter](n, "other")
		wait(func() error { return n.add("visits", 1, ddata.All()) })
		wait(func() error { _, err := n.read("visits", ddata.All()); return err })
		wait(func() error { _, err := s.Next(t.Context()); return err })
		wait(func() error { _, err := p.Next(t.Context()); return err })
		synctest.Wait()
		require.Empty(t, errs)
		w.close(n)
		for range 4 {
			require.ErrorIs(t, <-errs, ddata.ErrClosed)
		}
		require.ErrorIs(t, n.add("visits", 1, ddata.Local()), ddata.ErrClosed)
		_, err := n.read("visits", ddata.Local())
		require.ErrorIs(t, err, ddata.ErrClosed)
		_, err = ddata.Subscribe(n, counter("visits")).Next(t.Context())
		require.ErrorIs(t, err, ddata.ErrClosed)
		require.ErrorIs(t, n.AwaitReady(t.Context()), ddata.ErrClosed)
	})
}

// Two nodes that were cut off from each other gave one key two types. Whoever reads both is
// told so, other keys go on, and deleting the key settles it.
func TestTwoReplicasDisagreeAboutAType(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.network.Cut(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.Local()))
		flag := ddata.NewKey[crdt.Flag]("visits")
		_, err := ddata.Update(ctx, w.nodes[1], flag, ddata.Local(), func(_ crdt.Origin, v crdt.Flag) (crdt.Flag, error) { return v.Enable(), nil })
		require.NoError(t, err)
		w.network.HealAll()
		_, err = w.nodes[0].read("visits", ddata.All())
		var clash *ddata.TypeError
		require.ErrorAs(t, err, &clash)
		short := patience.Expiring(t, reportTimeout)
		_, err = ddata.Update(short, w.nodes[0], counter("visits"), ddata.All(), increment)
		var refused *ddata.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, w.nodes[1].Self().String(), refused.Node)
		require.Equal(t, []string{w.nodes[0].Self().String()}, refused.Answered)
		require.NoError(t, w.nodes[1].add("other", 1, ddata.All()))
		require.NoError(t, ddata.Delete(ctx, w.nodes[1], flag, ddata.All()))
		eventually(t, "the key is usable again", func() bool { return w.nodes[0].add("visits", 4, ddata.All()) == nil })
		got, err := w.nodes[1].read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 4, got)
	})
}

// A loss is accepted for the keys of a name only, and not while there is nothing to lose.
func TestAcceptingALossOfUnknownKeys(t *testing.T) {
	alone(t, func(t *testing.T, _ *world, n *node, ctx context.Context) {
		require.ErrorContains(t, n.AcceptLoss(ctx, "none"), `"none"`)
		require.NoError(t, n.add("visits", 1, ddata.All()))
		err := n.AcceptLoss(ctx, "all")
		require.ErrorIs(t, err, ddata.ErrAcceptLoss)
		require.ErrorContains(t, err, `enough replicas of the keys "all" are here to go on`)
	})
}

// A local update while the machine is busy is sent all the same, and waits for nobody.
func TestALocalUpdateWhileTheMachineIsBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.GossipInterval = time.Hour }
		w.start(2)
		pass(5 * time.Second) // The first comparison is over, and the next one far.
		release := w.nodes[0].Jam()
		require.NoError(t, w.nodes[0].add("visits", 2, ddata.Local()))
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.Local()))
		got, err := w.nodes[0].read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 3, got)
		pass(time.Second)
		_, err = w.nodes[1].read("visits", ddata.Local())
		require.ErrorIs(t, err, ddata.ErrNotFound)
		require.True(t, w.nodes[0].Standing().Held(), "membership is not delayed")
		release()
		began := time.Now()
		w.nodes[1].holds("visits", 3)
		require.Less(t, time.Since(began), 500*time.Millisecond)
	})
}

// Nodes that leave in order at the same time hand over what they hold: nothing that was
// confirmed is lost, although one node alone is left.
func TestLeavingHandsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(5)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.Majority()))
		ctx := patience.Context(t)
		var left sync.WaitGroup
		for _, n := range w.nodes[1:] {
			left.Go(func() { assert.NoError(t, n.Leave(ctx)) })
		}
		left.Wait()
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.Majority()))
		got, err := w.nodes[0].read("visits", ddata.Majority())
		require.NoError(t, err)
		require.EqualValues(t, 2, got)
	})
}
