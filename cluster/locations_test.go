// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// How operators and controllers in other processes say where shards should live, what a node shows of it,
// and how the file chooses that it is followed.

// say has an operator send a body.
func (o *operated) say(path, operation, token, body string) (status int, answer string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "http://"+o.node.ManagementAddress()+path, strings.NewReader(body))
	require.NoError(o.t, err)
	r.Header.Set(management.OperatorHeader, operation)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(o.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(o.t, err)
	return response.StatusCode, string(text)
}

// external starts a node whose strategy the file says, with a kind.
func external(t *testing.T) *operated {
	t.Helper()
	o := operate(t)
	_, err := sharding.Start(o.node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", Shards: 20, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	o.write("strategy: mover}", "strategy: external}")
	require.NoError(t, o.node.Reload(t.Context()))
	return o
}

func TestAControllerSteersOverHTTP(t *testing.T) {
	t.Parallel()
	o := external(t)
	self, address := o.node.Self().String(), o.node.Self().Address.String()
	const path = "/v1/kinds/counter/locations"
	body := fmt.Sprintf(`{"locations":[{"shard":3,"node":%q},{"shard":7,"node":"10.0.0.9:7946"}]}`, address)
	status, text := o.say(path+"/set", cluster.SetLocationsOperation, "guess", body)
	require.Equal(t, http.StatusUnauthorized, status, text)
	status, text = o.say(path+"/set", cluster.SetLocationsOperation, "secret", body)
	require.Equal(t, http.StatusOK, status, text)
	var changed cluster.LocationsChanged
	require.NoError(t, json.Unmarshal([]byte(text), &changed))
	require.Equal(t, cluster.LocationsChanged{Self: self, Kind: "counter", Shards: 2, Followed: true}, changed)
	require.Equal(t, "management|/v1/kinds/counter/locations/set|set-locations|asked for by token of alice", o.last())

	var list cluster.LocationList
	require.Equal(t, http.StatusOK, o.get(path, &list))
	require.True(t, list.Followed)
	require.Len(t, list.Locations, 2)
	require.Equal(t, 3, list.Locations[0].Shard)
	require.True(t, list.Locations[0].Member)
	require.Equal(t, "10.0.0.9:7946", list.Locations[1].Node)
	require.False(t, list.Locations[1].Member)

	region, err := sharding.Start(o.node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "late", Shards: 20, New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	_, err = sharding.Ask[*wrapperspb.Int64Value](t.Context(), region, "a", wrapperspb.Int64(1))
	require.NoError(t, err)
	var shards cluster.ShardList
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/shards", &shards))
	require.Equal(t, "10.0.0.9:7946", shards.Locations[7])
	require.Empty(t, shards.LocationsUnread)
	var x management.Explanation
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/shards/7", &x))
	require.Contains(t, x.Pending, "its location is 10.0.0.9:7946, and no member has that address: it moves when one has")

	status, text = o.say(path+"/clear", cluster.ClearLocationsOperation, "secret", "")
	require.Equal(t, http.StatusOK, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &changed))
	require.Equal(t, 2, changed.Shards)
	require.Equal(t, http.StatusOK, o.get(path, &list))
	require.Empty(t, list.Locations)
	status, text = o.say("/v1/kinds/gone/locations/clear", cluster.ClearLocationsOperation, "secret", "")
	require.Equal(t, http.StatusOK, status, text)

	// Another strategy follows nothing, and the node says so.
	o.write("strategy: external}", "strategy: least-shard}")
	require.NoError(t, o.node.Reload(t.Context()))
	require.Equal(t, http.StatusOK, o.get(path, &list))
	require.False(t, list.Followed)
}

// What a controller says wrong changes nothing, and the answer says what is wrong.
func TestAControllerThatIsWrong(t *testing.T) {
	t.Parallel()
	o := external(t)
	const path = "/v1/kinds/counter/locations/set"
	for body, says := range map[string]string{
		``:                 "the body is not",
		`{"locations":[]}`: "names no location",
		`{"location":[{"shard":1,"node":"a:1"}]}`:                              "unknown field",
		`{"locations":[{"shard":1,"at":"a:1"}]}`:                               "unknown field",
		`{"locations":[{"shard":1,"node":"a:1"}]}{}`:                           "goes on behind its end",
		`{"locations":[{"shard":-1,"node":"a:1"}]}`:                            "there is no such shard",
		`{"locations":[{"shard":4294967297,"node":"a:1"}]}`:                    "there is no such shard",
		`{"locations":[{"shard":20,"node":"a:1"}]}`:                            "those from 0 to 19",
		`{"locations":[{"shard":1,"node":"a:1"},{"shard":1,"node":"a:1"}]}`:    "named twice",
		`{"locations":[{"shard":1,"node":"a:1"},{"shard":2,"node":"nobody"}]}`: "has no port",
	} {
		status, text := o.say(path, cluster.SetLocationsOperation, "secret", body)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, text, says, body)
	}
	status, text := o.say("/v1/kinds/cuonter/locations/set", cluster.SetLocationsOperation, "secret", `{"locations":[{"shard":1,"node":"a:1"}]}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "does not run on this node")
	status, text = o.say(path, cluster.SetLocationsOperation, "secret", strings.Repeat(" ", 4<<20+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status, text)
	var list cluster.LocationList
	require.Equal(t, http.StatusOK, o.get("/v1/kinds/counter/locations", &list))
	require.Empty(t, list.Locations)
}

// A file that has locations followed is right, and config check warns when they would be lost.
func TestCheckWarnsOfLocationsInMemory(t *testing.T) {
	path, _ := lone(t, "sharding: {allocation: {strategy: external, external: {rebalance-absolute-limit: 7}}}")
	var warned []string
	own := cluster.Extensions{Warn: func(key, reason string) { warned = append(warned, key+": "+reason) }}
	require.NoError(t, cluster.Check(own, path))
	require.Len(t, warned, 1)
	require.Contains(t, warned[0], `sharding.allocation.strategy: external follows locations that are kept in memory`)
	require.Contains(t, warned[0], `add "sharding/locations/*" to ddata.durable`)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, data := range []string{"ddata: {durable: [\"sharding/locations/*\"], dir: data}\n", "ddata: {groups: [{prefix: sharding/, durable: true}], dir: data}\n"} {
		require.NoError(t, os.WriteFile(path, append(text, []byte("\n"+data)...), 0o600))
		warned, own.Options = nil, []cluster.Option{on(nil)}
		require.NoError(t, cluster.Check(own, path))
		require.Empty(t, warned)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "limit: 7", "limit: -7")), 0o600))
	require.ErrorContains(t, cluster.Check(own, path), "sharding.allocation.external.rebalance-absolute-limit: -7 is not from 0")
	require.NoError(t, os.WriteFile(path, []byte(string(text)+"\nplugins: {external: {policy: allocation, path: /bin/one, unpinned: true}}\n"), 0o600))
	require.ErrorContains(t, cluster.Check(own, path), "is the name of a built-in strategy")
}
