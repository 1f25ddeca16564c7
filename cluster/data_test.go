// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// visits is a counter.
func visits(name string) ddata.Key[crdt.GCounter] { return ddata.NewKey[crdt.GCounter](name) }

// visit adds one to a counter.
func visit(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil }

// on gives a node a disk in memory.
func on(disk *store.Memory) cluster.Option {
	return cluster.WithStore(func(_ context.Context, _, name string) (store.Store, error) { return disk.Open(name) })
}

// shown decodes the answer of a route, which is in order.
func shown[T any](t *testing.T, node *cluster.Node, path string) (v T) {
	t.Helper()
	status, body := fetch(t, node, path)
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	return v
}

// tokenFile writes a file by which "secret" is the token of an operator.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "alice never %x\n", sha256.Sum256([]byte("secret"))), 0o600))
	return path
}

// acceptLoss asks a node, as an operator, to go on with what it holds of a group.
func acceptLoss(t *testing.T, node *cluster.Node, group, operation string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+node.ManagementAddress()+"/v1/data/accept-loss?group="+url.QueryEscape(group), http.NoBody)
	require.NoError(t, err)
	r.Header.Set(management.OperatorHeader, operation)
	r.Header.Set("Authorization", "Bearer secret")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// A node holds data without any settings, and shows over HTTP which groups of keys there
// are, which keys, what they hold, and why.
func TestANodeHoldsDataAndShowsIt(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, `management: {address: "127.0.0.1:0"}`)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	for _, name := range []string{"visits/home", "visits/a b", "other"} {
		_, err := ddata.Update(t.Context(), node, visits(name), ddata.Majority(), visit)
		require.NoError(t, err)
	}
	require.NoError(t, ddata.Delete(t.Context(), node, visits("other"), ddata.Majority()))

	groups := shown[cluster.DataGroups](t, node, "/v1/data")
	require.Equal(t, node.Self().String(), groups.Self)
	require.Len(t, groups.Groups, 1)
	all := groups.Groups[0]
	require.Equal(t, "all", all.Name)
	require.Equal(t, "stable", all.Phase)
	require.True(t, all.Holds && all.CaughtUp && all.Quorum && all.Sealed, "%+v", all)
	require.Equal(t, 2, all.Keys)
	require.Len(t, all.Replicas, 1)
	require.Equal(t, node.Self().String(), all.Replicas[0].Node)
	require.Equal(t, []string{"current"}, all.Replicas[0].Sets)

	keys := shown[cluster.DataKeys](t, node, "/v1/data/keys?prefix=visits/")
	require.Equal(t, []string{"visits/a b", "visits/home"}, keys.Keys)
	require.False(t, keys.More)
	keys = shown[cluster.DataKeys](t, node, "/v1/data/keys?prefix=visits/&limit=1")
	require.Len(t, keys.Keys, 1)
	require.True(t, keys.More)

	for _, query := range []string{"", "?consistency=local", "?consistency=majority"} {
		v := shown[ddata.Value](t, node, "/v1/data/keys/visits%2Fhome"+query)
		require.Equal(t, "live", v.State)
		require.Equal(t, "gcounter", v.Type)
		require.Equal(t, "1", v.Text)
		require.Len(t, v.Versions, 1)
	}
	require.Equal(t, "deleted", shown[ddata.Value](t, node, "/v1/data/keys/other").State)
	require.Equal(t, "absent", shown[ddata.Value](t, node, "/v1/data/keys/nothing").State)

	e := shown[ddata.Explanation](t, node, "/v1/data/explain?key="+url.QueryEscape("visits/a b"))
	require.True(t, e.Here)
	require.Equal(t, "live", e.State)
	require.Equal(t, []string{node.Self().String()}, e.Replicas)
	require.Len(t, e.Homes, 1)
	require.True(t, e.Homes[0].Answered)
	require.Empty(t, e.Homes[0].Lacks)
	require.Contains(t, shown[ddata.Explanation](t, node, "/v1/data/explain?key=other").Kept, "generation")

	for bad, status := range map[string]int{
		"/v1/data/explain": 400, "/v1/data/keys?limit=0": 400, "/v1/data/keys?limit=10001": 400, "/v1/data?x=1": 400,
		"/v1/data/keys/a?consistency=none": 400, "/v1/data/keys/%ff": 400, "/v1/data/accept-loss?group=all": 405,
	} {
		got, body := fetch(t, node, bad)
		require.Equal(t, status, got, "%s: %s", bad, body)
	}
}

// A loss is accepted by an operator who means it, and only if there is something to decide.
func TestALossIsNotAcceptedForNothing(t *testing.T) {
	t.Parallel()
	for operators, want := range map[string]string{"operators: {token-file: " + tokenFile(t) + "}": "enough replicas of the keys \\\"all\\\" are here to go on", "": "this node has no tokens"} {
		path, _ := lone(t, `management: {address: "127.0.0.1:0", `+operators+`}`)
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
		require.NoError(t, err)
		require.NoError(t, node.Data().AwaitReady(t.Context()))
		status, body := acceptLoss(t, node, "all", cluster.AcceptLossOperation)
		require.Equal(t, map[bool]int{true: http.StatusConflict, false: http.StatusUnauthorized}[operators != ""], status)
		require.Contains(t, body, want)
		status, body = acceptLoss(t, node, "al", cluster.AcceptLossOperation)
		if operators != "" {
			require.Equal(t, http.StatusConflict, status)
			require.Contains(t, body, `there is no group of keys \"al\", there are \"all\"`)
		}
		status, _ = acceptLoss(t, node, "all", "another")
		require.Equal(t, http.StatusForbidden, status, "it is not meant")
		require.NoError(t, node.Close())
	}
}

// A node that comes back alone with its disk, on which the group has three replicas, confirms
// nothing by a majority until an operator has accepted the loss over the route; then the keys are
// there, and are written.
// covers F50, I16.
func TestALossIsAcceptedOverTheRoute(t *testing.T) {
	t.Parallel()
	const durable = "ddata: {durable: [visits/*], dir: data}"
	disk := store.NewMemory(rand.NewPCG(1, 2))
	image := imageOfThree(t, disk, durable)

	disk = store.NewMemory(rand.NewPCG(3, 4))
	disk.Restore(image)
	path, _ := lone(t, durable, `management: {address: "127.0.0.1:0", operators: {token-file: `+tokenFile(t)+`}}`)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), on(disk))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	durables := func() ddata.Group {
		groups := shown[cluster.DataGroups](t, node, "/v1/data").Groups
		return groups[slices.IndexFunc(groups, func(g ddata.Group) bool { return g.Name == "durable" })]
	}
	patience.Eventually(t, func() bool { return len(durables().Replicas) == 3 && !durables().Quorum }, "the three are known, and two lost")
	ctx := patience.Expiring(t, time.Second) // The disks of durable keys may come back.
	_, err = ddata.Get(ctx, node, visits("visits/home"), ddata.Majority())
	_, lost := errors.AsType[*ddata.NoQuorumError](err)
	require.True(t, lost, "%v", err)

	status, body := acceptLoss(t, node, "durable", cluster.AcceptLossOperation)
	require.Equal(t, http.StatusOK, status, body)
	patience.Eventually(t, func() bool { return durables().Quorum && len(durables().Replicas) == 1 }, "it goes on alone")
	v, err := ddata.Update(t.Context(), node, visits("visits/home"), ddata.Majority(), visit)
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Value())
}

// imageOfThree returns what is on the first disk of three nodes that hold a counter of 1.
func imageOfThree(t *testing.T, disk *store.Memory, durable string) store.Image {
	t.Helper()
	first := free(t)
	disks := []*store.Memory{disk, store.NewMemory(rand.NewPCG(5, 6)), store.NewMemory(rand.NewPCG(7, 8))}
	var nodes []*cluster.Node
	for i, d := range disks {
		address := first
		if i > 0 {
			address = free(t)
		}
		path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", "membership: {seed-nodes: ["+first+"]}", durable)
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), on(d))...)
		require.NoError(t, err)
		defer func() { require.NoError(t, node.Close()) }()
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		require.NoError(t, node.AwaitUp(t.Context()))
	}
	three := func() bool {
		groups, err := nodes[0].Data().Groups(t.Context())
		at := slices.IndexFunc(groups, func(g ddata.Group) bool { return g.Name == "durable" })
		return err == nil && len(groups[at].Replicas) == 3 && groups[at].Phase == "stable"
	}
	patience.Eventually(t, three, "three hold the durable keys")
	_, err := ddata.Update(t.Context(), nodes[0], visits("visits/home"), ddata.All(), visit)
	require.NoError(t, err)
	return disk.Image()
}

// Durable keys outlive the node, in the directory that the file names.
func TestDurableKeysOutliveTheNode(t *testing.T) {
	t.Parallel()
	disk := store.NewMemory(rand.NewPCG(1, 2))
	path, _ := lone(t, "ddata: {durable: [visits/*], dir: data}")
	for want := range uint64(2) {
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), on(disk))...)
		require.NoError(t, err)
		v, err := ddata.Update(t.Context(), node, visits("visits/home"), ddata.Majority(), visit)
		require.NoError(t, err)
		require.Equal(t, want+1, v.Value())
		require.NoError(t, node.Close())
	}
}

// A file with durable keys is refused by a program that did not link a store, and without a
// directory for them, unless the node does not hold the keys.
func TestDurableKeysNeedAStoreAndADirectory(t *testing.T) {
	disk := on(store.NewMemory(rand.NewPCG(1, 2)))
	path, _ := lone(t, "ddata: {durable: [a], dir: data}")
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	want := path + ":4: ddata.durable: the store of durable keys is not part of this program: import github.com/quorate/quorate/ddata/durable, " +
		"and start the node with the option cluster.WithStore(durable.OpenIn)"
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.EqualError(t, err, want)
	require.EqualError(t, cluster.Check(cluster.Extensions{}, path), want)
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{disk}}, path))

	path, _ = lone(t, "ddata:", "  groups:", "    - {prefix: b/, replicas: 2}", "    - {prefix: a/, durable: true}")
	err = cluster.Check(cluster.Extensions{}, path)
	require.ErrorContains(t, err, ":7: ddata.groups[1].durable: the store of durable keys is not part of this program")
	require.ErrorContains(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{disk}}, path), ":7: ddata.groups[1].durable: durable keys need a directory: set node.data-dir, or ddata.dir")

	path, _ = lone(t, "ddata: {durable: [a], role: keeper}")
	require.NoError(t, cluster.Check(cluster.Extensions{}, path), "this node holds no data")
	path, _ = lone(t, "ddata: {max-bytes: 1, sweep-interval: 0s, durabel: [a]}")
	err = cluster.Check(cluster.Extensions{}, path)
	require.ErrorContains(t, err, `:4: ddata.durabel: unknown key; did you mean "durable"?`)
}
