// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
)

// accounts is an explainer of the kind account, which has ten shards, and of no kind if
// none is set. It fails for the entity trouble.
type accounts struct{ none bool }

var _ management.Explainer = accounts{}

func (a accounts) Kinds(context.Context) ([]management.Kind, error) {
	if a.none {
		return nil, nil
	}
	return []management.Kind{
		{Name: "device", Shards: 3, Proxy: true},
		{Name: "account", Shards: 10, Hosted: 4, Coordinator: "10.0.0.1:7946#1"},
	}, nil
}

func (a accounts) Explain(ctx context.Context, kind, entity string) (management.Explanation, error) {
	if entity == "trouble" {
		return management.Explanation{}, errors.New("the coordinator does not answer")
	}
	e, err := a.ExplainShard(ctx, kind, len(entity)%3)
	e.Entity = entity
	return e, err
}

func (accounts) ExplainShard(_ context.Context, kind string, shard int) (management.Explanation, error) {
	return management.Explanation{
		Kind: kind, Shard: shard, Self: "n#1", Home: "10.0.0.2:7946#2", State: "serving", Epoch: "1-2/7",
		Since: time.Unix(1700000000, 0).UTC(), Decision: "allocation", Reason: "it had the fewest shards",
	}, nil
}

func TestExplanations(t *testing.T) {
	s := serve(t, listening(), management.Explanations("n#1", accounts{}))
	for target, want := range map[string]string{
		"/v1/kinds": `{"self":"n#1","kinds":[{"name":"device","shards":3,"hosted":0,"proxy":true},
			{"name":"account","shards":10,"hosted":4,"proxy":false,"coordinator":"10.0.0.1:7946#1"}]}`,
		"/v1/kinds/account/shards/9": `{"kind":"account","shard":9,"self":"n#1","complete":false,"home":"10.0.0.2:7946#2","state":"serving",
			"epoch":"1-2/7","since":"2023-11-14T22:13:20Z","decision":"allocation","reason":"it had the fewest shards"}`,
	} {
		got := ask(t, s, http.MethodGet, target)
		require.Equal(t, http.StatusOK, got.status)
		require.JSONEq(t, want, got.body)
	}
	for _, id := range []string{"acct-42", "a/b", "..", ".", "%2F", "ü ö?&#", strings.Repeat("x", 512)} {
		got := ask(t, s, http.MethodGet, "/v1/kinds/account/entities/"+strings.ReplaceAll(url.PathEscape(id), ".", "%2E"))
		require.Equal(t, http.StatusOK, got.status, got.body)
		var e management.Explanation
		require.NoError(t, json.Unmarshal([]byte(got.body), &e))
		require.Equal(t, id, e.Entity, "the id arrives as it was")
	}
}

func TestExplanationsThatAreRefused(t *testing.T) {
	s := serve(t, listening(), management.Explanations("n#1", accounts{}))
	for target, want := range map[string]struct {
		status int
		text   string
	}{
		"/v1/kinds/acount/shards/1":                                    {404, `kind "acount" does not run on this node; there are account, device`},
		"/v1/kinds/acount/entities/a":                                  {404, "there are account, device"},
		"/v1/kinds/account/shards/10":                                  {404, `kind "account" has no shard 10: they are 0 to 9`},
		"/v1/kinds/account/shards/-1":                                  {404, "0 to 9"},
		"/v1/kinds/account/shards/seven":                               {400, `shard "seven" is not a number`},
		"/v1/kinds/account/entities/%ff":                               {400, "UTF-8"},
		"/v1/kinds/account/entities/" + strings.Repeat("x", 513):       {400, "512 bytes"},
		"/v1/kinds/account/entities/trouble":                           {500, "the coordinator does not answer"},
		"/v1/kinds/account/entities/":                                  {400, "percent encoding"},
		"/v1/kinds/account/entities":                                   {404, "nothing at"},
		"/v1/kinds/account/entities/a/b":                               {404, "nothing at"},
		"/v1/kinds/" + strings.Repeat("k", 200) + "/entities/a":        {404, strings.Repeat("k", 64) + `..." does not run`},
		"/v1/kinds/account/shards/99999999999999999999999999999999999": {400, "not a number"},
	} {
		got := ask(t, s, http.MethodGet, target)
		require.Equal(t, want.status, got.status, target)
		require.Contains(t, got.failure(t).Error, want.text)
	}
	s = serve(t, listening(), management.Explanations("n#1", accounts{none: true}))
	require.JSONEq(t, `{"self":"n#1","kinds":[]}`, ask(t, s, http.MethodGet, "/v1/kinds").body)
	require.Contains(t, ask(t, s, http.MethodGet, "/v1/kinds/account/shards/1").failure(t).Error, "no kind does")
}
