// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembered_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/cluster/remembered"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
	"github.com/quorate/quorate/sharding/remember/remembertest"
)

func in(t testing.TB, n *cluster.Node) *remembered.Store {
	t.Helper()
	s, err := remembered.In(n, remembered.Default())
	require.NoError(t, err)
	return s
}

// The store keeps the contract, on nodes that change the same sets.
// covers F48.
func TestTheStoreKeepsTheContract(t *testing.T) {
	remembertest.Test(t, remembertest.Place{
		Owners: 30,
		Run: func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
		},
		New: func(t testing.TB) remembertest.Server {
			nodes := clustertest.Start(t, 3).Nodes()
			return remembertest.Server{Store: in(t, nodes[0].Node), Other: in(t, nodes[1].Node)}
		},
	})
}

// beacon is an entity that does nothing but run.
type beacon struct{}

func (beacon) Receive(c *sharding.Context, m *wrapperspb.StringValue) error {
	if m.GetValue() == "stop" {
		c.Passivate()
	}
	return c.Reply(m)
}

// Entities of a node that is killed run elsewhere without a message, and those that stopped themselves do not.
// covers F48, I28.
func TestEntitiesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		regions := map[*clustertest.Node]*sharding.Region[*wrapperspb.StringValue]{}
		c.OnEach(func(n *clustertest.Node) (err error) {
			regions[n], err = sharding.Start(n, sharding.Kind[*wrapperspb.StringValue]{
				Name: "beacon", Shards: 8, Remember: in(t, n.Node),
				New: func(*sharding.Context) sharding.Entity[*wrapperspb.StringValue] { return beacon{} },
			})
			return err
		})
		ask := func(id, what string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := sharding.Ask[*wrapperspb.StringValue](ctx, regions[c.Node(0)], id, wrapperspb.String(what))
			require.NoError(t, err)
		}
		for i := range 20 {
			ask(fmt.Sprint("b-", i), "run")
		}
		ask("b-7", "stop")
		c.Advance(5 * time.Second)
		c.Kill(c.Node(2))
		c.Await("all run on two nodes", func() error {
			n := 0
			for _, o := range c.Nodes() {
				if !o.Running() {
					continue
				}
				all, _, err := o.Sharding().Entities("beacon", 100)
				require.NoError(t, err)
				for _, e := range all {
					require.NotEqual(t, "b-7", e.ID)
				}
				n += len(all)
			}
			if n != 19 {
				return fmt.Errorf("%d entities run", n)
			}
			return nil
		})
	})
}

// While too few replicas answer nothing is confirmed, and the call ends with its context.
func TestWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		s, shard := in(t, c.Node(0).Node), remember.Shard{Kind: "k", Number: 1, Of: 12}
		set, _, err := s.Open(t.Context(), shard, epoch.Epoch{Born: 1, N: 1})
		require.NoError(t, err)
		c.Isolate(c.Node(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = set.Change(ctx, []string{"a"}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = s.Open(ctx, shard, epoch.Epoch{Born: 1, N: 1})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, remember.ErrFenced)
		c.Heal()
		_, ids, err := in(t, c.Node(1).Node).Open(t.Context(), shard, epoch.Epoch{Born: 1, N: 2})
		require.NoError(t, err)
		require.Subset(t, []string{"a"}, ids)
	})
}

// under returns the n-th epoch.
func under(n uint64) epoch.Epoch { return epoch.Epoch{Born: 1, N: n} }

// A claim that was not finished locks earlier owners out, and has nobody lose an id.
func TestAClaimThatWasNotFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		shard := remember.Shard{Kind: "k", Number: 1, Of: 12}
		first := in(t, c.Node(0).Node)
		set, _, err := first.Open(t.Context(), shard, under(1))
		require.NoError(t, err)
		ids := []string{"a", "b", "c", "d", "e", "f", "g"}
		require.NoError(t, set.Change(t.Context(), ids, nil))

		c.Isolate(c.Node(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = in(t, c.Node(1).Node).Open(ctx, shard, under(2))
		require.Error(t, err)
		c.Heal()
		c.Advance(10 * time.Second)
		require.ErrorIs(t, set.Change(t.Context(), ids, nil), remember.ErrFenced)
		_, _, err = first.Open(t.Context(), shard, under(1))
		require.ErrorIs(t, err, remember.ErrFenced)
		_, there, err := in(t, c.Node(2).Node).Open(t.Context(), shard, under(3))
		require.NoError(t, err)
		require.ElementsMatch(t, ids, there)
	})
}

// A node reads what a majority has, though it has not heard of it from the node that wrote that, and an owner that has
// not heard of the next one is told of it by what a majority has.
func TestOwnersThatDoNotHearOfEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		shard := remember.Shard{Kind: "k", Number: 1, Of: 12}
		early, _, err := in(t, c.Node(0).Node).Open(t.Context(), shard, under(1))
		require.NoError(t, err)
		c.Cut([]*clustertest.Node{c.Node(0)}, []*clustertest.Node{c.Node(1)})
		require.NoError(t, early.Change(t.Context(), []string{"a"}, nil))
		late, ids, err := in(t, c.Node(1).Node).Open(t.Context(), shard, under(2))
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, ids)
		require.ErrorIs(t, early.Change(t.Context(), []string{"b"}, []string{"a"}), remember.ErrFenced)
		require.NoError(t, late.Change(t.Context(), []string{"c"}, nil))
		_, ids, err = in(t, c.Node(2).Node).Open(t.Context(), shard, under(3))
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"a", "c"}, ids)
	})
}

// What was confirmed outlives the node that wrote it.
func TestWhatWasConfirmedOutlivesItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		shard := remember.Shard{Kind: "k", Number: 1, Of: 12}
		set, _, err := in(t, c.Node(0).Node).Open(t.Context(), shard, under(1))
		require.NoError(t, err)
		require.NoError(t, set.Change(t.Context(), []string{"a"}, nil))
		c.Kill(c.Node(0))
		_, ids, err := in(t, c.Node(1).Node).Open(t.Context(), shard, under(2))
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, ids)
	})
}

// The keys have nothing but the set of the last owner, however many there were.
func TestNothingIsLeftOfFormerOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		for n := range uint64(5) {
			set, _, err := in(t, c.Node(int(n%3)).Node).Open(t.Context(), remember.Shard{Kind: "k", Number: 1, Of: 12}, under(n+1))
			require.NoError(t, err)
			require.NoError(t, set.Change(t.Context(), []string{fmt.Sprint("id-", n)}, nil))
		}
		of := 0
		for i := range remembered.Default().Parts {
			key := ddata.NewKey[crdt.ORMap[string, crdt.ORSet[string]]](fmt.Sprint("remembered/k/12/1/", i))
			all, err := ddata.Get(t.Context(), c.Node(0), key, ddata.Majority())
			require.NoError(t, err)
			require.Equal(t, 1, all.Len())
			for _, ids := range all.All() {
				of += ids.Len()
			}
		}
		require.Equal(t, 5, of)
	})
}

// A set that has no room for more says which ids it does not remember, does all else, and changes hands all the
// same.
func TestASetThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig("ddata: {max-value-bytes: 4096}"))
		shard := remember.Shard{Kind: "k", Number: 1, Of: 12}
		store := func(n int) *remembered.Store {
			s, err := remembered.In(c.Node(n), remembered.Config{Prefix: "r/", Parts: 1})
			require.NoError(t, err)
			return s
		}
		set, _, err := store(0).Open(t.Context(), shard, under(1))
		require.NoError(t, err)
		there := map[string]bool{}
		for _, length := range []int{200, 50, 10, 3, 2, 1} {
			for i := range 1000 {
				id := fmt.Sprintf("%0*d", length, i)
				err := set.Change(t.Context(), []string{id}, nil)
				if full, ok := errors.AsType[*remember.FullError](err); ok {
					require.Equal(t, []string{id}, full.IDs)
					break
				}
				require.NoError(t, err)
				there[id] = true
			}
		}
		requireThere := func(ids []string) {
			t.Helper()
			require.ElementsMatch(t, slices.Collect(maps.Keys(there)), ids)
		}
		for n := range 6 {
			var ids []string
			set, ids, err = store(n%3).Open(t.Context(), shard, under(uint64(n+2)))
			require.NoError(t, err)
			requireThere(ids)
		}
		first := slices.Min(slices.Collect(maps.Keys(there)))
		huge := strings.Repeat("x", 512)
		full, ok := errors.AsType[*remember.FullError](set.Change(t.Context(), []string{huge}, []string{first}))
		require.True(t, ok)
		require.Equal(t, []string{huge}, full.IDs)
		delete(there, first)
		_, ids, err := store(0).Open(t.Context(), shard, under(9))
		require.NoError(t, err)
		requireThere(ids)
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	require.NoError(t, remembered.Default().Validate())
	for _, cfg := range []remembered.Config{{Parts: 5}, {Prefix: "x"}, {Prefix: "x", Parts: 65}, {Prefix: strings.Repeat("x", 257), Parts: 5}} {
		_, err := remembered.In(nil, cfg)
		require.Error(t, err)
	}
}
