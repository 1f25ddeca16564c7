// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/sharding"
)

// operated is a node with plugins whose operators have a token.
type operated struct {
	t    *testing.T
	path string
	node *cluster.Node
	*stage
}

// operate starts a node with a pinned plugin (mover), one that is not (guide), and one for
// downing that is not (judge).
func operate(t *testing.T, opts ...cluster.Option) *operated {
	t.Helper()
	tokens := tokenFile(t)
	path, _ := lone(t, "downing: {strategy: judge}", "sharding: {allocation: {strategy: mover}}",
		"plugins:",
		"  judge: {policy: downing, path: /bin/one, unpinned: true}",
		"  mover: {policy: allocation, path: /bin/one, sha256: "+strings.Repeat("0f", 32)+"}",
		"  guide: {policy: discovery, path: /at/one, unpinned: true}",
		"  spare: {policy: downing, path: /bin/one, unpinned: true}",
		"management: {address: \"127.0.0.1:0\", operators: {token-file: "+tokens+"}}")
	s := &stage{unsuitable: "/bin/bad"}
	node, err := cluster.Start(t.Context(), append(quiet(cluster.WithFile(path), cluster.WithPlugins(s)), opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = node.Close() })
	require.NoError(t, node.AwaitUp(t.Context()))
	return &operated{t, path, node, s}
}

// write changes the file.
func (o *operated) write(pairs ...string) {
	o.t.Helper()
	text, err := os.ReadFile(o.path)
	require.NoError(o.t, err)
	require.NoError(o.t, os.WriteFile(o.path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
}

// ask has an operator ask for something about a plugin.
func (o *operated) ask(plugin, verb, token string) (status int, body string) {
	o.t.Helper()
	return o.post("/v1/plugins/"+plugin+"/"+verb, verb+"-plugin", token)
}

// post has an operator ask for an operation.
func (o *operated) post(path, operation, token string) (status int, body string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "http://"+o.node.ManagementAddress()+path, http.NoBody)
	require.NoError(o.t, err)
	r.Header.Set(management.OperatorHeader, operation)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(o.t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(o.t, err)
	return response.StatusCode, string(text)
}

// last returns the last decision about operations.
func (o *operated) last() string {
	all := o.node.Membership().Decisions().Of("operation")
	if len(all) == 0 {
		return ""
	}
	d := all[len(all)-1]
	return strings.Join([]string{d.Component, d.Subject, d.Verdict, d.Reason}, "|")
}

// An operator swaps one plugin as the file has it, and nothing else of the file; each command is a
// decision with who asked, and what cannot be done changes nothing.
func TestAnOperatorSwapsAPlugin(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.write("path: /bin/one, sha256", "path: /bin/two, sha256", "guide: {policy: discovery, path: /at/one", "guide: {policy: discovery, path: /at/two")
	status, body := o.ask("mover", "swap", "guess")
	require.Equal(t, http.StatusUnauthorized, status, body)
	require.Equal(t, "/bin/one", o.plays("mover"))
	require.Empty(t, o.last())

	status, body = o.ask("mover", "swap", "secret")
	require.Equal(t, http.StatusOK, status, body)
	var got cluster.PluginChange
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.True(t, got.Changed)
	require.Equal(t, "mover", got.Plugins[0].Name)
	require.Equal(t, "/bin/two", o.plays("mover"))
	require.Equal(t, "management|/v1/plugins/mover/swap|swap-plugin|asked for by token of alice", o.last())

	status, body = o.ask("mover", "swap", "secret")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"changed":false`)
	require.Equal(t, int64(1), o.swaps.Load())

	o.write("/bin/two", "/bin/bad")
	status, body = o.ask("mover", "swap", "secret")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "mover does not suit")
	require.Contains(t, o.last(), "swap-plugin failed|asked for by token of alice: nothing was reloaded: mover does not suit")
	require.Equal(t, "/bin/two", o.plays("mover"))

	o.write("policy: allocation, path: /bin/bad", "policy: downing, path: /bin/bad")
	status, body = o.ask("mover", "swap", "secret")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "the files of the node have faults")
	o.write("mover: {policy: downing, path: /bin/bad", "mover: {policy: allocation, path: /bin/two")

	for _, unknown := range []string{"spare", "guide", "nobody"} {
		status, body = o.ask(unknown, "swap", "secret")
		require.Equal(t, http.StatusNotFound, status, "%s: %s", unknown, body)
		status, _ = o.ask(unknown, "restart", "secret")
		require.Equal(t, http.StatusNotFound, status)
	}
	require.NoError(t, o.node.Reload(t.Context()), "what was swapped is known to have been")
	require.Equal(t, int64(1), o.swaps.Load())
	require.NoError(t, o.node.Close())
	_, err := o.node.SwapPlugin(t.Context(), "mover")
	require.ErrorIs(t, err, sharding.ErrClosed)
}

// A plugin for downing is swapped through the register of the cluster, also if its section is
// what it was, when it is not pinned; then it is not restarted, since its file may decide otherwise.
func TestAnOperatorSwapsAPluginForDowning(t *testing.T) {
	t.Parallel()
	o := operate(t)
	status, body := o.ask("judge", "restart", "secret")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "is not pinned")
	o.write("judge: {policy: downing, path: /bin/one", "judge: {policy: downing, path: /bin/two")
	for _, opened := range []int64{3, 4} { // After judge and mover at the start.
		status, body = o.ask("judge", "swap", "secret")
		require.Equal(t, http.StatusOK, status, body)
		require.Contains(t, body, `"changed":true`)
		require.Equal(t, opened, o.opens.Load())
		patience.Eventually(t, func() bool { return len(o.node.Plugins()) == 2 }, "the plugin before is closed")
	}
	require.Zero(t, o.swaps.Load())
}

func TestAnOperatorRestartsAPlugin(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.write("path: /bin/one, sha256", "path: /bin/two, sha256")
	status, body := o.ask("mover", "restart", "secret")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, `"changed":true`)
	require.Equal(t, "/bin/one", o.plays("mover"), "with the configuration that it has")
	require.Equal(t, int64(1), o.swaps.Load())
	require.Contains(t, o.last(), "restart-plugin|asked for by token of alice")
}

// A node that was configured in code has no file to take anything from, and can restart.
func TestANodeWithoutFilesRestartsAPlugin(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, cast("/bin/two")...)
	cfg, err := cluster.Load(cluster.WithFile(path), cluster.WithPlugins(new(stage)))
	require.NoError(t, err)
	s := new(stage)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithConfig(cfg), cluster.WithPlugins(s))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	_, err = node.SwapPlugin(t.Context(), "mover")
	require.ErrorIs(t, err, cluster.ErrNoFiles)
	require.NoError(t, node.RestartPlugin(t.Context(), "mover"))
	require.ErrorIs(t, node.RestartPlugin(t.Context(), "nobody"), cluster.ErrNoPlugin)
}
