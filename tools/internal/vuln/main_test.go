// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tool writes a program that stands for govulncheck.
func tool(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "govulncheck")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700))
	return name
}

// A database that is there has the tool look, and its findings fail.
func TestFindingsFail(t *testing.T) {
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index/db.json" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(database.Close)
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, database.URL, time.Minute, []string{tool(t, `echo "$@"`)}))
	require.Equal(t, "-db "+database.URL+" -C tools work\n", out.String())
	err := run(t.Context(), &out, database.URL, time.Minute, []string{tool(t, "exit 3")})
	require.ErrorContains(t, err, "exit status 3; for what was found, raise its module")
}

// Without its database nothing is looked for; one line says so, and why.
func TestWithoutADatabaseNothingIsJudged(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	never := []string{tool(t, "echo looked")}
	for _, c := range []struct {
		database string
		limit    time.Duration
		why      string
	}{{silent.URL, 50 * time.Millisecond, "context deadline exceeded"}, {gone.URL, time.Minute, "404 Not Found"}} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, c.database, c.limit, never))
		require.Regexp(t, fmt.Sprintf("^   left out: known vulnerabilities, since their database did not answer within %v: .*%s\n$", c.limit, c.why), out.String())
	}
	require.EqualError(t, run(t.Context(), nil, gone.URL, time.Minute, nil), "one argument is needed, the program govulncheck")
}
