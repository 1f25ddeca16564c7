// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/services/internal/clustertest"
	"github.com/quorate/quorate/ddata/services/registry"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
)

// host is a node with a registry.
type host struct {
	*registry.Registry

	node *clustertest.Node
	w    *clustertest.World
}

// onAll puts registries on nodes.
func onAll(w *clustertest.World, nodes ...*clustertest.Node) (all []*host) {
	for _, n := range nodes {
		r, err := registry.New(n, registry.WithLogger(clustertest.Quiet(w.T)))
		require.NoError(w.T, err)
		n.Ends = append(n.Ends, r.AwaitEnd)
		all = append(all, &host{r, n, w})
	}
	return all
}

func (h *host) register(address string) *registry.Registration {
	ctx := patience.Context(h.w.T)
	g, err := h.Register(ctx, registry.Entry{Name: "mail", Address: address})
	require.NoError(h.w.T, err)
	return g
}

// find returns the addresses of a name.
func (h *host) find(name string) (addresses []string) {
	ctx := patience.Context(h.w.T)
	all, err := h.Find(ctx, name)
	require.NoError(h.w.T, err)
	for _, e := range all {
		addresses = append(addresses, e.Address)
	}
	return addresses
}

// finds waits until a node finds exactly these.
func (h *host) finds(addresses ...string) {
	h.w.T.Helper()
	clustertest.Eventually(h.w.T, "these are found", func() bool {
		got := map[string]bool{}
		for _, a := range h.find("mail") {
			got[a] = true
		}
		for _, a := range addresses {
			if !got[a] {
				return false
			}
		}
		return len(got) == len(addresses)
	})
}

// next returns the next event.
func next(t *testing.T, s *registry.Subscription) registry.Event {
	t.Helper()
	e, err := s.Next(patience.Context(t))
	require.NoError(t, err)
	return e
}

// silent checks that nothing is told for a while.
func silent(t *testing.T, s *registry.Subscription) {
	t.Helper()
	_, err := s.Next(patience.Expiring(t, 5*time.Second))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What one node registers all nodes find, with its updates, until it is taken back.
func TestARegistrationIsFoundEverywhere(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(3)
		all := onAll(w, w.Nodes...)
		ctx := patience.Context(t)
		g, err := all[0].Register(ctx, registry.Entry{Name: "mail", Address: "a:1", Metadata: map[string]string{"zone": "x"}})
		require.NoError(t, err)
		require.Equal(t, []string{"a:1"}, all[0].find("mail"), "at once on its own node")
		other := all[1].register("b:1")
		second := all[0].register("a:2")
		for _, h := range all {
			h.finds("a:1", "a:2", "b:1")
			require.Empty(t, h.find("web"))
		}
		found, err := all[2].Find(ctx, "mail")
		require.NoError(t, err)
		require.Contains(t, found, g.Entry())
		require.Equal(t, all[0].node.Member.Self(), g.Entry().Node)
		require.NotEqual(t, g.Entry().ID, second.Entry().ID)

		require.NoError(t, g.Update(ctx, "a:9", nil))
		require.NoError(t, other.Close(ctx))
		require.NoError(t, other.Close(ctx), "again")
		require.ErrorIs(t, other.Update(ctx, "b:2", nil), registry.ErrClosed)
		for _, h := range all {
			h.finds("a:9", "a:2")
		}
		require.Equal(t, 2, all[0].Stats().Registrations)
		require.Zero(t, all[1].Stats().Registrations)
	})
}

// Entries of a node that has crashed or left are found no more once the node is gone, and
// are removed from the data for good.
func TestEntriesVanishWithTheirNode(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(4)
		all := onAll(w, w.Nodes...)
		for i, h := range all {
			h.register(string(rune('a'+i)) + ":1")
		}
		for _, h := range all {
			h.finds("a:1", "b:1", "c:1", "d:1")
		}
		ctx := patience.Context(t)
		s := all[0].Subscribe("mail")
		defer s.Close()
		for range all {
			require.Equal(t, registry.Appeared, next(t, s).Kind)
		}
		w.Crash(w.Nodes[3])
		require.NoError(t, w.Nodes[2].Member.Leave(ctx))
		gone := map[string]bool{}
		for range 2 {
			e := next(t, s)
			require.Equal(t, registry.Vanished, e.Kind)
			gone[e.Entry.Address] = true
		}
		require.Equal(t, map[string]bool{"c:1": true, "d:1": true}, gone)
		for _, h := range all[:2] {
			h.finds("a:1", "b:1")
			clustertest.Eventually(t, "the entries are removed", func() bool {
				e, err := h.Explain(ctx, "mail")
				return err == nil && len(e.Entries) == 2
			})
		}
		require.EqualValues(t, 2, all[0].Stats().Removed+all[1].Stats().Removed, "by one node each")
		require.Zero(t, all[0].Stats().Restored+all[1].Stats().Restored)
		silent(t, s)
	})
}

// Entries that somebody has removed although they are registered come back, and entries that
// are left over go.
func TestEntriesArePutRight(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		all[0].register("a:1")
		all[1].finds("a:1")
		key := ddata.NewKey[crdt.LWWMap[string, []byte]]("registry/mail")
		ctx := patience.Context(t)
		left := all[0].node.Member.Self().String() + "/99"
		_, err := ddata.Update(ctx, w.Nodes[1], key, ddata.Local(), func(at crdt.Origin, m crdt.LWWMap[string, []byte]) (crdt.LWWMap[string, []byte], error) {
			for place := range m.All() {
				m = m.Remove(place)
			}
			return m.Put(at, 1, left, []byte("\x0a\x01z\x10\x01")).Put(at, 1, "nonsense", nil), nil
		})
		require.NoError(t, err)
		for _, h := range all {
			h.finds("a:1")
		}
		require.EqualValues(t, 1, all[0].Stats().Restored)
		require.EqualValues(t, 1, all[0].Stats().Removed)
		require.NotZero(t, all[1].Stats().Malformed)

		require.NoError(t, ddata.Delete(ctx, w.Nodes[1], key, ddata.All()))
		require.Empty(t, all[0].find("mail"))
		all[1].finds("a:1")
	})
}

// A subscriber that does not read is told at last what there is, and how much it has missed.
func TestASubscriberThatDoesNotRead(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(2)
		all := onAll(w, w.Nodes...)
		ctx := patience.Context(t)
		s := all[1].Subscribe("mail")
		defer s.Close()
		silent(t, s)
		g := all[0].register("a:1")
		e := next(t, s)
		require.Equal(t, registry.Appeared, e.Kind)
		require.Equal(t, g.Entry(), e.Entry)
		for range 100 {
			require.NoError(t, g.Update(ctx, "a:2", map[string]string{"k": "v"}))
		}
		passing := all[0].register("p:1")
		all[1].finds("a:2", "p:1")
		require.NoError(t, passing.Close(ctx))
		all[1].finds("a:2")
		clustertest.Pass(time.Second)
		e = next(t, s)
		require.Equal(t, registry.Updated, e.Kind)
		require.EqualValues(t, 99, e.Missed)
		require.Equal(t, g.Entry(), e.Entry)
		silent(t, s)
		require.Equal(t, 1, all[1].Stats().Subscribers)
		s.Close()
		s.Close()
		_, err := s.Next(ctx)
		require.ErrorIs(t, err, registry.ErrClosed)
		require.Zero(t, all[1].Stats().Subscribers)
	})
}

// A node that does not hold the data registers, finds and subscribes through those that do.
func TestANodeWithoutData(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.DataOn(2)
		w.Start(3)
		all := onAll(w, w.Nodes...)
		away := all[2]
		s := away.Subscribe("mail")
		defer s.Close()
		g := away.register("c:1")
		require.Equal(t, registry.Appeared, next(t, s).Kind)
		all[0].register("a:1")
		require.Equal(t, "a:1", next(t, s).Entry.Address)
		all[1].finds("a:1", "c:1")
		ctx := patience.Context(t)
		require.NoError(t, g.Close(ctx))
		require.Equal(t, registry.Vanished, next(t, s).Kind)
		all[1].finds("a:1")
	})
}

// Faults of callers, and the end of the node.
func TestErrors(t *testing.T) {
	clustertest.InBubble(t, func(t *testing.T, w *clustertest.World) {
		w.Start(1)
		h := onAll(w, w.Nodes...)[0]
		_, err := registry.New(w.Nodes[0])
		require.ErrorIs(t, err, machine.ErrTaken)
		ctx := patience.Context(t)
		_, err = h.Register(ctx, registry.Entry{Name: "", Address: "a:1"})
		require.ErrorIs(t, err, registry.ErrEntry)
		var fault *field.Error
		require.ErrorAs(t, err, &fault)
		require.Equal(t, "name", fault.Key)
		_, err = h.Find(ctx, "")
		require.ErrorIs(t, err, registry.ErrEntry)
		_, err = h.Subscribe("\xff").Next(ctx)
		require.ErrorIs(t, err, registry.ErrEntry)

		_, err = ddata.Update(ctx, w.Nodes[0], ddata.NewKey[crdt.GCounter]("registry/count"), ddata.Local(),
			func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
		require.NoError(t, err)
		_, err = h.Register(ctx, registry.Entry{Name: "count", Address: "a:1"})
		var typed *ddata.TypeError
		require.ErrorAs(t, err, &typed)
		require.Zero(t, h.Stats().Registrations)

		g, s := h.register("a:1"), h.Subscribe("mail")
		require.ErrorIs(t, g.Update(ctx, "", nil), registry.ErrEntry)
		w.Close(w.Nodes[0])
		_, err = s.Next(ctx)
		require.ErrorIs(t, err, registry.ErrClosed)
		_, err = h.Register(ctx, registry.Entry{Name: "mail", Address: "a:2"})
		require.ErrorIs(t, err, registry.ErrClosed)
		require.ErrorIs(t, g.Update(ctx, "a:2", nil), ddata.ErrClosed)
	})
}
