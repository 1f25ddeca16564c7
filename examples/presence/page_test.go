// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// wall is a presence of which a test decides what it shows. It is for one goroutine at a
// time.
type wall struct {
	board  pageContent
	news   chan struct{}
	joined []string
	noted  []string
}

func newWall() *wall {
	return &wall{board: pageContent{Node: "n1", People: []person{{Name: "alice"}}}, news: make(chan struct{})}
}

func (w *wall) look() (pageContent, <-chan struct{}) { return w.board, w.news }

func (w *wall) join(name string) (leave func()) {
	w.joined = append(w.joined, name)
	return func() { w.joined = slices.DeleteFunc(w.joined, func(n string) bool { return n == name }) }
}

func (w *wall) note(name string) { w.noted = append(w.noted, name) }

// show puts another board up.
func (w *wall) show(b pageContent) {
	before := w.news
	w.board, w.news = b, make(chan struct{})
	close(before) // The stream looks again.
}

// get answers a request that ends by itself.
func get(t *testing.T, w *wall, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	routes(w).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return answer
}

func TestThePageLoadsNothing(t *testing.T) {
	answer := get(t, newWall(), "/")
	require.Equal(t, http.StatusOK, answer.Code)
	require.Contains(t, answer.Header().Get("Content-Type"), "text/html")
	require.Contains(t, answer.Header().Get("Content-Security-Policy"), "default-src 'none'")
	text := answer.Body.String()
	require.Contains(t, text, "Who is online")
	for _, foreign := range []string{"http:", "https:", "src=", "href=", "@import", "url(", "innerHTML"} {
		require.NotContains(t, text, foreign)
	}
	require.Equal(t, http.StatusNotFound, get(t, newWall(), "/favicon.ico").Code)
}

func TestTheBoardAsItIs(t *testing.T) {
	w := newWall()
	answer := get(t, w, "/board")
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	var got pageContent
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &got))
	require.Equal(t, w.board, got)
}

func TestNamesThatCannotBeShownAreRefused(t *testing.T) {
	for name, why := range map[string]string{
		strings.Repeat("a", nameBytes+1): "at most 64",
		"a\nb":                           "cannot be shown",
		"a\u202eb":                       "cannot be shown",
		"\xff":                           "cannot be shown",
	} {
		w := newWall()
		answer := get(t, w, "/events?name="+url.QueryEscape(name))
		require.Equal(t, http.StatusBadRequest, answer.Code, "%q", name)
		require.Contains(t, answer.Body.String(), why)
		require.Empty(t, w.joined)
	}
}

// events returns the boards that a stream has sent.
func events(t *testing.T, answer *httptest.ResponseRecorder) (all []pageContent) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(answer.Body.String(), "\n\n"), "\n\n") {
		var b pageContent
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &b))
		all = append(all, b)
	}
	return all
}

// Who reads the stream under a name is online until the stream ends, and is sent each board.
func TestTheStreamOfBoards(t *testing.T) {
	for _, name := range []string{"alice", ""} {
		synctest.Test(t, func(t *testing.T) {
			w, answer := newWall(), httptest.NewRecorder()
			ctx, end := context.WithCancel(t.Context())
			done := make(chan struct{})
			// Ends when ctx does; the test waits.
			go func() {
				defer close(done)
				routes(w).ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?name="+name, http.NoBody))
			}()
			synctest.Wait()
			first, second := w.board, pageContent{Node: "n1", People: []person{{Name: "bob", Online: []string{"n2"}}}}
			w.show(second)
			<-time.After(pulse)
			synctest.Wait()
			var want []string
			if name != "" {
				want = []string{name}
			}
			require.Equal(t, want, w.joined)
			require.Equal(t, want, w.noted)
			end()
			<-done
			require.Empty(t, w.joined)
			require.Equal(t, "text/event-stream", answer.Header().Get("Content-Type"))
			require.True(t, answer.Flushed)
			require.Equal(t, []pageContent{first, second, second}, events(t, answer), "the last one so that a broken connection is noticed")
		})
	}
}
