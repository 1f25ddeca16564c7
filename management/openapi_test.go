// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// The description of routes: the statuses that it names are those that the server answers, and the schemas are
// those of what is encoded. That the routes of a real node answer as they are described is tested with the command
// line, see its openapi_test.go.

// statuses returns the statuses that the document names for the only route.
func statuses(t *testing.T, route management.Route) (all []string) {
	t.Helper()
	for status := range describes(t, route)["responses"].(map[string]any) {
		all = append(all, status)
	}
	slices.Sort(all)
	return all
}

// describes returns what the document says of a route.
func describes(t *testing.T, route management.Route) map[string]any {
	t.Helper()
	text, err := json.Marshal(management.OpenAPI([]management.Route{route}))
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(text, &document))
	for _, operation := range document.Paths[route.Path] {
		return operation
	}
	require.Fail(t, "no operation")
	return nil
}

// Whatever a server makes of a route by itself is in the document, and nothing else but what a route answers.
func TestTheDocumentNamesEachStatus(t *testing.T) {
	fails := func(ctx context.Context, r management.Request) (any, error) {
		switch r.Query("how") {
		case "panic":
			panic("it breaks")
		case "late":
			<-ctx.Done()
			return nil, ctx.Err()
		case "missing":
			return nil, &management.Error{Status: 404, Text: "missing"}
		case "conflict":
			return nil, &management.Error{Status: 409, Text: "no"}
		}
		return "done", nil
	}
	query := []string{"how"}
	for name, route := range map[string]management.Route{
		"question":      {Path: "/x", Query: query, Answer: fails},
		"health":        {Path: "/x", Query: query, Probe: true, Answer: fails},
		"thing":         {Path: "/x/{thing}", Query: query, Answer: fails},
		"operation":     {Path: "/x", Query: query, Operation: "strike", Answer: fails},
		"for operators": {Path: "/x/{thing}", Query: query, Operation: "strike", Method: http.MethodPut, Authorized: true, Body: 4, Answer: fails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := management.Default()
				cfg.RequestTimeout, cfg.MaxRequests = 10*time.Millisecond, 1
				cfg.Operators.TokenFile = tokensIn(t, line("alice", "never", token))
				handler, err := management.Handler(cfg, []management.Route{route}, quiet())
				require.NoError(t, err)
				method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[route.Operation != ""]
				if route.Method != "" {
					method = route.Method
				}
				ask := func(change func(*http.Request)) string {
					r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(route.Path, "{thing}", "a"), http.NoBody)
					r.Host = "localhost"
					r.Header.Set(management.OperatorHeader, route.Operation)
					bearer(token)(r)
					change(r)
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					return fmt.Sprint(w.Code)
				}
				how := func(query string) func(*http.Request) {
					return func(r *http.Request) { r.URL.RawQuery = "how=" + query }
				}
				body := func(length int64) func(*http.Request) {
					return func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("12345")), length }
				}
				got := []string{
					ask(func(*http.Request) {}), ask(how("panic")), ask(how("late")),
					ask(func(r *http.Request) { r.URL.RawQuery = "what=1" }), ask(func(r *http.Request) { r.Host = "evil.example" }),
				}
				if route.Path != "/x" {
					got = append(got, ask(how("missing")))
				}
				if route.Operation != "" {
					got = append(got, ask(how("conflict")), ask(func(r *http.Request) { r.Header.Del(management.OperatorHeader) }))
				}
				if route.Authorized {
					got = append(got, ask(func(r *http.Request) { r.Header.Set("Authorization", "Bearer guess") }))
				}
				if route.Body > 0 {
					got = append(got, ask(body(-1)), ask(body(5)))
				}
				got = append(got, busy(t, cfg, route, method))
				slices.Sort(got)
				require.Equal(t, statuses(t, route), slices.Compact(got))
			})
		})
	}
}

// busy returns the status of a request while all places for its kind are taken.
func busy(t *testing.T, cfg management.Config, route management.Route, method string) string {
	t.Helper()
	cfg.RequestTimeout = time.Minute
	inside, over := make(chan struct{}, 8), make(chan struct{})
	route.Answer = func(context.Context, management.Request) (any, error) {
		inside <- struct{}{}
		<-over
		return "done", nil
	}
	handler, err := management.Handler(cfg, []management.Route{route}, quiet())
	require.NoError(t, err)
	ask := func() int {
		r := httptest.NewRequestWithContext(t.Context(), method, strings.ReplaceAll(route.Path, "{thing}", "a"), http.NoBody)
		r.Host = "localhost"
		r.Header.Set(management.OperatorHeader, route.Operation)
		bearer(token)(r)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	places := 1
	if route.Probe {
		places = 8
	}
	answered := make(chan int, places)
	for range places {
		go func() { answered <- ask() }() // Ends with over, and the test waits for it.
		<-inside
	}
	status := ask()
	close(over)
	for range places {
		require.Equal(t, 200, <-answered)
	}
	return fmt.Sprint(status)
}

// The schema of an answer comes from its type: what is always there, what may be missing, and what is embedded.
func TestSchemasOfAnswers(t *testing.T) {
	type inner struct {
		Deep *inner `json:"deep,omitempty"`
		At   time.Time
	}
	type outer struct {
		inner

		Names   []string          `json:"names"`
		Counts  map[string]uint64 `json:"counts,omitempty"`
		Raw     json.RawMessage   `json:"raw,omitempty"`
		Bytes   []byte            `json:"bytes,omitzero"`
		Any     any               `json:"any,omitempty"`
		Ratio   float64           `json:"ratio"`
		Yes     bool              `json:"yes"`
		hidden  int
		Ignored int `json:"-"`
	}
	_ = outer{hidden: 1}
	text, err := json.Marshal(management.OpenAPI([]management.Route{{Path: "/x/{a}/{rest...}", Result: outer{}, Query: []string{"q"}}}))
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(text, &document))
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any)
	want := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(`{
		"type": "object", "additionalProperties": false, "required": ["At", "names", "ratio", "yes"],
		"properties": {
			"deep": {"$ref": "#/components/schemas/Inner"}, "At": {"type": "string", "format": "date-time"},
			"names": {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
			"counts": {"type": "object", "additionalProperties": {"type": "integer"}},
			"raw": {}, "any": {}, "bytes": {"type": "string", "contentEncoding": "base64"}, "ratio": {"type": "number"}, "yes": {"type": "boolean"}
		}}`), &want))
	require.Equal(t, want, schemas["Outer"])
	require.Contains(t, schemas, "Inner")
	operation := describes(t, management.Route{Path: "/x/{a}/{rest...}", Query: []string{"q"}})
	require.Equal(t, "getXARest", operation["operationId"])
	require.Len(t, operation["parameters"], 3)
}

// A server shows the document of its routes, unless the program has one of its own.
func TestAServerShowsTheDocument(t *testing.T) {
	s := serve(t, listening(), []management.Route{echo()})
	got := fetchText(t, "http://"+s.Address()+"/openapi.json")
	require.Contains(t, got, `"/echo/{`)
	require.Contains(t, got, `"/openapi.json"`)
	own := management.Route{Path: "/openapi.json", Answer: func(context.Context, management.Request) (any, error) { return "mine", nil }}
	s = serve(t, listening(), []management.Route{own})
	require.Equal(t, "\"mine\"\n", fetchText(t, "http://"+s.Address()+"/openapi.json"))
}

// fetchText returns what a server answers.
func fetchText(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(patience.Context(t), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
	return string(text)
}
