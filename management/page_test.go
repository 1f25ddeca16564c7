// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// paged serves one route, and the page if it is asked for, and returns the URL.
func paged(t *testing.T, page bool) string {
	t.Helper()
	cfg := management.Default()
	cfg.Address, cfg.Page = "127.0.0.1:0", page
	s, err := management.Serve(t.Context(), cfg, []management.Route{{Path: "/v1/members", Answer: func(context.Context, management.Request) (any, error) { return "members", nil }}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return "http://" + s.Address()
}

func fetch(t *testing.T, method, url string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(patience.Context(t), method, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // It was only read.
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func TestPageIsOffByDefault(t *testing.T) {
	require.False(t, management.Default().Page)
	response, _ := fetch(t, http.MethodGet, paged(t, false)+"/ui")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

// Everything that the page needs comes from the node, the policy forbids the rest, and all of it is small.
func TestPageNeedsTheNodeOnlyAndIsSmall(t *testing.T) {
	url, size := paged(t, true), 0
	for path, kind := range map[string]string{"/ui": "text/html", "/ui/app.js": "text/javascript", "/ui/app.css": "text/css", "/ui/licences.txt": "text/plain"} {
		response, body := fetch(t, http.MethodGet, url+path)
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.NotEmpty(t, body, path)
		size += len(body)
		require.True(t, strings.HasPrefix(response.Header.Get("Content-Type"), kind), path)
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
			require.Contains(t, policy, want)
		}
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, []string{"nosniff", "no-store", "DENY", "no-referrer"}, []string{
			response.Header.Get("X-Content-Type-Options"), response.Header.Get("Cache-Control"), response.Header.Get("X-Frame-Options"), response.Header.Get("Referrer-Policy"),
		})
		head, none := fetch(t, http.MethodHead, url+path)
		require.Equal(t, []any{http.StatusOK, response.ContentLength, ""}, []any{head.StatusCode, head.ContentLength, none})
	}
	require.Less(t, size, 200_000)
	_, page := fetch(t, http.MethodGet, url+"/ui")
	for _, named := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^(ui/app\.(css|js)|data:,)$`, named[1])
	}
	require.NotRegexp(t, `<script>|<style|style=| on[a-z]+=`, page, "the policy would refuse it")
	_, style := fetch(t, http.MethodGet, url+"/ui/app.css")
	require.NotRegexp(t, `url\(|@import`, style)
}

func TestPageChangesNothing(t *testing.T) {
	url := paged(t, true)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		response, _ := fetch(t, method, url+"/ui")
		require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	}
	for _, path := range []string{"/ui/", "/ui/../ui", "/ui/page.go", "/ui/src/main.tsx"} {
		response, _ := fetch(t, http.MethodGet, url+path)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, response.StatusCode, path)
	}
}
