// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
)

// taken is a handler that counts what it is given, by level.
type taken struct {
	mu *sync.Mutex
	by map[slog.Level]int
}

func (taken) Enabled(context.Context, slog.Level) bool { return true }
func (h taken) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h taken) WithGroup(string) slog.Handler          { return h }

func (h taken) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by[r.Level]++
	return nil
}

// count returns how many lines of a level there were.
func (h taken) count(level slog.Level) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[level]
}

// The level of the log changes while the node runs, and its format does not.
func TestTheLevelOfTheLogIsReloaded(t *testing.T) {
	t.Parallel()
	h := taken{mu: new(sync.Mutex), by: map[slog.Level]int{}}
	path, _ := lone(t)
	_, err := cluster.Start(t.Context(), cluster.WithFile(path), cluster.WithLogger(slog.New(h)),
		cluster.WithChange(func(c *cluster.Config) { c.Log.Format = "json" }))
	require.ErrorContains(t, err, "log.format")
	node, _, change := changeable(t, false, cluster.WithMembership())
	require.NoError(t, node.AwaitUp(t.Context()))
	change("log: {format: json}")
	var restart *cluster.RestartError
	require.ErrorAs(t, node.Reload(t.Context()), &restart)
	require.Equal(t, []string{"log.format"}, restart.Keys)

	file, _ := lone(t, "log: {level: error}")
	silent, err := cluster.Start(t.Context(), cluster.WithFile(file), cluster.WithLogger(slog.New(h)))
	require.NoError(t, err)
	require.NoError(t, silent.AwaitUp(t.Context()))
	require.Zero(t, h.count(slog.LevelInfo))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "level: error", "level: info", 1)), 0o600))
	require.NoError(t, silent.Reload(t.Context()))
	require.NoError(t, silent.Close())
	require.Positive(t, h.count(slog.LevelInfo))
	require.Zero(t, h.count(slog.LevelDebug))
}
