// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
)

// described is what the description of the routes says of a request that this test needs.
type described struct {
	Parameters []struct {
		Name   string
		Schema struct{ Const string }
	}
}

// operationOf returns what a request asks for: empty if it changes nothing.
func (d described) operationOf() string {
	for _, p := range d.Parameters {
		if p.Name == management.OperatorHeader {
			return p.Schema.Const
		}
	}
	return ""
}

// Each route that changes something is for operators alone, or stands on the page about security.
func TestOperationsAreForOperatorsOrOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("`([A-Z]+ /[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		named[found[1]] = true
	}
	open := map[string]bool{}
	for _, operators := range []string{"", "operators: {token-file: " + tokenFile(t) + "}"} {
		path, _ := lone(t, `management: {address: "127.0.0.1:0", `+operators+`}`, "plugins:", "  spare: {policy: downing, path: /bin/one, unpinned: true}")
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(&stage{}))...)
		require.NoError(t, err)
		require.NoError(t, node.AwaitUp(t.Context()))
		var routes struct {
			Paths map[string]map[string]json.RawMessage
		}
		status, body := fetch(t, node, "/openapi.json")
		require.Equal(t, http.StatusOK, status)
		require.NoError(t, json.Unmarshal([]byte(body), &routes))
		operations := 0
		for path, methods := range routes.Paths {
			for method, text := range methods {
				var d described
				if json.Unmarshal(text, &d) != nil || d.operationOf() == "" {
					continue
				}
				operations++
				if ask(t, node, strings.ToUpper(method), path, d.operationOf()) {
					open[strings.ToUpper(method)+" "+path] = operators == ""
				}
			}
		}
		require.Greater(t, operations, 15, "the description has the operations")
		require.NoError(t, node.Close())
	}
	for route, alone := range open {
		require.True(t, named[route], "%s changes something, is not for operators alone, and is not on docs/security.md", route)
		require.True(t, alone, "%s is for everybody although there are operators", route)
	}
	require.Equal(t, map[string]bool{"POST /v1/form": true}, open)
}

// ask sends a request for an operation by somebody who is no operator, and reports whether it came as far as the route.
func ask(t *testing.T, node *cluster.Node, method, path, operation string) bool {
	t.Helper()
	path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "x")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+node.ManagementAddress()+path, http.NoBody)
	require.NoError(t, err)
	r.Header.Set(management.OperatorHeader, operation)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	refused := response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden && strings.Contains(string(text), "no operators")
	return !refused
}
