// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// What people are told: of a key that is live, deleted or forgotten, of a replica that lags, of
// groups, of values; and what they may decide.

// Why a key is as it is, before a replica is known, while it is live, when it is deleted, and
// when its tombstone was swept.
func TestExplain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.build()
		e := n.explain("visits")
		require.Equal(t, "unknown", e.State)
		require.Zero(t, e.Group.Generation)
		require.Empty(t, e.Homes)
		w.ready(n)
		e = n.explain("visits")
		require.Equal(t, "absent", e.State)
		require.Equal(t, []ddata.Home{{Replica: n.Self().String(), Sets: []string{"current"}, Answered: true, State: "absent"}}, e.Homes)
		require.NoError(t, n.add("visits", 1, ddata.Majority()))
		require.NoError(t, n.add("visits", 1, ddata.Majority()))
		e = n.explain("visits")
		require.True(t, e.Here)
		require.Equal(t, "all", e.Group.Name)
		require.Equal(t, n.Self().String(), e.Group.Leader)
		require.Equal(t, []string{n.Self().String()}, e.Replicas)
		require.Equal(t, "gcounter", e.Type)
		require.Equal(t, "live", e.State)
		require.Positive(t, e.Bytes)
		require.Len(t, e.Versions, 1)
		require.EqualValues(t, 2, e.Versions[0].Count)
		require.Empty(t, e.Kept)
		require.NoError(t, ddata.Delete(t.Context(), n, counter("visits"), ddata.Local()))
		e = n.explain("visits")
		require.Equal(t, "deleted", e.State)
		require.Contains(t, e.Kept, "it is of this generation")
		eventually(t, "the tombstone is forgotten", func() bool { return n.explain("visits").State == "absent" })

		for _, bad := range []string{"", strings.Repeat("x", 1025), "\xff"} {
			_, err := n.Explain(t.Context(), bad)
			require.ErrorIs(t, err, ddata.ErrKey)
			_, err = n.Look(t.Context(), bad, ddata.Local())
			require.ErrorIs(t, err, ddata.ErrKey)
		}
	})
}

// A replica that lacks updates is named with how many of whom it lacks, one that cannot
// answer as such, and an operation that waits with whom it waits for.
func TestExplainNamesWhoLags(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		// Nothing heals what the cut has held up while the test looks.
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.GossipInterval = time.Hour }
		w.start(3)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		require.NoError(t, a.add("visits", 1, ddata.All()))
		w.network.Cut(a.Self().Address, c.Self().Address)
		for range 3 {
			require.NoError(t, a.add("visits", 1, ddata.Majority()))
		}
		lagging := b.explain("visits")
		at := slices.IndexFunc(lagging.Homes, func(h ddata.Home) bool { return h.Replica == c.Self().String() })
		require.True(t, lagging.Homes[at].Answered)
		require.Len(t, lagging.Homes[at].Lacks, 1)
		require.EqualValues(t, 3, lagging.Homes[at].Lacks[0].Count)
		require.Equal(t, lagging.Versions[0].Origin, lagging.Homes[at].Lacks[0].Origin)

		began := time.Now()
		short := patience.Expiring(t, 5*time.Second)
		failed := make(chan error, 1)
		// Owned by the test, which takes the error.
		go func() {
			_, err := ddata.Update(short, a, counter("visits"), ddata.All(), func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
			failed <- err
		}()
		pass(time.Second)
		e := a.explain("visits")
		at = slices.IndexFunc(e.Homes, func(h ddata.Home) bool { return h.Replica == c.Self().String() })
		require.False(t, e.Homes[at].Answered)
		require.False(t, e.Homes[at].Unread.IsZero())
		require.Len(t, e.Waiting, 1)
		require.Equal(t, "write", e.Waiting[0].Kind)
		require.Equal(t, "all", e.Waiting[0].Level)
		require.Equal(t, []string{c.Self().String()}, e.Waiting[0].Missing)
		require.WithinDuration(t, began, e.Waiting[0].Since, time.Millisecond)
		require.Error(t, <-failed)
		text, err := json.Marshal(e)
		require.NoError(t, err)
		var again ddata.Explanation
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, e.Versions, again.Versions)
	})
}

// home returns what an explanation says of the replica of a node.
func home(e ddata.Explanation, of *node) ddata.Home {
	return e.Homes[slices.IndexFunc(e.Homes, func(h ddata.Home) bool { return h.Replica == of.Self().String() })]
}

// Every node that hears of a replica that lags says since when: the one that has made the
// update, one that was told of it, and one that holds no data, from its first look on. A
// replica that lags no more has no such moment.
func TestExplainSaysSinceWhenAReplicaLags(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.GossipInterval, c.Role = time.Hour, "keeper" // Nothing heals what is cut.
			if i < 3 {
				m.Node.Roles = []string{"keeper"}
			}
		}
		w.start(4)
		a, b, c, reader := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
		require.NoError(t, a.add("visits", 1, ddata.All()))
		pass(time.Second) // The first comparisons are over.
		require.Zero(t, home(b.explain("visits"), c).Since)
		w.network.Cut(a.Self().Address, c.Self().Address)
		began := time.Now()
		for range 3 {
			require.NoError(t, a.add("visits", 1, ddata.Majority()))
			pass(time.Second)
		}
		first := time.Now()
		looked := reader.explain("visits")
		require.Len(t, home(looked, c).Lacks, 1)
		require.WithinDuration(t, first, home(looked, c).Since, 100*time.Millisecond)
		pass(time.Second) // The batches are not waited for any more.
		require.WithinDuration(t, home(looked, c).Since, home(reader.explain("visits"), c).Since, time.Millisecond)
		require.WithinDuration(t, began, home(b.explain("visits"), c).Since, 100*time.Millisecond)
		require.False(t, home(a.explain("visits"), c).Answered)
		require.WithinDuration(t, began, home(a.explain("visits"), c).Unread, 100*time.Millisecond)

		w.network.Heal(a.Self().Address, c.Self().Address)
		require.NoError(t, a.add("visits", 1, ddata.All()))
		for _, n := range w.nodes {
			eventually(t, "the replica is reachable", func() bool { return home(n.explain("visits"), c).Answered })
			h := home(n.explain("visits"), c)
			require.Empty(t, h.Lacks)
			require.True(t, h.Since.IsZero() && h.Unread.IsZero(), "%+v", h)
		}

		w.network.Cut(a.Self().Address, c.Self().Address)
		began = time.Now()
		require.NoError(t, ddata.Delete(t.Context(), a, counter("visits"), ddata.Majority()))
		pass(time.Second)
		h := home(b.explain("visits"), c)
		require.Equal(t, "live", h.State)
		require.True(t, h.Undead)
		require.WithinDuration(t, began, h.Since, 100*time.Millisecond)
	})
}

// A key that was deleted, forgotten and made anew lags since it was made anew: what was noted
// of the old one, whose updates had the same numbers, counts no more.
func TestExplainSaysSinceWhenOfAKeyThatIsUsedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.SweepInterval = time.Second }
		w.start(3)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		for range 3 {
			require.NoError(t, a.add("visits", 1, ddata.All()))
		}
		require.NoError(t, ddata.Delete(t.Context(), a, counter("visits"), ddata.All()))
		for _, n := range w.nodes {
			eventually(t, "the tombstone is forgotten", func() bool { return n.explain("visits").State == "absent" })
		}
		w.network.Cut(a.Self().Address, c.Self().Address)
		began := time.Now()
		require.NoError(t, a.add("visits", 1, ddata.Majority()))
		h := home(b.explain("visits"), c)
		require.Len(t, h.Lacks, 1)
		require.EqualValues(t, 1, h.Lacks[0].Count)
		require.WithinDuration(t, began, h.Since, 100*time.Millisecond)
	})
}

// What was noted of updates is bounded: of one that was taken in long before many others is
// said since when its key has not changed.
func TestExplainSaysSinceWhenAfterManyUpdates(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.GossipInterval = time.Hour }
		w.start(3)
		a, b, c := w.nodes[0], w.nodes[1], w.nodes[2]
		require.NoError(t, a.add("visits", 1, ddata.All()))
		pass(time.Second) // The first comparisons are over.
		w.network.Cut(a.Self().Address, c.Self().Address)
		began := time.Now()
		require.NoError(t, a.add("visits", 1, ddata.Majority()))
		for i := range 5000 {
			require.NoError(t, a.add(fmt.Sprint("other/", i), 1, ddata.Local()))
		}
		pass(4 * time.Second)
		h := home(b.explain("visits"), c)
		require.Len(t, h.Lacks, 1)
		require.WithinRange(t, h.Since, began, began.Add(2500*time.Millisecond))
	})
}

// A node that holds no data asks those that do.
func TestExplainOnANodeWithoutData(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			if c.Role = "keeper"; i < 2 {
				m.Node.Roles = []string{"keeper"}
			}
		}
		w.start(3)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		e := w.nodes[2].explain("visits")
		require.False(t, e.Here)
		require.Equal(t, "live", e.State)
		require.Equal(t, "gcounter", e.Type)
		require.Len(t, e.Homes, 2)
		for _, h := range e.Homes {
			require.True(t, h.Answered)
			require.Empty(t, h.Lacks)
		}
		v, err := w.nodes[2].Look(t.Context(), "visits", ddata.Local())
		require.NoError(t, err)
		require.Equal(t, "1", v.Text)
		require.ErrorContains(t, w.nodes[2].AcceptLoss(t.Context(), "all"), `this node does not hold the keys "all": ask one with the role "keeper"`)
	})
}

// Values are shown as text if they have one, and cut.
func TestLook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.options = func(int) []ddata.Option { return []ddata.Option{ddata.WithTypes(crdt.TypeOf[bare]())} }
		w.start(1)
		n := w.nodes[0]
		_, err := ddata.Update(t.Context(), n, ddata.NewKey[bare]("bare"), ddata.Local(), func(at crdt.Origin, v bare) (bare, error) { return bare{v.counter.Add(at, 7)}, nil })
		require.NoError(t, err)
		v, err := n.Look(t.Context(), "bare", ddata.Majority())
		require.NoError(t, err)
		require.Empty(t, v.Text)
		b, err := base64.StdEncoding.DecodeString(v.Encoded)
		require.NoError(t, err)
		want, err := crdt.GCounter{}.Add(crdt.Origin(v.Versions[0].Origin), 7).AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, want, b)

		long := ddata.NewKey[crdt.LWWRegister[string]]("long")
		_, err = ddata.Update(t.Context(), n, long, ddata.Local(), func(at crdt.Origin, v crdt.LWWRegister[string]) (crdt.LWWRegister[string], error) {
			return v.Set(at, 1, strings.Repeat("x", 1<<20)), nil
		})
		require.NoError(t, err)
		v, err = n.Look(t.Context(), "long", ddata.Local())
		require.NoError(t, err)
		require.True(t, v.Truncated)
		require.Len(t, v.Text, 64<<10)

		keys, more, err := n.Keys(t.Context(), "", 1)
		require.NoError(t, err)
		require.Len(t, keys, 1)
		require.True(t, more)
		keys, more, err = n.Keys(t.Context(), "l", 10)
		require.NoError(t, err)
		require.Equal(t, []string{"long"}, keys)
		require.False(t, more)
	})
}

// bare is a counter of the program's own without a text.
type bare struct{ counter crdt.GCounter }

func (bare) TypeName() string                  { return "bare" }
func (b bare) Merge(o bare) bare               { return bare{b.counter.Merge(o.counter)} }
func (b *bare) UnmarshalBinary(x []byte) error { return b.counter.UnmarshalBinary(x) }

func (b bare) AppendBinary(dst []byte) ([]byte, error) { return b.counter.AppendBinary(dst) }

// An operator accepts the loss of a majority of the replicas, which the cluster goes on without: the node that is
// left goes on alone, and who comes to hold the data takes it over.
func TestAcceptLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role, c.LostMajority = "data", "wait"
			if i < 3 || i > 5 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(6)
		n := w.nodes[0]
		require.NoError(t, n.add("visits", 1, ddata.All()))
		for _, o := range w.nodes[1:3] {
			w.crash(o)
		}
		eventually(t, "the others are unreachable", func() bool { return !n.explain("visits").Group.Quorum })
		eventually(t, "they are removed", func() bool { return len(n.View().State.Members()) == 4 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := ddata.Get(ctx, n, counter("visits"), ddata.Majority())
		require.Error(t, err)
		require.NoError(t, n.AcceptLoss(t.Context(), "all"))
		require.NoError(t, n.add("visits", 1, ddata.Majority()))
		require.ErrorIs(t, n.AcceptLoss(t.Context(), "all"), ddata.ErrAcceptLoss)
		w.ready(w.build())
		w.nodes[6].holds("visits", 2)
	})
}
