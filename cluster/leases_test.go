// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Nodes whose downing strategy is lease-majority: two with leases in files, of which one ends;
// then configurations that are checked, a store of the program (safe), and files that are
// changed while a node runs.

// fast are settings with which a node that ends is decided about within some seconds.
const fast = "failure-detector: {heartbeat-interval: 250ms, acceptable-heartbeat-pause: 750ms, max-silence: 1250ms, expected-response-after: 250ms}, fence: 1s"

// The node that is left has half of the votes, and goes on by the lease. It says so with the
// token, to everybody who asks.
func TestANodeGoesOnByALease(t *testing.T) {
	t.Parallel()
	leases := filepath.Join(t.TempDir(), "leases")
	first, second := free(t), free(t)
	start := func(address string) *cluster.Node {
		path := file(t, "cluster: {name: test}", "node: {address: "+address+"}",
			"membership: {seed-nodes: ["+first+"], "+fast+"}",
			"downing: {strategy: lease-majority, lease-majority: {store: file, lease-name: bank, minority-delay: 100ms}}",
			"lease-file: {directory: "+leases+"}")
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, node.Close()) })
		return node
	}
	ctx := patience.Context(t)
	one := start(first)
	require.NoError(t, one.AwaitUp(ctx))
	two := start(second)
	require.NoError(t, two.AwaitUp(ctx))
	register := one.Membership().State().Downing()
	require.Equal(t, `store="file" lease-name="bank" role="" minority-delay=100ms release-after=40s`, register.Parameters)
	require.False(t, register.MajorityOnly)
	sub := one.Membership().Subscribe()
	defer sub.Close()
	require.NoError(t, two.Membership().Close())
	for len(one.Membership().State().Members()) > 1 {
		_, err := sub.Next(ctx)
		require.NoError(t, err)
	}
	decided := one.Membership().Decisions().Of("downing")
	i := slices.IndexFunc(decided, func(d membership.Decision) bool { return d.Verdict == "keep-side" })
	require.GreaterOrEqual(t, i, 0, "%v", decided)
	require.Contains(t, decided[i].Reason, `the lease "bank" at file, token 1`)
}

// vault is the section of a store of the program.
type vault struct {
	Door string `koanf:"door"`
}

// Validate refuses a vault without a door.
func (v vault) Validate() error {
	if v.Door == "" {
		return field.Errorf("door", "none given")
	}
	return nil
}

// safe is a store of the program, which has to be closed.
type safe struct {
	*memory.Store
	closed *atomic.Int32
}

func (s safe) Close() error {
	s.closed.Add(1)
	return nil
}

func safes(leases *memory.Store, closed *atomic.Int32) cluster.Option {
	return cluster.WithLeases("vault", vault{}, func(v vault) (lease.Store, error) {
		if v.Door == "jammed" {
			return nil, errors.New("the door is jammed")
		}
		return safe{leases, closed}, nil
	})
}

func TestStoresOfLeasesAreChecked(t *testing.T) {
	own := cluster.Extensions{Options: []cluster.Option{safes(memory.New(), new(atomic.Int32))}}
	const name, here = "cluster: {name: test}", "node: {address: 127.0.0.1:7946}"
	chosen := func(more string) string {
		return "downing: {strategy: lease-majority, lease-majority: {" + more + "}}"
	}
	for what, test := range map[string]struct {
		own   cluster.Extensions
		lines []string
		want  string
	}{
		"another strategy": {own, []string{"downing: {lease-majority: {store: vault}}", "lease-vault: {leaf: 1}"}, ""},
		"without a store":  {own, []string{chosen("lease-name: bank")}, `:3: downing.lease-majority.store: must be set for lease-majority: file, etcd or kubernetes`},
		"without a name":   {own, []string{chosen("store: vault"), "lease-vault: {door: left}"}, `:3: downing.lease-majority.lease-name: must be set for lease-majority`},
		"a bad name":       {own, []string{chosen("store: vault, lease-name: Bank"), "lease-vault: {door: left}"}, `downing.lease-majority.lease-name: "Bank" is no name of a lease`},
		"a store of the program": {
			own, []string{chosen("store: vault, lease-name: bank"), "lease-vault: {door: left}"}, "",
		},
		"without a door":      {own, []string{chosen("store: vault, lease-name: bank")}, "lease-vault.door: none given"},
		"unknown key":         {own, []string{chosen("store: vault, lease-name: bank"), "lease-vault: {doro: left}"}, `:4: lease-vault.doro: unknown key; did you mean "door"?`},
		"file":                {cluster.Extensions{}, []string{chosen("store: file, lease-name: bank"), "lease-file: {directory: leases}"}, ""},
		"file, no directory":  {cluster.Extensions{}, []string{chosen("store: file, lease-name: bank")}, "lease-file.directory: must be set: a directory on a local disk"},
		"not linked":          {cluster.Extensions{}, []string{chosen("store: etcd, lease-name: bank")}, `:3: downing.lease-majority.store: the store "etcd" is not part of this program, which links "file": if it is a store of this project, import github.com/quorate/quorate/downing/lease/etcd, and start the node with the option cluster.WithLeases(etcd.Kind,`},
		"unknown":             {cluster.Extensions{Whole: true}, []string{chosen("store: ectd, lease-name: bank")}, `:3: downing.lease-majority.store: the store "ectd" is unknown, there are "file"; a store of the program itself is given to config check by --own`},
		"of shards":           {own, []string{"sharding: {leases: {store: vault}}", "lease-vault: {door: left}"}, ""},
		"of shards, not set":  {own, []string{"sharding: {leases: {store: vault}}"}, "lease-vault.door: none given"},
		"of shards, unknown":  {cluster.Extensions{}, []string{"sharding: {leases: {store: etcd}}"}, `:3: sharding.leases.store: the store "etcd" is not part of this program`},
		"of shards, too long": {own, []string{"sharding: {leases: {ttl: 10m}}"}, ":3: sharding.leases.ttl: 10m0s is not from 3s to 5m"},
		"told of":             {cluster.Extensions{Strategies: []string{"chest"}}, []string{chosen("store: chest, lease-name: bank")}, ""},
		"too short":           {own, []string{chosen("store: vault, lease-name: bank, release-after: 10s"), "lease-vault: {door: left}"}, ":3: downing.lease-majority.release-after: 10s is not from 30s to 5m"},
		"a plugin's name":     {own, []string{"plugins: {lease-majority: {policy: downing, path: /bin/x, unpinned: true}}"}, "plugins.lease-majority: is the name of a built-in strategy"},
		"not the only fault":  {own, []string{chosen("store: vault, minority-delay: 9s"), "lease-vault: {}"}, "downing.lease-majority.minority-delay: 9s is not from 0s to 3s"},
		"reports, and checks": {own, []string{"downing: {strategy: lease-majority, mode: report}"}, "downing.lease-majority.store: must be set"},
	} {
		t.Run(what, func(t *testing.T) {
			err := cluster.Check(test.own, file(t, append([]string{name, here}, test.lines...)...))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorAs(t, err, new(config.Errors))
			require.ErrorContains(t, err, test.want)
		})
	}
	t.Setenv("QUORATE_DOWNING__STRATEGY", "lease-majority")
	t.Setenv("QUORATE_DOWNING__LEASE_MAJORITY__STORE", "vault")
	require.ErrorContains(t, cluster.Check(own, file(t, name, here)), "lease-vault.door: none given")
}

// A store that cannot be opened refuses the start, one that is down does not: it is not asked
// before something has to be decided. It is closed with the node.
func TestAStoreThatIsDownLetsANodeStart(t *testing.T) {
	t.Parallel()
	leases, closed := memory.New(), new(atomic.Int32)
	leases.Fail(errors.New("no route to host"))
	const downs = "downing: {strategy: lease-majority, lease-majority: {store: vault, lease-name: bank}}"
	path, _ := lone(t, downs, "lease-vault: {door: jammed}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), safes(leases, closed))...)
	require.ErrorContains(t, err, "cluster: lease-vault: the door is jammed")
	path, _ = lone(t, downs, "lease-vault: {door: left}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), safes(leases, closed))...)
	require.NoError(t, err)
	ctx := patience.Context(t)
	require.NoError(t, node.AwaitUp(ctx))
	require.NoError(t, node.Close())
	require.EqualValues(t, 1, closed.Load())
}

// The store that sharding.leases names gives the shards of the node their leases, and is closed with it.
func TestShardsHaveLeasesByTheFile(t *testing.T) {
	t.Parallel()
	leases, closed := memory.New(), new(atomic.Int32)
	path, _ := lone(t, "sharding: {leases: {store: vault, ttl: 30s}}", "lease-vault: {door: jammed}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), safes(leases, closed))...)
	require.ErrorContains(t, err, "cluster: lease-vault: the door is jammed")
	path, _ = lone(t, "sharding: {leases: {store: vault, ttl: 30s}}", "lease-vault: {door: left}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), safes(leases, closed))...)
	require.NoError(t, err)
	ctx := patience.Context(t)
	tokens, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "token", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return holder{} },
	})
	require.NoError(t, err)
	answer, err := sharding.Ask[*wrapperspb.Int64Value](ctx, tokens, "one", wrapperspb.Int64(0))
	require.NoError(t, err)
	require.EqualValues(t, 1, answer.GetValue())
	require.NoError(t, node.Close())
	require.EqualValues(t, 1, closed.Load())
}

// holder is an entity that answers with the token of the lease of its shard, which it must have.
type holder struct{}

func (holder) Receive(c *sharding.Context, _ *wrapperspb.Int64Value) error {
	token, held := c.LeaseToken()
	if !held {
		return errors.New("no lease")
	}
	return c.Reply(wrapperspb.Int64(int64(token)))
}

// Each strategy is taken over by a reload of the file, with its parameters, its mode and, if it
// needs one, its store.
func TestTheDowningStrategyIsReloaded(t *testing.T) {
	t.Parallel()
	leases, closed := memory.New(), new(atomic.Int32)
	node, _, change := changeable(t, false, safes(leases, closed))
	ctx := patience.Context(t)
	require.NoError(t, node.AwaitUp(ctx))
	sub := node.Membership().Subscribe()
	defer sub.Close()
	for _, step := range []struct{ downing, vault, name, parameters string }{
		{"strategy: static-quorum, static-quorum: {quorum-size: 1}", "", "static-quorum", `quorum-size=1 role=""`},
		{"strategy: static-quorum, static-quorum: {quorum-size: 2, role: core}", "", "static-quorum", `quorum-size=2 role="core"`},
		{
			"strategy: lease-majority, lease-majority: {store: vault, lease-name: bank}", "lease-vault: {door: left}",
			"lease-majority", `store="vault" lease-name="bank" role="" minority-delay=2s release-after=40s`,
		},
		{
			"strategy: lease-majority, lease-majority: {store: vault, lease-name: bank, role: core, release-after: 60s}", "lease-vault: {door: left}",
			"lease-majority", `store="vault" lease-name="bank" role="core" minority-delay=2s release-after=1m0s`,
		},
		{"strategy: keep-oldest, keep-oldest: {down-if-alone: false}, mode: report", "", "keep-oldest", `mode=report down-if-alone=false role=""`},
		{"strategy: manual", "", "manual", ""},
		{"strategy: keep-majority", "", "keep-majority", ""},
	} {
		change("downing: {"+step.downing+"}", step.vault)
		require.NoError(t, node.Reload(ctx), step.downing)
		for {
			r := node.Membership().State().Downing()
			if r.Name == step.name && r.Parameters == step.parameters {
				break
			}
			_, err := sub.Next(ctx)
			require.NoError(t, err, "%s: it is %s (%s)", step.downing, r.Name, r.Parameters)
		}
	}
	change("downing: {strategy: lease-majority, lease-majority: {store: vault}}", "lease-vault: {door: left}")
	require.ErrorContains(t, node.Reload(ctx), "downing.lease-majority.lease-name: must be set")
	change("downing: {strategy: lease-majority, lease-majority: {store: vault, lease-name: bank}}", "lease-vault: {door: jammed}")
	require.ErrorContains(t, node.Reload(ctx), "the door is jammed")
	require.True(t, strings.HasPrefix(node.Membership().State().Downing().Name, "keep-majority"))
	require.NoError(t, node.Close())
	require.EqualValues(t, 2, closed.Load(), "each store that was opened is closed, once")
}
