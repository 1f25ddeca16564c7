// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// operate asks a route to change something, without a network.
func operate(t *testing.T, routes []management.Route, change func(*http.Request), opts ...management.Option) (status int, header http.Header, body []byte) {
	t.Helper()
	handler, err := management.Handler(management.Default(), routes, append([]management.Option{quiet()}, opts...)...)
	require.NoError(t, err)
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/form", http.NoBody)
	request.Host = "localhost"
	request.Header.Set(management.OperatorHeader, management.FormOperation)
	change(request)
	handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Header(), recorder.Body.Bytes()
}

// form asks a node to found a cluster.
func form(t *testing.T, n *membership.Node, allowed bool) (status int, got management.Formed, refused management.Failure) {
	t.Helper()
	status, _, body := operate(t, management.Form(n, allowed, management.OperatorsConfig{}), func(*http.Request) {})
	require.NoError(t, json.Unmarshal(body, &got))
	require.NoError(t, json.Unmarshal(body, &refused))
	return status, got, refused
}

// Only a request that an operator sent changes anything: a web page in a browser can
// neither set the header nor hide its origin, and a GET changes nothing.
func TestAnOperationIsMeant(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
		says   string
	}{
		"operator":               {func(*http.Request) {}, 200, "done"},
		"no header":              {func(r *http.Request) { r.Header.Del(management.OperatorHeader) }, 403, "the header Quorate-Operator: form"},
		"another header":         {func(r *http.Request) { r.Header.Set(management.OperatorHeader, "leave") }, 403, "Quorate-Operator: form"},
		"header twice":           {func(r *http.Request) { r.Header.Add(management.OperatorHeader, "form") }, 403, "Quorate-Operator: form"},
		"web page":               {func(r *http.Request) { r.Header.Set("Origin", "http://localhost") }, 403, "web page"},
		"page without an origin": {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, "web page"},
		"navigation":             {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, 403, "web page"},
		"foreign host":           {func(r *http.Request) { r.Host = "evil.example" }, 403, "evil.example"},
		"GET":                    {func(r *http.Request) { r.Method = http.MethodGet }, 405, "only answers POST"},
		"PUT":                    {func(r *http.Request) { r.Method = http.MethodPut }, 405, "only answers POST"},
		"body":                   {func(r *http.Request) { r.ContentLength = 1 }, 400, "body"},
		"parameter":              {func(r *http.Request) { r.URL.RawQuery = "force=1" }, 400, "force"},
		"unclean path":           {func(r *http.Request) { r.URL.Path = "/v1/../v1/form" }, 400, "segments"},
		"route that asks":        {func(r *http.Request) { r.URL.Path = "/echo/a" }, 405, "only answers GET and HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			done := false
			route := management.Route{Path: "/v1/form", Operation: management.FormOperation, Answer: func(context.Context, management.Request) (any, error) {
				done = true
				return "done", nil
			}}
			log, logged := logger()
			status, header, body := operate(t, []management.Route{echo(), route}, test.change, log)
			require.Equal(t, test.status, status, string(body))
			require.Contains(t, string(body), test.says)
			require.Equal(t, test.status == 200, done)
			if done {
				require.Contains(t, logged.String(), "an operator asks for a change")
			}
			if test.says == "only answers POST" {
				require.Equal(t, "POST", header.Get("Allow"))
			}
		})
	}
}

// A web page that asks again and again does not fill the log: it has few lines, and how many were left out.
func TestAWebPageDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := logger()
		route := management.Route{Path: "/v1/form", Operation: management.FormOperation, Answer: echo().Answer}
		handler, err := management.Handler(management.Default(), []management.Route{route}, log)
		require.NoError(t, err)
		ask := func(times int) {
			for range times {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/form", http.NoBody)
				request.Host = "localhost"
				request.Header.Set("Origin", "http://evil.example")
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, request)
				require.Equal(t, http.StatusForbidden, recorder.Code)
			}
		}
		ask(100)
		require.Equal(t, 8, strings.Count(logged.String(), "a web page asks"), logged)
		<-time.After(time.Minute)
		ask(1)
		require.Contains(t, logged.String(), "omitted=92")
	})
}

// A body must come in the time of a request, also where the operation itself may take long.
func TestABodyMustComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		s, err := management.ServeOn(p, management.Default(), []management.Route{{
			Path: "/v1/form", Operation: management.FormOperation, Body: 10, Limit: time.Hour, Answer: echo().Answer,
		}}, quiet())
		require.NoError(t, err)
		c := p.dial()
		began := time.Now()
		write(t, c, "POST /v1/form HTTP/1.1\r\nHost: localhost\r\nQuorate-Operator: form\r\nContent-Length: 10\r\n\r\n0")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		require.Less(t, time.Since(began), 2*time.Second)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
}

// A route that takes a body gets it whole, up to its bound, and only with its length.
func TestAnOperationHasABody(t *testing.T) {
	body := func(text string, length int64) func(*http.Request) {
		return func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), length }
	}
	for name, test := range map[string]struct {
		change func(*http.Request)
		status int
		says   string
	}{
		"none":        {func(*http.Request) {}, 200, `""`},
		"the longest": {body("0123456789", 10), 200, `"0123456789"`},
		"too long":    {body("0123456789a", 11), 413, "the body has 11 bytes, more than 10"},
		"no length":   {body("0123", -1), 411, "does not say how long"},
		"broken off": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), 9
		}, 400, "the body has not come"},
	} {
		t.Run(name, func(t *testing.T) {
			route := management.Route{Path: "/v1/form", Operation: management.FormOperation, Body: 10, Answer: func(_ context.Context, r management.Request) (any, error) {
				return string(r.Body()), nil
			}}
			status, _, text := operate(t, []management.Route{route}, test.change)
			require.Equal(t, test.status, status, string(text))
			require.Contains(t, string(text), test.says)
		})
	}
	_, err := management.Handler(management.Default(), []management.Route{{Path: "/x", Body: 1, Answer: echo().Answer}})
	require.ErrorContains(t, err, "only an operation has a body")
}

// A program cannot declare a route that is a health check and changes something.
func TestAHealthCheckIsNoOperation(t *testing.T) {
	route := echo()
	route.Probe, route.Operation = true, "break"
	_, err := management.Handler(management.Default(), []management.Route{route})
	require.ErrorContains(t, err, "a health check changes nothing")
}

// Nor one of which nobody hears what has come of it.
func TestAnOperationHasAnAnswer(t *testing.T) {
	_, err := management.Handler(management.Default(), []management.Route{{Path: "/x", Operation: "break", Handler: http.NotFoundHandler()}})
	require.ErrorContains(t, err, "an operation needs an answer, which says what has come of it, not a handler")
}

// A node that waits founds a cluster by command of an operator, once, and says what is
// given up. A node that does not wait, or must not do so, refuses with the reason.
func TestAnOperatorFoundsACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, memory.NewNetwork(), 1, seeds()...)
		status, _, refused := form(t, n, true)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, refused.Error, "has not waited")
		<-time.After(time.Minute)
		status, _, refused = form(t, n, false)
		require.Equal(t, http.StatusForbidden, status)
		require.Equal(t, "management.allow-form is false on this node", refused.Error)
		require.True(t, n.State().Cluster().IsZero())

		status, got, _ := form(t, n, true)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, management.Formed{Self: "10.0.0.1:7946#1", Cluster: n.State().Cluster().String(), GivenUp: []string{"10.0.0.2:7946"}}, got)
		require.NoError(t, n.AwaitUp(t.Context()))
		list := of[management.DecisionList](t, n, "/v1/decisions?topic=join", 200)
		last := list.Decisions[len(list.Decisions)-1]
		require.Equal(t, "formed cluster "+got.Cluster, last.Verdict)
		require.Contains(t, last.Reason, "an operator asked for it")

		status, _, refused = form(t, n, true)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, refused.Error, "this node is not waiting for a cluster")
		require.NoError(t, n.Close())
		status, _, refused = form(t, n, true)
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, refused.Error, "closed")
	})
}
