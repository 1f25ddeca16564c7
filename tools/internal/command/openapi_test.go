// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// The description of the HTTP interface, against a real node: each answer that the node gives must have a status that
// the document names, and the form that it gives for that. First comes the node and its document; then requests that
// succeed, and those that are refused in every way that does not need a broken node (for which see
// management/openapi_test.go).

// described is a node, and what it says of its routes.
type described struct {
	t        *testing.T
	url      string
	document map[string]any
	compiler *jsonschema.Compiler
	seen     map[string]bool // "GET /v1/members 200": the answers that came.
}

// dog is an entity that does nothing.
type dog struct{}

// Receive does nothing.
func (dog) Receive(*sharding.Context, *string) error { return nil }

// describe starts a node, and reads the description of its routes.
func describe(t *testing.T) *described {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	tokens, file := filepath.Join(dir, "tokens"), filepath.Join(dir, "node.yaml")
	require.NoError(t, os.WriteFile(tokens, fmt.Appendf(nil, "alice never %x\n", sha256.Sum256([]byte("secret"))), 0o600))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "cluster: {name: test}\nnode: {address: %q, roles: [backend]}\nmembership: {seed-nodes: [%q]}\n"+
		"management: {address: \"127.0.0.1:0\", operators: {token-file: %q}}\n", address, address, tokens), 0o600))
	n, err := cluster.Start(t.Context(), cluster.WithFile(file), cluster.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	require.NoError(t, n.AwaitUp(t.Context()))
	patience.Eventually(t, func() bool { return len(n.Ready()) == 0 }, "the node is ready: its replicas count")
	_, err = sharding.Start(n, sharding.Kind[*string]{Name: "dog", Shards: 8, InUse: 8, Codec: sharding.JSON{}, New: func(*sharding.Context) sharding.Entity[*string] { return dog{} }})
	require.NoError(t, err)
	d := &described{t: t, url: "http://" + n.ManagementAddress(), compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	d.compiler.AssertFormat()
	response, err := http.Get(d.url + "/openapi.json")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d.document))
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, d.compiler.AddResource("openapi.json", plain))
	return d
}

// operations returns what the document says of each path and method.
func (d *described) operations() map[string]map[string]map[string]any {
	d.t.Helper()
	all := map[string]map[string]map[string]any{}
	for path, methods := range d.document["paths"].(map[string]any) {
		all[path] = map[string]map[string]any{}
		for method, operation := range methods.(map[string]any) {
			all[path][strings.ToUpper(method)] = operation.(map[string]any)
		}
	}
	return all
}

// names are what stands in the places of a path: things that are there, and things that are not.
var names = map[bool]map[string]string{
	true:  {"kind": "dog", "name": "dog", "shard": "3", "entity": "rex", "key": "visits", "member": "self", "members": "self", "address": "self", "seeds": "127.0.0.1:1", "plugin": "zones"},
	false: {"kind": "cat", "name": "cat", "shard": "99", "entity": "x", "key": "\u0000", "member": "10.0.0.9:1", "members": "10.0.0.9:1", "address": "10.0.0.9:1", "seeds": "x", "plugin": "zones"},
}

// fill puts names into the places of a path.
func fill(path string, there bool) string {
	for name, value := range names[there] {
		path = strings.ReplaceAll(path, "{"+name+"}", strings.NewReplacer(":", "%3A", "\u0000", "%00").Replace(value))
	}
	return path
}

// ask sends a request as an operator to a path of the document, changed by the test, and requires that the answer is
// as the document says. It returns the status.
func (d *described) ask(method, path, target string, change func(*http.Request)) (status int) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+target, http.NoBody)
	require.NoError(d.t, err)
	operation := d.operations()[path][method]
	for _, p := range operation["parameters"].([]any) {
		if p := p.(map[string]any); p["in"] == "header" {
			r.Header.Set(p["name"].(string), p["schema"].(map[string]any)["const"].(string))
		}
	}
	r.Header.Set("Authorization", "Bearer secret")
	change(r)
	response, err := http.DefaultClient.Do(r)
	require.NoError(d.t, err)
	defer func() { _ = response.Body.Close() }()
	about := fmt.Sprintf("%s %s %d", method, path, response.StatusCode)
	d.seen[about] = true
	said, documented := operation["responses"].(map[string]any)[fmt.Sprint(response.StatusCode)].(map[string]any)
	require.True(d.t, documented, "%s is not in the document", about)
	content := said["content"].(map[string]any)
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if content["*/*"] != nil || kind == "text/event-stream" {
		require.True(d.t, content["*/*"] != nil || content[kind] != nil, about)
		return response.StatusCode
	}
	require.NotNil(d.t, content[kind], "%s answers %s", about, kind)
	got, err := jsonschema.UnmarshalJSON(response.Body)
	require.NoError(d.t, err)
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	at := fmt.Sprintf("openapi.json#/paths/%s/%s/responses/%d/content/%s/schema", escape.Replace(path), strings.ToLower(method), response.StatusCode, escape.Replace(kind))
	schema, err := d.compiler.Compile(at)
	require.NoError(d.t, err, about)
	require.NoError(d.t, schema.Validate(got), "%s: %v", about, got)
	return response.StatusCode
}

// Every route answers as the document says, asked for what there is and for what there is not, rightly and wrongly.
func TestEveryAnswerIsAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	d := describe(t)
	require.Equal(t, "3.1.0", d.document["openapi"])
	for name := range d.document["components"].(map[string]any)["schemas"].(map[string]any) {
		_, err := d.compiler.Compile("openapi.json#/components/schemas/" + name)
		require.NoError(t, err, name)
	}
	right := func(*http.Request) {}
	ids := map[any]bool{}
	all := d.operations()
	require.Greater(t, len(all), 40)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		for method, about := range all[path] {
			require.NotEmpty(t, about["summary"], path)
			require.False(t, ids[about["operationId"]], "%v is the id of two", about["operationId"])
			ids[about["operationId"]] = true
			changes := method != http.MethodGet
			if !changes || strings.HasSuffix(path, "/reload") || strings.HasSuffix(path, "/locations/clear") || strings.HasSuffix(path, "/drain/end") {
				if status := d.ask(method, path, fill(path, true), right); status != http.StatusOK {
					require.Contains(t, path, "explain", "%s %s: it needs a parameter", method, path)
				}
			}
			if strings.Contains(path, "{") && path != "/v1/join/{seeds}" {
				d.ask(method, path, fill(path, false), right)
			}
			require.Equal(t, http.StatusBadRequest, d.ask(method, path, fill(path, false)+"?cause=none", right), path)
			require.Equal(t, http.StatusForbidden, d.ask(method, path, fill(path, false), func(r *http.Request) { r.Host = "evil.example" }), path)
			require.Equal(t, http.StatusBadRequest, d.ask(method, path, fill(path, false), func(r *http.Request) {
				if about["requestBody"] == nil {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1
				} else {
					r.URL.RawQuery = "x=%zz"
				}
			}), path)
			if changes {
				require.Equal(t, http.StatusForbidden, d.ask(method, path, fill(path, false), func(r *http.Request) { r.Header.Del(management.OperatorHeader) }), path)
				require.Equal(t, http.StatusForbidden, d.ask(method, path, fill(path, false), func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }), path)
			}
			if about["security"] != nil {
				require.Equal(t, http.StatusUnauthorized, d.ask(method, path, fill(path, false), func(r *http.Request) { r.Header.Set("Authorization", "Bearer guess") }), path)
			}
			if about["requestBody"] != nil {
				require.Equal(t, http.StatusLengthRequired, d.ask(method, path, fill(path, false), func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1 }), path)
				require.Equal(t, http.StatusRequestEntityTooLarge, d.ask(method, path, fill(path, false), func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, 5<<20)), 5<<20
				}), path)
			}
		}
	}
	for _, want := range []string{
		"GET /v1/kinds/{kind}/shards/{shard} 404", "GET /cluster/shards/{name} 404", "GET /v1/data/keys/{key} 400", "POST /v1/members/{members}/down 404",
		"POST /v1/plugins/{plugin}/swap 404", "DELETE /cluster/members/{address} 404", "GET /v1/kinds/{kind}/entities/{entity} 200",
	} {
		require.Contains(t, d.seen, want)
	}
	require.Equal(t, http.StatusConflict, d.ask(http.MethodPost, "/v1/members/{members}/down", "/v1/members/self/down", right))
	require.Equal(t, http.StatusConflict, d.ask(http.MethodPost, "/v1/join/{seeds}", "/v1/join/127.0.0.1:1", right))
	require.Equal(t, http.StatusOK, d.ask(http.MethodPost, "/v1/kinds/{kind}/rescale", "/v1/kinds/dog/rescale?count=4", right))
	require.Equal(t, http.StatusOK, d.ask(http.MethodPost, "/v1/drain/begin", "/v1/drain/begin?wait=1", right))
	require.Equal(t, http.StatusOK, d.ask(http.MethodDelete, "/cluster/members/{address}", "/cluster/members/self", right))
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
