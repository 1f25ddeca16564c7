// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && !windows

package plugintest

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
)

const examples = "github.com/quorate/quorate/examples/plugins/"

func TestZoneAwarePasses(t *testing.T) {
	Test(t, plugins.Config{Policy: plugins.Allocation, Path: Build(t, examples+"zoneaware"), Settings: map[string]any{"skew": 1}})
}

func TestQuantilePasses(t *testing.T) {
	Test(t, plugins.Config{Policy: plugins.FailureDetector, Path: Build(t, examples+"quantile"), Settings: map[string]any{"factor": 3}})
}

func TestInventoryPasses(t *testing.T) {
	script := filepath.Join(t.TempDir(), "inventory.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" = quorate ] && echo 10.0.0.1:7946\nexit 0\n"), 0o700))
	Test(t, plugins.Config{Policy: plugins.Discovery, Path: Build(t, examples+"inventory"), Settings: map[string]any{"command": []any{script}}})
}

func TestApprovalPasses(t *testing.T) {
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"allowed": true, "reason": "a test"}`)
	}))
	defer operator.Close()
	Test(t, plugins.Config{Policy: plugins.JoinDecider, Path: Build(t, examples+"approval"), Settings: map[string]any{"url": operator.URL}})
}

func TestKubernetesPasses(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items": []}`) }))
	defer api.Close()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	Test(t, plugins.Config{
		Policy: plugins.Downing, Path: Build(t, examples+"kubernetes"),
		Settings: map[string]any{"url": api.URL, "token-file": token, "ca-file": ""},
	})
}

func TestPrometheusPasses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	defer server.Close()
	Test(t, plugins.Config{
		Policy: plugins.Allocation, Path: Build(t, examples+"prometheus"),
		Settings: map[string]any{"url": server.URL, "queries": []any{"cpu"}},
	})
}

func TestMaintenancePasses(t *testing.T) {
	window := map[string]any{"days": []any{"sat"}, "from": "22:00", "to": "04:00"}
	Test(t, plugins.Config{
		Policy: plugins.JoinDecider, Path: Build(t, examples+"maintenance"),
		Settings: map[string]any{"windows": []any{window}, "zone": "Europe/Berlin"},
	})
}

// witnessd runs the witness of the examples until the end of the test, and returns its URL.
func witnessd(t *testing.T) string {
	t.Helper()
	d := exec.Command(Build(t, examples+"witnessd"), "-listen", "127.0.0.1:0", "-state", filepath.Join(t.TempDir(), "votes.json"))
	out, err := d.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, d.Start())
	lines := bufio.NewScanner(out)
	drained := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, d.Process.Kill())
		<-drained
		require.Error(t, d.Wait())
	})
	require.True(t, lines.Scan())
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(lines.Text())
	require.NotNil(t, address, lines.Text())
	go func() { // Ends with the process; the cleanup waits.
		defer close(drained)
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	return "http://" + address[1]
}

func TestWitnessPasses(t *testing.T) {
	settings := map[string]any{"url": witnessd(t), "cluster": "bank"}
	c := pinned(t, plugins.Config{Policy: plugins.Downing, Path: Build(t, examples+"witness"), Settings: settings})
	Test(t, c)

	// Two halves of a cluster, each with a plugin of its own and one witness.
	settings["cluster"] = "shop"
	members := downingtest.Members(4)
	base := gossip.Base{downingtest.IDs(members)}
	survivors := 0
	for _, lower := range []bool{true, false} {
		v := downingtest.SplitView(members, func(id gossip.NodeID) bool { return (id.Compare(members[2].Node) < 0) == lower }, base)
		d, err := strategy[downing.Provider](t, open(t, c)).Decide(t.Context(), v)
		require.NoError(t, err)
		require.NotEqual(t, downing.None, d.Verdict)
		if downingtest.Survives(v, d) {
			survivors++
		}
	}
	require.Equal(t, 1, survivors)
}

// buildPageProgram builds the first program of docs/plugins.md.
func buildPageProgram(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(page))
	require.NoError(t, err)
	_, program, found := strings.Cut(string(text), "```go\npackage main\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "```")
	require.True(t, found)
	path := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(path, []byte("package main\n"+program), 0o600))
	return Build(t, path)
}

// The first program of docs/plugins.md is a complete plugin.
func TestTheProgramOfTheDocumentationPasses(t *testing.T) {
	Test(t, plugins.Config{Policy: plugins.Downing, Path: buildPageProgram(t), Settings: map[string]any{"grace": "1s"}})
}
