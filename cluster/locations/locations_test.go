// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locations_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/locations"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/sharding"
)

// Clusters in virtual time whose shards follow the map: what is set on any node is where shards come to
// live, over the loss of nodes, partitions and the end of the whole cluster; and what nobody can set.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silent is an entity.
type silent struct{}

func (silent) Receive(*sharding.Context, *wrapperspb.Int64Value) error { return nil }

const kind = "order"

// orders returns the kind with a number of shards.
func orders(shards int) sharding.Kind[*wrapperspb.Int64Value] {
	return sharding.Kind[*wrapperspb.Int64Value]{
		Name: kind, Shards: shards,
		New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return silent{} },
	}
}

const follows = "sharding: {allocation: {strategy: external}}"

// begin starts a cluster that follows the map, with a kind.
func begin(t *testing.T, nodes, shards int, opts ...clustertest.Option) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Start(t, nodes, append([]clustertest.Option{clustertest.WithConfig(follows)}, opts...)...)
	clustertest.StartKind(c, orders(shards))
	return c
}

// awaitAt waits until shards live at addresses, as a node that runs knows.
func awaitAt(c *clustertest.Cluster, at map[allocation.Shard]string) {
	c.Await("the shards are at their locations", func() error {
		shards, err := c.Nodes()[0].Sharding().Shards(kind)
		if err != nil {
			return err
		}
		for shard, address := range at {
			if home := shards[shard].Home; !strings.HasPrefix(home, address+"#") {
				return fmt.Errorf("shard %d lives at %q and not at %s", shard, home, address)
			}
		}
		return nil
	})
}

// everyOther returns locations of the shards below a number: at the nodes in turn.
func everyOther(shards int, nodes ...*clustertest.Node) map[allocation.Shard]string {
	at := map[allocation.Shard]string{}
	for s := range shards {
		at[allocation.Shard(s)] = nodes[s%len(nodes)].Address()
	}
	return at
}

// A program on any node says where shards live: they move there, and back, and what is said of them any
// node tells. The decisions name the location as their reason.
func TestShardsLiveWhereAProgramSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 3, 20)
		at := everyOther(20, c.Nodes()...)
		require.NoError(t, c.Node(2).Locations().Set(t.Context(), kind, at))
		awaitAt(c, at)
		at[0], at[5] = c.Node(1).Address(), c.Node(1).Address()
		require.NoError(t, c.Node(1).Locations().Set(t.Context(), kind, map[allocation.Shard]string{0: at[0], 5: at[5]}))
		awaitAt(c, at)
		for _, n := range c.Nodes() {
			got, err := n.Locations().Get(t.Context(), kind)
			require.NoError(t, err)
			require.Equal(t, at, got)
		}
		x, err := c.Node(0).Sharding().ExplainShard(t.Context(), kind, 5)
		require.NoError(t, err)
		require.Contains(t, x.Decision, "external: its location is there")

		require.NoError(t, c.Node(0).Locations().Clear(t.Context(), kind, 5))
		delete(at, 5)
		got, err := c.Node(2).Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, at, got)
		require.NoError(t, c.Node(0).Locations().Clear(t.Context(), kind))
		got, err = c.Node(2).Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Empty(t, got)
		c.Advance(time.Minute)
		awaitAt(c, map[allocation.Shard]string{5: c.Node(1).Address()}) // Without a location a shard stays.
	})
}

// While the node of a location is gone, its shards live elsewhere; when it is back, they return.
func TestLocationsOfANodeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 4, 12)
		lost := c.Node(3)
		at := everyOther(12, lost)
		require.NoError(t, c.Node(0).Locations().Set(t.Context(), kind, at))
		awaitAt(c, at)
		c.Kill(lost)
		c.AwaitConverged()
		region := clustertest.StartKind(c, sharding.Kind[*wrapperspb.Int64Value]{Name: "other", New: orders(1).New}).Any()
		require.NoError(t, region.Tell(t.Context(), "a", wrapperspb.Int64(1)))
		c.Await("all shards have other homes", func() error {
			shards, err := c.Node(0).Sharding().Shards(kind)
			for _, s := range shards {
				if s.Home == lost.Self().String() {
					return fmt.Errorf("shard %d is at the lost node", s.Shard)
				}
			}
			return err
		})
		got, err := c.Node(1).Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, at, got, "nobody has said that the node does not come back")
		back := c.Add(clustertest.WithAddress(lost.Address()))
		c.AwaitConverged()
		require.Equal(t, lost.Address(), back.Address())
		awaitAt(c, at)
	})
}

// The locations outlive the end of all nodes when their keys are durable, and shards begin where they should live.
func TestDurableLocationsOutliveTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := map[string]*store.Memory{}
		durable := clustertest.WithConfig("ddata: {durable: ['sharding/locations/*'], dir: nowhere}")
		disk := func(address string) clustertest.Option {
			if disks[address] == nil {
				disks[address] = store.NewMemory(rand.NewPCG(1, uint64(len(disks))))
			}
			return clustertest.WithOptions(cluster.WithStore(func(_ context.Context, _, name string) (store.Store, error) { return disks[address].Open(name) }))
		}
		c := begin(t, 1, 12, durable, disk("10.0.0.1:7946"))
		c.Add(disk("10.0.0.2:7946"))
		c.AwaitConverged()
		at := everyOther(12, c.Nodes()...)
		require.NoError(t, c.Node(1).Locations().Set(t.Context(), kind, at))
		awaitAt(c, at)
		for _, n := range c.Nodes() {
			c.Kill(n)
		}
		c.Add(clustertest.WithAddress("10.0.0.1:7946"), disk("10.0.0.1:7946"))
		c.Add(clustertest.WithAddress("10.0.0.2:7946"), disk("10.0.0.2:7946"))
		c.AwaitConverged()
		got, err := c.Nodes()[0].Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, at, got)
		awaitAt(c, at)
	})
}

// On the side of a minority nothing is confirmed, within the time of the caller and with the shards
// by name; once the network is whole the same call succeeds.
func TestNothingIsConfirmedWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 3, 2500)
		few := c.Node(0)
		c.Isolate(few)
		began, at := time.Now(), map[allocation.Shard]string{7: few.Address(), 2400: few.Address()}
		err := few.Locations().Set(t.Context(), kind, at)
		unconfirmed := (*locations.UnconfirmedError)(nil)
		require.ErrorAs(t, err, &unconfirmed)
		require.Equal(t, []allocation.Shard{7, 2400}, unconfirmed.Shards)
		require.Equal(t, kind, unconfirmed.Kind)
		require.Contains(t, err.Error(), "2 shards, the first of them 7, are not confirmed, repeat the call: ")
		require.LessOrEqual(t, time.Since(began), locations.Limit+time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = few.Locations().Get(ctx, kind)
		unread := (*locations.UnreadError)(nil)
		require.ErrorAs(t, err, &unread)
		require.Contains(t, err.Error(), `kind "order": cannot be read`)
		require.Error(t, errors.Unwrap(err))
		c.Heal()
		c.Await("the call succeeds", func() error { return c.Nodes()[0].Locations().Set(t.Context(), kind, at) })
	})
}

// A call whose node is cut off between its read and its write is not confirmed. What is said afterwards on another node
// stands, also where a majority has that already: the earlier write, which comes through when the network is whole,
// does not win over it.
func TestARepeatedLocationWinsOverAnEarlierUnconfirmedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 3, 20)
		few, others := c.Node(2), c.Node(0)
		at := map[allocation.Shard]string{7: others.Address()}
		require.NoError(t, others.Locations().Set(t.Context(), kind, at))
		c.Isolate(few)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := ddata.Update(ctx, few, ddata.NewKey[crdt.LWWMap[string, string]](locations.Prefix+"0/"+kind), ddata.Majority(),
			func(by crdt.Origin, m crdt.LWWMap[string, string]) (crdt.LWWMap[string, string], error) {
				return m.Put(by, time.Now().UnixNano(), "7", few.Address()), nil
			})
		require.Error(t, err)
		require.NoError(t, others.Locations().Set(t.Context(), kind, at))
		c.Heal()
		c.AwaitConverged()
		c.Advance(10 * time.Second)
		for _, n := range c.Nodes() {
			got, err := n.Locations().Get(t.Context(), kind)
			require.NoError(t, err)
			require.Equal(t, at, got, n.Address())
		}
	})
}

// A location that cannot be is refused before anything changes.
func TestLocationsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 1, 20)
		where := c.Node(0).Locations()
		for name, bad := range map[string]struct {
			kind  string
			shard allocation.Shard
			at    string
			says  string
		}{
			"no kind":       {"", 1, "10.0.0.1:7946", "1 to 128 bytes"},
			"a long kind":   {strings.Repeat("k", 129), 1, "10.0.0.1:7946", "1 to 128 bytes"},
			"no text":       {"\xff", 1, "10.0.0.1:7946", "of UTF-8"},
			"unknown kind":  {"ordre", 1, "10.0.0.1:7946", `kind "ordre" does not run on this node`},
			"no such shard": {kind, 20, "10.0.0.1:7946", "those from 0 to 19"},
			"far too high":  {kind, 1 << 31, "10.0.0.1:7946", "those from 0 to 19"},
			"no port":       {kind, 1, "10.0.0.1", "has no port"},
			"a node id":     {kind, 1, "10.0.0.1:7946#1f", "port is not a number"},
			"anywhere":      {kind, 1, "0.0.0.0:7946", "0.0.0.0"},
		} {
			err := where.Set(t.Context(), bad.kind, map[allocation.Shard]string{3: "10.0.0.9:1", bad.shard: bad.at})
			require.ErrorIs(t, err, locations.ErrInvalid, name)
			require.ErrorContains(t, err, bad.says, name)
		}
		require.ErrorIs(t, where.Clear(t.Context(), kind, 65_536), locations.ErrInvalid)
		require.ErrorIs(t, where.Clear(t.Context(), ""), locations.ErrInvalid)
		_, err := where.Get(t.Context(), "")
		require.ErrorIs(t, err, locations.ErrInvalid)
		_, err = where.Known(t.Context(), "")
		require.ErrorIs(t, err, locations.ErrInvalid)
		_, err = where.Location(t.Context(), "", 1)
		require.ErrorIs(t, err, locations.ErrInvalid)
		_, err = where.Strategy(allocation.RebalanceLimits{})
		require.ErrorContains(t, err, "rebalance-relative-limit")
		got, err := where.Get(t.Context(), kind)
		require.NoError(t, err)
		require.Empty(t, got)
		require.NoError(t, where.Set(t.Context(), kind, nil))
		require.NoError(t, where.Clear(t.Context(), "a kind that is no more"))
	})
}

// What somebody has written into a key by himself and is no location does no harm.
func TestForeignNamesAreNoLocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 1, 20)
		_, err := ddata.Update(t.Context(), c.Node(0), ddata.NewKey[crdt.LWWMap[string, string]](locations.Prefix+"0/"+kind), ddata.Majority(),
			func(at crdt.Origin, m crdt.LWWMap[string, string]) (crdt.LWWMap[string, string], error) {
				for i, name := range []string{"x", "", "-1", "007", "1024", "99999999999", "4"} {
					m = m.Put(at, int64(i), name, "10.0.0.1:7946")
				}
				return m, nil
			})
		require.NoError(t, err)
		got, err := c.Node(0).Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, map[allocation.Shard]string{4: "10.0.0.1:7946"}, got)
	})
}

// A node that holds no data follows the map as well, and so does one that is started with another strategy
// and changes to it.
func TestNodesWithoutDataFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t, 1, 12, clustertest.WithConfig("ddata: {role: data}"))
		c.Add(clustertest.WithRoles("data"))
		c.AwaitConverged()
		at := everyOther(12, c.Nodes()...)
		require.NoError(t, c.Node(0).Locations().Set(t.Context(), kind, at))
		awaitAt(c, at)
		got, err := c.Node(0).Locations().Known(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, at, got)
		one, err := c.Node(0).Locations().Location(t.Context(), kind, 3)
		require.NoError(t, err)
		require.Equal(t, at[3], one)
	})
}

// As many locations as a large cluster has are set at once, and to set the same again writes nothing.
func TestTensOfThousandsOfLocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 50_000
		c := begin(t, 2, shards)
		at := everyOther(shards, c.Nodes()...)
		require.NoError(t, c.Node(0).Locations().Set(t.Context(), kind, at))
		got, err := c.Node(1).Locations().Get(t.Context(), kind)
		require.NoError(t, err)
		require.Equal(t, at, got)
		before := bytesOf(t, c.Node(0))
		require.Less(t, before, int64(12<<20))
		x, err := c.Node(0).Data().Explain(t.Context(), locations.Prefix+"3/"+kind)
		require.NoError(t, err)
		require.NoError(t, c.Node(1).Locations().Set(t.Context(), kind, at))
		again, err := c.Node(0).Data().Explain(t.Context(), locations.Prefix+"3/"+kind)
		require.NoError(t, err)
		require.Equal(t, x.Versions, again.Versions)
		t.Logf("%d locations take %d bytes on each node", shards, before)
	})
}

// bytesOf returns how much memory the data of a node takes.
func bytesOf(t *testing.T, n *clustertest.Node) (sum int64) {
	t.Helper()
	groups, err := n.Data().Groups(t.Context())
	require.NoError(t, err)
	for _, g := range groups {
		sum += g.Bytes
	}
	return sum
}
