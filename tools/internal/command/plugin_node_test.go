// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// The commands about the plugins of a node, which an operator gives with a token or over the
// socket.

// witness is what a node says of a plugin.
func witness() cluster.PluginStatus {
	return cluster.PluginStatus{
		Name: "witness", Policy: "downing", State: "running", Since: time.Unix(1700000000, 0), Says: "witness 1.2.0 (downing, contract 1, class pure)",
		SHA256: "ddc7a535405aba50fa5b329b12e9eabf1e605d5d20e09eda87ab927e263ac966", PID: 42, Restarts: 1, Swaps: 2,
		LastError: "it ended\x1b[31m (signal: killed)", AwayTotal: 1.5, AwayLast: 0.5, Calls: 7, Failures: 2, Late: 1, OutputLeftOut: 4096, FailedInARow: 3, Debug: true,
		LastCall: &cluster.PluginCall{Call: "decide", At: time.Unix(1700000060, 0), Seconds: 0.0015, Error: "no\x1b[31m answer"},
	}
}

// operable serves routes to operators with the token "secret" and over a socket.
func operable(t *testing.T, routes ...management.Route) (url, token, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	tokens, token := filepath.Join(dir, "tokens"), filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(tokens, fmt.Appendf(nil, "alice never %x\n", sha256.Sum256([]byte("secret"))), 0o600))
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	cfg := management.Default()
	cfg.Address, cfg.Operators.TokenFile = "127.0.0.1:0", tokens
	if runtime.GOOS != "windows" {
		cfg.Operators.Socket = filepath.Join(dir, "socket")
	}
	s, err := management.Serve(t.Context(), cfg, routes, management.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return "http://" + s.Address(), token, "unix://" + cfg.Operators.Socket
}

func TestPluginsForPeopleAndPrograms(t *testing.T) {
	type list struct {
		Plugins []cluster.PluginStatus `json:"plugins"`
	}
	answer := list{}
	url, _, _ := operable(t, management.Route{Path: "/v1/plugins", Answer: func(context.Context, management.Request) (any, error) { return answer, nil }})
	status, stdout, stderr := plugin("list", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, "The node runs no plugin.\n", stdout)

	answer.Plugins = []cluster.PluginStatus{witness(), {Name: "zones", Policy: "allocation", State: "waiting", Since: time.Unix(1700000000, 0)}}
	status, stdout, stderr = plugin("list", "-node", url)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Equal(t, `name         witness
policy       downing
state        running since 2023-11-14T22:13:20Z
says         witness 1.2.0 (downing, contract 1, class pure)
process      42, which may be debugged: it is not killed when it does not answer
sha256       ddc7a535405aba50fa5b329b12e9eabf1e605d5d20e09eda87ab927e263ac966
calls        7, of them 2 without an answer, 1 too late
last call    decide at 2023-11-14T22:14:20Z, no�[31m answer after 1.50 ms
replaced     1 restart, 2 swaps
away         1.5 s in all, 0.5 s the last time
output       4096 bytes not logged
failed       3 times in a row
last error   it ended�[31m (signal: killed)

name         zones
policy       allocation
state        waiting since 2023-11-14T22:13:20Z
calls        0, of them 0 without an answer, 0 too late
replaced     0 restarts, 0 swaps
`, stdout)
	_, stdout, _ = plugin("--json", "list", "-node", url)
	var got list
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Plugins, 2)
}

// Swap and restart need an operator, and say what came of it or why nothing did.
func TestOperatorsSwapAndRestartPlugins(t *testing.T) {
	var changed bool
	var failed error
	route := func(verb, operation string) management.Route {
		return management.Route{
			Path: "/v1/plugins/{plugin}/" + verb, Operation: operation, Authorized: true, Limit: time.Minute,
			Answer: func(_ context.Context, r management.Request) (any, error) {
				return cluster.PluginChange{Self: "10.0.0.1:7946#1", Plugin: r.Path("plugin"), Changed: changed, Plugins: []cluster.PluginStatus{witness()}}, failed
			},
		}
	}
	url, token, socket := operable(t, route("swap", cluster.SwapPluginOperation), route("restart", cluster.RestartPluginOperation))
	status, _, stderr := plugin("swap", "witness", "-node", url)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "only an operator may ask this")

	status, stdout, stderr := plugin("swap", "witness", "-node", url, "-token-file", token)
	require.Equal(t, command.StatusOK, status, stderr)
	fits(t, stdout)
	require.Contains(t, stdout, "asked        10.0.0.1:7946#1\noutcome      its files have it as it runs: nothing was done\n\nname         witness\n")
	changed = true
	for verb, want := range map[string]string{"swap": "swapped", "restart": "restarted"} {
		_, stdout, stderr = plugin(verb, "witness", "-node", url, "-token-file", token)
		require.Contains(t, stdout, "outcome      "+want+"\n", stderr)
		_, stdout, stderr = plugin("--json", verb, "witness", "-node", url, "-token-file", token)
		require.Contains(t, stdout, `"plugin": "witness"`, stderr)
		if runtime.GOOS != "windows" {
			_, stdout, stderr = plugin(verb, "witness", "-node", socket)
			require.Contains(t, stdout, "outcome      "+want+"\n", stderr)
		}
	}
	failed = &management.Error{Status: 409, Text: "the plugin does not suit"}
	status, _, stderr = plugin("restart", "witness", "-node", url, "-token-file", token)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "the plugin does not suit")
}

// Faults of the files of an operator are faults of use, and nothing is sent.
func TestFaultsOfTokensAndSockets(t *testing.T) {
	url, token, _ := operable(t)
	for text, want := range map[string]string{"": "one token", "two words": "one token", "\x00": "one token"} {
		require.NoError(t, os.WriteFile(token, []byte(text), 0o600))
		status, _, stderr := plugin("list", "-node", url, "-token-file", token)
		require.Equal(t, command.StatusUsage, status)
		require.Contains(t, stderr, want)
	}
	status, _, stderr := plugin("list", "-node", url, "-token-file", token+"s-that-are-not-there")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "no such file")
	status, _, stderr = plugin("list", "-node", "unix:///nowhere/socket")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stderr, "no node answers at unix:///nowhere/socket")
}
