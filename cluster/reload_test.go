// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/sharding"
)

// Reloading the file of a node. After a part of a program that notes what it is told (part)
// come changes that are taken over or refused as a whole, nodes without files, reloads at
// the same time, and files that are watched while they change again and again.

// part is a part of a program that takes part in reloading. It notes in saw what it is told.
type part struct {
	mu    sync.Mutex
	name  string
	fails error
	saw   *[]string
	to    []cluster.Config // The configurations that were committed.
	news  chan struct{}
}

func newPart(name string, saw *[]string) *part {
	return &part{name: name, saw: saw, news: make(chan struct{}, 10_000)}
}

func (p *part) prepare(_ context.Context, _, to cluster.Config) (cluster.Prepared, error) {
	note := func(what string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.saw != nil {
			*p.saw = append(*p.saw, p.name+" "+what)
		}
	}
	note("prepare")
	if p.fails != nil {
		return cluster.Prepared{}, p.fails
	}
	return cluster.Prepared{
		Commit: func() {
			note("commit")
			p.mu.Lock()
			p.to = append(p.to, to)
			p.mu.Unlock()
			p.news <- struct{}{}
		},
		Discard: func() { note("discard") },
	}, nil
}

// last returns the configuration that was committed last.
func (p *part) last() cluster.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to[len(p.to)-1]
}

// changeable starts a node, and returns a function that changes its file.
func changeable(t *testing.T, watch bool, opts ...cluster.Option) (node *cluster.Node, path string, change func(lines ...string)) {
	t.Helper()
	patience.Watch(t)
	address := free(t)
	path = filepath.Join(t.TempDir(), "cluster.yaml")
	change = func(lines ...string) {
		text := strings.Join(append([]string{
			"cluster: {name: test}", "node: {address: " + address + "}", "membership: {seed-nodes: [" + address + "]}",
			fmt.Sprintf("reload: {watch: %v}", watch),
		}, lines...), "\n") + "\n"
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	change()
	node, err := cluster.Start(t.Context(), quiet(append(opts, cluster.WithFile(path))...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	return node, path, change
}

// covers I31, F55.
func TestReloadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	var saw []string
	first, second := newPart("first", &saw), newPart("second", &saw)
	node, path, change := changeable(t, false, cluster.WithReload(first.prepare), cluster.WithReload(second.prepare))
	require.NoError(t, node.Reload(t.Context()))
	require.Empty(t, saw, "nothing has changed")

	change("sharding: {passivate-after: 1m, rebalance: {max-simultaneous: 5}}")
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, []string{"first prepare", "second prepare", "first commit", "second commit"}, saw)
	require.Equal(t, time.Minute, first.last().Sharding.PassivateAfter)

	saw = nil
	change("sharding: {passivate-after: 2m, mailbox-size: 7}", "transport: {linger: 1s}")
	err := node.Reload(t.Context())
	var restart *cluster.RestartError
	require.ErrorAs(t, err, &restart)
	require.Equal(t, []string{"sharding.mailbox-size", "transport.linger"}, restart.Keys)
	require.ErrorContains(t, err, "restart the node")
	require.Empty(t, saw, "nor is passivate-after, which could change")

	change("sharding: {passivate-after: -1s, stuck-after: soon}", "oops: 1")
	var faults config.Errors
	require.ErrorAs(t, node.Reload(t.Context()), &faults)
	require.Len(t, faults, 3)
	require.Equal(t, path, faults[0].File)
	require.Positive(t, faults[0].Line)
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, node.Reload(t.Context()), config.ErrRead)
	require.Empty(t, saw)

	second.fails = errors.New("no room")
	change("sharding: {stuck-after: 5m}")
	require.ErrorIs(t, node.Reload(t.Context()), second.fails)
	require.Equal(t, []string{"first prepare", "second prepare", "first discard"}, saw)

	saw, second.fails = nil, nil
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, 5*time.Minute, second.last().Sharding.StuckAfter)
	require.Equal(t, sharding.Default().PassivateAfter, second.last().Sharding.PassivateAfter, "what is gone from the file has its default again")
	require.Len(t, saw, 4)
}

// The changes of the program are applied again after each reading.
func TestReloadKeepsTheChangesOfTheProgram(t *testing.T) {
	t.Parallel()
	saw := newPart("", nil)
	node, _, change := changeable(t, false, cluster.WithReload(saw.prepare), cluster.WithChange(func(c *cluster.Config) { c.Sharding.MailboxSize = 5 }))
	change("sharding: {stuck-after: 2m}")
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, 5, saw.last().Sharding.MailboxSize)
}

func TestOnlyFilesCanBeReloaded(t *testing.T) {
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", free(t)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithConfig(cfg))...)
	require.NoError(t, err)
	require.ErrorIs(t, node.Reload(t.Context()), cluster.ErrNoFiles)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = node.Reload(ended) // The context has ended and there are no files: either error is right.
	require.NoError(t, node.Close())
	require.ErrorIs(t, node.Reload(t.Context()), sharding.ErrClosed)
}

// Reloads go one at a time; a caller waits for its turn no longer than its context, and
// Close ends the wait of the watcher.
func TestReloadsTakeTurns(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	block := func(ctx context.Context, _, _ cluster.Config) (cluster.Prepared, error) {
		entered <- struct{}{}
		select {
		case <-leave:
			return cluster.Prepared{}, nil
		case <-ctx.Done():
			return cluster.Prepared{}, context.Cause(ctx)
		}
	}
	node, _, change := changeable(t, true, cluster.WithReload(block))
	change("sharding: {stuck-after: 2m}")
	<-entered
	require.ErrorIs(t, node.Reload(patience.Expiring(t, time.Millisecond)), context.DeadlineExceeded)
	leave <- struct{}{}
	change("sharding: {stuck-after: 3m}")
	<-entered
	require.NoError(t, node.Close(), "while a part is preparing")
}

// A node that watches its files goes through a storm of changes, among them bad and
// half-written ones. Each configuration that it takes over is one that was written, as a
// whole, and in the end it has the last good one. covers F55, I31.
func TestWatchedFilesAreTakenOverWhole(t *testing.T) {
	t.Parallel()
	saw := newPart("", nil)
	_, path, change := changeable(t, true, cluster.WithReload(saw.prepare))
	write := func(n int) {
		change(fmt.Sprintf("sharding: {passivate-after: %ds, stuck-after: %ds, rebalance: {max-simultaneous: %d}}", n, n, n))
	}
	until := func(n int) {
		for {
			select {
			case <-saw.news:
				if saw.last().Sharding.Rebalance.MaxSimultaneous == n {
					return
				}
			case <-patience.Ended(t):
				require.FailNow(t, "the change was not taken over", n)
			}
		}
	}
	for i := 1; i <= 1000; i++ {
		write(i)
	}
	until(1000)
	for _, bad := range []string{"sharding: {passivate-after: ", "node: {address: 1.2.3.4:5}\n", ""} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
	}
	write(7)
	until(7)
	saw.mu.Lock()
	defer saw.mu.Unlock()
	require.Less(t, len(saw.to), 100, "a storm is a few reloads")
	for _, c := range saw.to {
		n := c.Sharding.Rebalance.MaxSimultaneous
		require.Equal(t, time.Duration(n)*time.Second, c.Sharding.PassivateAfter)
		require.Equal(t, time.Duration(n)*time.Second, c.Sharding.StuckAfter)
	}
}
