// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// holds waits until a node has read a counter in its own table.
func (n *node) holds(name string, want uint64) {
	n.w.t.Helper()
	eventually(n.w.t, fmt.Sprintf("%s holds %s", n.Self(), name), func() bool {
		got, err := n.read(name, ddata.Local())
		return err == nil && got == want
	})
}

// A node that joins counts only when it has taken everything over.
func TestANodeThatJoinsTakesEverythingOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		const keys = 3000
		for i := range keys {
			require.NoError(t, w.nodes[i%2].add(fmt.Sprintf("visits-%d", i), uint64(i+1), ddata.Local()))
		}
		for _, n := range w.nodes {
			n.holds("visits-2998", 2999)
			n.holds("visits-2999", 3000)
		}
		late := w.build()
		w.ready(late)
		for i := range keys {
			got, err := late.read(fmt.Sprintf("visits-%d", i), ddata.Local())
			require.NoError(t, err, "key %d", i)
			require.EqualValues(t, i+1, got)
		}
		require.Equal(t, keys, late.Data().Stats().Keys)
	})
}

// What a majority has confirmed is there when a node is lost, and the others go on.
func TestTheOthersGoOnWithoutOne(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		require.NoError(t, w.nodes[2].add("visits", 1, ddata.Majority()))
		w.crash(w.nodes[2])
		for i, n := range w.nodes[:2] {
			require.NoError(t, n.add("visits", 1, ddata.Majority()))
			got, err := n.read("visits", ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, i+2, got)
		}
		ctx := patience.Expiring(t, time.Second)
		_, err := ddata.Update(ctx, w.nodes[0], counter("visits"), ddata.All(), increment)
		var unconfirmed *ddata.UnconfirmedError
		require.ErrorAs(t, err, &unconfirmed)
		require.Len(t, unconfirmed.Answered, 2)
		require.Equal(t, []string{w.nodes[2].Self().String()}, unconfirmed.Missing)
		eventually(t, "the lost node counts no more", func() bool { return len(w.nodes[0].explain("visits").Replicas) == 2 })
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		got, err := w.nodes[1].read("visits", ddata.All())
		require.NoError(t, err)
		require.EqualValues(t, 5, got)
	})
}

// increment is an update that adds one to a counter.
func increment(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil }

// A node without the role of the data reads, changes and deletes it through those that
// have the role, at each level.
func TestANodeWithoutTheRoleWorksThroughOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role = "data"
			if i < 3 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(4)
		guest := w.nodes[3]
		levels := []ddata.Consistency{ddata.Local(), ddata.To(2), ddata.Majority(), ddata.All()}
		for i, level := range levels {
			require.NoError(t, guest.add("visits", 1, level), "%s", level)
			got, err := guest.read("visits", ddata.All())
			require.NoError(t, err, "%s", level)
			require.EqualValues(t, i+1, got)
		}
		w.nodes[1].holds("visits", 4)
		got, err := guest.read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 4, got)
		require.Zero(t, guest.Data().Stats().Keys)
		e := guest.explain("visits")
		require.False(t, e.Here)
		require.Len(t, e.Replicas, 3)

		ctx := patience.Context(t)
		_, err = ddata.Subscribe(guest, counter("visits")).Next(ctx)
		require.ErrorIs(t, err, ddata.ErrNotHere)
		_, err = ddata.SubscribePrefix[crdt.GCounter](guest, "").Next(ctx)
		require.ErrorIs(t, err, ddata.ErrNotHere)
		var failed *ddata.FunctionError
		_, err = ddata.Update(ctx, guest, counter("visits"), ddata.Local(), func(crdt.Origin, crdt.GCounter) (crdt.GCounter, error) { panic("no") })
		require.ErrorAs(t, err, &failed)
		_, err = ddata.Update(ctx, guest, counter("visits"), ddata.Majority(), func(_ crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v, nil })
		require.NoError(t, err, "nothing to change is no fault")
		var clash *ddata.TypeError
		_, err = ddata.Get(ctx, guest, ddata.NewKey[crdt.Flag]("visits"), ddata.Majority())
		require.ErrorAs(t, err, &clash)
		require.NoError(t, ddata.Delete(ctx, guest, counter("visits"), ddata.All()))
		require.ErrorIs(t, guest.add("visits", 1, ddata.Majority()), ddata.ErrDeleted)
		require.ErrorIs(t, w.nodes[0].add("visits", 1, ddata.Majority()), ddata.ErrDeleted)
	})
}

// What a node without the role has written at level Local goes to the other replicas as soon
// as what the replica that holds it for that node has written itself: no comparison is needed.
func TestALocalWriteFromElsewhereIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role, c.GossipInterval = "data", time.Hour
			if i < 3 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(4)
		pass(5 * time.Second) // The first comparison is over, and the next one far.
		require.NoError(t, w.nodes[3].add("visits", 1, ddata.Local()))
		began := time.Now()
		for _, n := range w.nodes[:3] {
			n.holds("visits", 1)
		}
		require.Less(t, time.Since(began), 500*time.Millisecond)
	})
}

// Keys with a number of replicas live on so many nodes, and every node reads and changes
// them.
func TestKeysWithANumberOfReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) {
			c.Groups = []ddata.GroupConfig{{Prefix: "user/", Replicas: 2}}
		}
		w.start(4)
		const keys = 40
		for i := range keys {
			require.NoError(t, w.nodes[i%4].add(fmt.Sprintf("user/%d", i), 1, ddata.Majority()))
		}
		for _, n := range w.nodes {
			for i := range keys {
				got, err := n.read(fmt.Sprintf("user/%d", i), ddata.Majority())
				require.NoError(t, err)
				require.EqualValues(t, 1, got)
			}
		}
		eventually(t, "each key has two homes", func() bool {
			held := 0
			for _, n := range w.nodes {
				held += n.Data().Stats().Keys
			}
			return held == 2*keys
		})
		e := w.nodes[0].explain("user/0")
		require.Equal(t, "user/*", e.Group.Name)
		require.Len(t, e.Replicas, 2)
	})
}

// A local read of a node without a copy has the node's own writes: it asks the home that took the last one.
func TestALocalReadFromElsewhereHasTheNodesOwnWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role = "data"
			if i < 3 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(4)
		for i := range 30 {
			require.NoError(t, w.nodes[3].add("visits", 1, ddata.Local()))
			got, err := w.nodes[3].read("visits", ddata.Local())
			require.NoError(t, err)
			require.EqualValues(t, i+1, got)
		}
	})
}

// A majority of the replicas is removed at once, while the cluster goes on without them, and the keys are to wait for
// an operator: reads and writes at level majority say so, which replicas are gone, and since when it is waited.
func TestAMajorityOfTheReplicasIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role, c.LostMajority = "data", "wait"
			if i < 3 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(6)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		for _, n := range w.nodes[1:3] {
			w.network.Cut(w.nodes[0].Self().Address, n.Self().Address)
		}
		for _, n := range w.nodes[1:3] {
			w.crash(n)
		}
		for _, n := range []*node{w.nodes[0], w.nodes[5]} {
			_, err := n.read("visits", ddata.Majority())
			for _, err := range []error{err, n.add("visits", 1, ddata.Majority())} {
				var gone *ddata.NoQuorumError
				require.ErrorAs(t, err, &gone)
				require.Equal(t, []string{w.nodes[0].Self().String()}, gone.Answered)
				require.Len(t, gone.Missing, 2)
				require.Positive(t, gone.Since, "%s", n.Self())
				require.ErrorContains(t, err, "they were removed and do not come back: let an operator accept the loss")
			}
		}
		got, err := w.nodes[0].read("visits", ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 3, got, "what was written stays written where it is")
	})
}

// A majority of the replicas of keys in memory is removed at once, while the cluster goes on without them: the keys
// go on by themselves, with what each of those holds that are left, and people are told.
func TestKeysInMemoryGoOnWithoutAMajority(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role = "data"
			if i < 5 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(9)
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		for _, n := range w.nodes[2:5] {
			for _, left := range w.nodes[:2] {
				w.network.Cut(left.Self().Address, n.Self().Address)
			}
		}
		w.network.Cut(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		for _, n := range w.nodes[:2] {
			require.NoError(t, n.add("visits", 1, ddata.Local()))
		}
		for _, n := range w.nodes[2:5] {
			w.crash(n)
		}
		w.network.Heal(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		eventually(t, "people are told", func() bool { return len(w.nodes[0].Warnings()) == 1 })
		require.Contains(t, w.nodes[0].Warnings()[0], `keys "all": no majority since 2000-`)
		require.Contains(t, w.nodes[0].Warnings()[0], "they are members: it goes on when they can be reached again, or are removed")
		for _, n := range []*node{w.nodes[1], w.nodes[8]} {
			got, err := n.read("visits", ddata.Majority())
			require.NoError(t, err)
			require.EqualValues(t, 3, got, "what each of those held that are left")
			require.NoError(t, n.add("other", 1, ddata.Majority()))
		}
		eventually(t, "it is over", func() bool { return strings.Contains(w.nodes[0].Warnings()[0], "the majority was lost with 10.0.0.") })
		groups, err := w.nodes[0].Groups(t.Context())
		require.NoError(t, err)
		require.Empty(t, groups[0].Lost)
		pass(10 * time.Minute)
		require.Empty(t, w.nodes[0].Warnings())
	})
}

// A node that comes up is not ready as long as its replica does not count, for a minute at most: what it waits for here
// nobody but an operator can give it. Once it has counted, it stays ready.
func TestANodeIsReadyWhenItsReplicaCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(i int, m *membership.Config, c *ddata.Config) {
			c.Role, c.LostMajority = "data", "wait"
			if i < 3 || i > 5 {
				m.Node.Roles = []string{"data"}
			}
		}
		w.start(6)
		for _, n := range w.nodes {
			require.Empty(t, n.Unready())
		}
		for _, n := range w.nodes[1:3] {
			w.crash(n)
		}
		late := w.build()
		require.NoError(t, late.AwaitUp(patience.Context(t)))
		pass(time.Second)
		require.Len(t, late.Unready(), 1)
		require.Contains(t, late.Unready()[0], `the replica of the keys "all" does not count yet: the set of replicas has yet to change; that is waited for up to 2000-`)
		require.Empty(t, w.nodes[0].Unready(), "it has counted")
		pass(time.Minute)
		require.Empty(t, late.Unready())
	})
}

// A deleted key is refused until the tombstone was collected, and then begins anew.
func TestADeletedKeyIsUsableAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[0].add("visits", 7, ddata.All()))
		require.NoError(t, ddata.Delete(ctx, w.nodes[1], counter("visits"), ddata.Majority()))
		_, err := w.nodes[2].read("visits", ddata.Majority())
		require.ErrorIs(t, err, ddata.ErrDeleted)
		eventually(t, "the key is usable again", func() bool { return w.nodes[2].add("visits", 1, ddata.Majority()) == nil })
		got, err := w.nodes[0].read("visits", ddata.Majority())
		require.NoError(t, err)
		require.EqualValues(t, 1, got)
		require.NoError(t, ddata.Delete(ctx, w.nodes[1], counter("never"), ddata.Local()))
	})
}

// A key that nobody changes vanishes, and begins anew when it is changed.
func TestIdleKeysExpire(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) {
			c.Expire = []ddata.ExpireConfig{{Prefix: "session/", After: 20 * time.Second}}
		}
		w.start(2)
		require.NoError(t, w.nodes[0].add("session/1", 1, ddata.Majority()))
		require.NoError(t, w.nodes[0].add("other", 1, ddata.Majority()))
		s := ddata.Subscribe(w.nodes[1], counter("session/1"))
		defer s.Close()
		ctx := patience.Context(t)
		for _, want := range []ddata.EventKind{ddata.Changed, ddata.Expired} {
			event, err := s.Next(ctx)
			require.NoError(t, err)
			require.Equal(t, want, event.Kind)
		}
		_, err := w.nodes[0].read("session/1", ddata.Majority())
		require.ErrorIs(t, err, ddata.ErrNotFound)
		require.NoError(t, w.nodes[0].add("session/1", 5, ddata.Majority()))
		got, err := w.nodes[1].read("session/1", ddata.Majority())
		require.NoError(t, err)
		require.EqualValues(t, 5, got)
	})
}
