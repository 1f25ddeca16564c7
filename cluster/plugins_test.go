// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/sharding"
)

// Nodes whose plugins are values of this process: a host (stage) opens them (actor), and
// they decide as built-in strategies do. First plugins run, cannot be opened, or cannot be
// linked; then a plugin decides how a node joins, also while its process is away; then plugins
// find contact points and judge heartbeats.

// stage is a host whose plugins are values of this process.
type stage struct {
	refuse     string // The plugin that cannot be opened.
	unsuitable string // The path to which no plugin can be swapped.

	// away is called with each question how a node joins, and its error fails the answer. If
	// away is nil, each question is answered.
	away func(context.Context) error

	// opening is called before a plugin is opened, and its error keeps it from that; may be nil.
	opening func(context.Context) error

	batches atomic.Int64 // How many questions about heartbeats were asked.
	opens   atomic.Int64 // How many plugins were opened.
	swaps   atomic.Int64 // How many plugins were swapped.

	mu   sync.Mutex
	open map[string]plugins.Config
}

// Open opens a plugin of a policy that has a built-in strategy.
func (s *stage) Open(ctx context.Context, name string, section plugins.Config, _ *slog.Logger, observe func(plugins.Event)) (*actor, error) {
	if name == s.refuse {
		return nil, errors.New(name + " has no costume")
	}
	if s.opening != nil {
		if err := s.opening(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[string]plugins.Config{}
	}
	s.open[name] = section
	s.opens.Add(1)
	observe(plugins.Event{Type: plugins.Started, Plugin: name})
	return &actor{stage: s, name: name, policy: section.Policy}, nil
}

// plays returns the path of an open plugin, empty if it is not open.
func (s *stage) plays(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[name].Path
}

// actor is a plugin of a stage.
type actor struct {
	stage  *stage
	name   string
	policy plugins.Policy
}

// Status says that the plugin runs.
func (a *actor) Status() plugins.Status {
	return plugins.Status{Name: a.name, Policy: a.policy, State: plugins.StateRunning, Manifest: plugins.Manifest{Name: a.name, Version: "v1"}}
}

// Downing decides as a built-in strategy does.
func (*actor) Downing() (downing.Provider, error) { return downing.New(downing.Default()) }

// Allocation decides as a built-in strategy does.
func (*actor) Allocation() (allocation.Strategy, error) { return allocation.New(allocation.Default()) }

// JoinDecider decides as the built-in rule does, unless its process is away.
func (a *actor) JoinDecider() (bootstrap.JoinDecider, error) { return sage{a.stage}, nil }

type sage struct{ stage *stage }

func (s sage) Decide(ctx context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	if s.stage.away != nil {
		if err := s.stage.away(ctx); err != nil {
			return bootstrap.Decision{}, err
		}
	}
	return bootstrap.LowestAddress{}.DecideNow(o), nil
}

// FailureDetector judges as phi-accrual does.
func (a *actor) FailureDetector() (fd.Judge, error) {
	factory, err := fd.NewFactory(fd.Default())
	return &listener{a.stage, fd.NewDetectorJudge(factory)}, err
}

// listener is a judge that counts what it is asked.
type listener struct {
	stage *stage
	judge *fd.DetectorJudge
}

func (l *listener) Judge(ctx context.Context, b fd.Batch) (fd.Verdicts, error) {
	l.stage.batches.Add(1)
	return l.judge.Judge(ctx, b)
}

// Discovery finds the address that is the path of the plugin.
func (a *actor) Discovery() (discovery.Discovery, error) { return guide{a}, nil }

type guide struct{ actor *actor }

func (g guide) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	t, err := discovery.ParseTarget(strings.TrimPrefix(g.actor.stage.plays(g.actor.name), "/at/"))
	return discovery.Targets{List: []discovery.Target{t}, Reason: "the path says so"}, err
}

// Swap takes another configuration, unless its path is unsuitable.
func (a *actor) Swap(_ context.Context, section plugins.Config) error {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	if section.Path == a.stage.unsuitable {
		return errors.New(a.name + " does not suit")
	}
	a.stage.open[a.name] = section
	a.stage.swaps.Add(1)
	return nil
}

// Close takes the plugin off the stage.
func (a *actor) Close(context.Context) error {
	a.stage.mu.Lock()
	defer a.stage.mu.Unlock()
	delete(a.stage.open, a.name)
	return nil
}

// cast returns the lines of a file by which two plugins decide, and a third one is not
// chosen.
func cast(path string) []string {
	return []string{
		"downing: {strategy: judge}", "sharding: {allocation: {strategy: mover}}",
		"plugins:",
		"  judge: {policy: downing, path: " + path + ", unpinned: true}",
		"  mover: {policy: allocation, path: " + path + ", unpinned: true}",
		"  spare: {policy: downing, path: " + path + ", unpinned: true}",
		"management: {address: \"127.0.0.1:0\"}",
	}
}

// The host of the program opens the plugins that the file chooses, and no others; they are
// shown, changed by a reload, and closed with the node.
func TestTheHostOfTheProgramRunsThePluginsOfTheFile(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, cast("/bin/one")...)
	s := new(stage)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.AwaitUp(t.Context()))
	all := node.Plugins()
	require.Len(t, all, 2)
	require.Equal(t, "judge", all[0].Name)
	require.Equal(t, "mover", all[1].Name)
	require.Equal(t, "running", all[1].State)
	status, body := fetch(t, node, "/v1/plugins")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"name":"judge"`)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("/bin/one"), []byte("/bin/two")), 0o600))
	require.NoError(t, node.Reload(t.Context()))
	require.Equal(t, "/bin/two", s.plays("mover"))
	require.NoError(t, node.Close())
	require.Empty(t, s.plays("judge")+s.plays("mover")+s.plays("spare"))
}

// A plugin that cannot be opened is the error of the start.
func TestAPluginThatCannotBeOpenedIsTheErrorOfTheStart(t *testing.T) {
	for _, name := range []string{"judge", "mover"} {
		path, _ := lone(t, cast("/bin/one")...)
		s := &stage{refuse: name}
		_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s))...)
		require.EqualError(t, err, "cluster: "+name+" has no costume")
		require.Empty(t, s.plays("judge")+s.plays("mover"))
	}
}

// A file with plugins is refused by a program that did not link what runs them, at the
// start and by the check, with one message whatever their number.
func TestPluginsThatTheProgramDidNotLinkAreRefused(t *testing.T) {
	path, _ := lone(t, cast("/bin/one")...)
	want := path + ":6: plugins: what runs plugins is not part of this program: import github.com/quorate/quorate/plugins/host, " +
		"and start the node with the option cluster.WithPlugins(host.New())"
	_, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.EqualError(t, err, want)
	require.EqualError(t, cluster.Check(cluster.Extensions{}, path), want)
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{cluster.WithPlugins(new(stage))}}, path))
}

// A plugin decides for a node that looks contact points up. A reload swaps its executable,
// and swaps it back when the next plugin cannot be swapped.
func TestAPluginDecidesHowANodeJoins(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	address := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", "management: {address: \"127.0.0.1:0\"}",
		"membership: {discovery: {methods: [book], join-decider: sage, required-contact-point-nr: 1, stable-margin: 100ms}}", "discovery-book: {page: '"+address+"'}",
		"sharding: {allocation: {strategy: mover}}",
		"plugins:", "  sage: {policy: join-decider, path: /bin/one, unpinned: true}", "  mover: {policy: allocation, path: /bin/first, unpinned: true}")
	s := &stage{unsuitable: "/bin/third"}
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{reads(&closed), cluster.WithPlugins(s)}}, path))
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s), reads(&closed))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	ctx := patience.Context(t)
	require.NoError(t, node.AwaitUp(ctx))
	require.Equal(t, "join-decider", node.Plugins()[1].Policy)

	change := func(pairs ...string) error {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
		return node.Reload(ctx)
	}
	require.NoError(t, change("/bin/one", "/bin/two"))
	require.Equal(t, "/bin/two", s.plays("sage"))
	require.ErrorContains(t, change("/bin/two", "/bin/three", "/bin/first", "/bin/third"), "mover does not suit")
	require.Equal(t, "/bin/two", s.plays("sage"), "one part of a change is not taken over alone")
	require.Equal(t, "/bin/first", s.plays("mover"))
	require.NoError(t, node.Close())
	require.Empty(t, s.plays("sage")+s.plays("mover"))
}

// While the plugin that decides how a node joins has no process, the node has no cluster;
// when the process is back, it forms one.
func TestANodeWaitsForThePluginThatDecidesHowItJoins(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	address := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", "management: {address: \"127.0.0.1:0\"}",
		"membership: {discovery: {methods: [book], join-decider: sage, required-contact-point-nr: 1, stable-margin: 10ms}}", "discovery-book: {page: '"+address+"'}",
		"plugins:", "  sage: {policy: join-decider, path: /bin/one, unpinned: true}")
	const failures = 1
	questions, waits, back := 0, make(chan struct{}), make(chan struct{})
	s := &stage{away: func(ctx context.Context) error {
		questions++ // A node asks one question at a time.
		switch {
		case questions <= failures:
			return plugins.ErrUnavailable
		case questions == failures+1:
			close(waits)
		}
		select {
		case <-back:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s), reads(&closed))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	ctx := patience.Context(t)
	patience.Receive(t, waits, "a question to the plugin")
	require.Empty(t, node.Membership().State().Members())
	close(back)
	require.NoError(t, node.AwaitUp(ctx))
	require.NoError(t, node.Close())
}

// A reload that is under way when its node ends is given up, and leaves no plugin behind.
func TestAReloadEndsWithItsNode(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "sharding: {allocation: {strategy: least-shard}}", "plugins:", "  mover: {policy: allocation, path: /bin/one, unpinned: true}")
	s := new(stage)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.AwaitUp(t.Context()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("least-shard"), []byte("mover")), 0o600))
	entered, release, reloaded := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s.opening = func(ctx context.Context) error {
		close(entered)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	go func() { reloaded <- node.Reload(t.Context()) }() // Ends with the node.
	<-entered
	require.NoError(t, node.Close())
	close(release)
	require.ErrorIs(t, <-reloaded, sharding.ErrClosed)
	require.Empty(t, s.plays("mover"))
	require.ErrorIs(t, node.Reload(t.Context()), sharding.ErrClosed)
}

// Which strategy allocates can change while the node runs: to a plugin, to another, and back to
// the built-in one. A plugin that cannot be opened, and a name that is none, change nothing. The
// plugin before is ended.
func TestAnotherAllocationStrategyWithoutARestart(t *testing.T) {
	t.Parallel()
	path, _ := lone(t, "sharding: {allocation: {strategy: least-shard}}", "plugins:",
		"  mover: {policy: allocation, path: /bin/one, unpinned: true}", "  shaker: {policy: allocation, path: /bin/two, unpinned: true}",
		"  broken: {policy: allocation, path: /bin/three, unpinned: true}")
	s := &stage{refuse: "broken"}
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithPlugins(s))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.AwaitUp(t.Context()))
	names := func() (names []string) {
		for _, p := range node.Plugins() {
			names = append(names, p.Name)
		}
		return names
	}
	present := "least-shard"
	change := func(to string) error {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("{strategy: "+present+"}"), []byte("{strategy: "+to+"}")), 0o600))
		present = to
		return node.Reload(t.Context())
	}
	for _, to := range []string{"mover", "shaker", "mover", "least-shard", "shaker"} {
		before := present
		require.NoError(t, change(to))
		if to == "least-shard" {
			require.Empty(t, names())
		} else {
			require.Equal(t, []string{to}, names())
			require.NotEmpty(t, s.plays(to))
		}
		if before == "shaker" { // The other one is opened again before it is closed.
			patience.Eventually(t, func() bool { return s.plays(before) == "" }, "%s is closed", before)
		}
	}
	require.ErrorContains(t, change("broken"), "broken has no costume")
	require.ErrorContains(t, change("dice"), `sharding.allocation.strategy: "dice" is neither built in (consistent-hashing, external, least-shard, least-shard-threshold, load-aware) nor the name of a plugin`)
	require.Equal(t, []string{"shaker"}, names())
	require.NoError(t, change("shaker"))
	require.NoError(t, node.Close())
	require.Empty(t, s.plays("mover")+s.plays("shaker"))
}

// A plugin finds the contact points of a node, beside a method that the program links; a reload
// swaps it.
func TestAPluginFindsContactPoints(t *testing.T) {
	t.Parallel()
	var closed atomic.Int32
	address := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", "discovery-book: {page: nowhere}",
		"membership: {discovery: {methods: [book, guide], required-contact-point-nr: 1, stable-margin: 10ms}}",
		"plugins:", "  guide: {policy: discovery, path: /at/"+address+", unpinned: true}")
	s := new(stage)
	options := []cluster.Option{cluster.WithPlugins(s), reads(&closed)}
	require.NoError(t, cluster.Check(cluster.Extensions{Options: options}, path))
	node, err := cluster.Start(t.Context(), quiet(append(options, cluster.WithFile(path))...)...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	ctx := patience.Context(t)
	require.NoError(t, node.AwaitUp(ctx))
	require.Equal(t, "discovery", node.Plugins()[0].Policy)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("/at/"), []byte("/now/at/")), 0o600))
	require.NoError(t, node.Reload(ctx))
	require.Equal(t, "/now/at/"+address, s.plays("guide"))
	require.NoError(t, node.Close())
	require.Empty(t, s.plays("guide"))
}

// A plugin judges heartbeats.
func TestAPluginJudgesHeartbeats(t *testing.T) {
	t.Parallel()
	ctx := patience.Context(t)
	seed := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+seed+"}", "membership: {seed-nodes: ["+seed+"], failure-detector: {strategy: listener}}",
		"plugins:", "  listener: {policy: failure-detector, path: /bin/one, unpinned: true}")
	s := new(stage)
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{cluster.WithPlugins(s)}}, path))
	for i := range 2 {
		node, err := cluster.Start(ctx, quiet(cluster.WithFile(path), cluster.WithPlugins(s), cluster.WithChange(func(c *cluster.Config) {
			if i > 0 {
				c.Node.Address = free(t)
			}
		}))...)
		require.NoError(t, err)
		defer func() { _ = node.Close() }()
		require.NoError(t, node.AwaitUp(ctx))
		require.Equal(t, "failure-detector", node.Plugins()[0].Policy)
	}
	patience.Eventually(t, func() bool { return s.batches.Load() > 2 }, "it judges")
}
