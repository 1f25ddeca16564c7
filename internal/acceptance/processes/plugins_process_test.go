// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/bank"
)

// The plugins of the examples under nodes that are processes. After what the tests share,
// the building of plugins and a load, an allocation plugin is swapped under that load, and
// a downing plugin is taken over by a cluster, by way of the strategy in its state.

// build builds one of the example plugins into the directory of the city and returns
// its path.
func (c *city) build(plugin, as string, flags ...string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, as)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, ".")...)
	cmd.Dir = filepath.Join("..", "..", "..", "examples", "plugins", plugin)
	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, "%s", out)
	return path
}

// checksum returns the checksum of a file.
func checksum(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// strategic is a node with a management interface, which tells of its plugins.
type strategic struct {
	*node

	management string
}

// startStrategic starts the i-th node, with a management interface, in a zone of its
// own.
func (c *city) startStrategic(i int, args ...string) strategic {
	c.t.Helper()
	s := strategic{management: c.address(len(c.ports) - 1 - i)}
	s.node = c.launchWith(args, "QUORATE_MANAGEMENT__ADDRESS="+s.management, fmt.Sprintf("QUORATE_NODE__ZONE=zone-%d", i))
	c.awaitHello(s.node)
	return s
}

// plugins asks the node how its plugins are doing.
func (s strategic) plugins(ctx context.Context) ([]cluster.PluginStatus, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.management+"/v1/plugins", nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.city.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var all struct {
		Plugins []cluster.PluginStatus `json:"plugins"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", s.management, resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&all)
	return all.Plugins, err
}

// awaitPlugin waits until the node has one plugin, for which ok is true.
func (s strategic) awaitPlugin(what string, ok func(cluster.PluginStatus) bool) (is cluster.PluginStatus) {
	s.city.t.Helper()
	s.city.await(func(ctx context.Context) error {
		all, err := s.plugins(ctx)
		if err == nil && (len(all) != 1 || !ok(all[0])) {
			err = fmt.Errorf("%s: not so at %s: %+v", what, s.address, all)
		}
		if err == nil {
			is = all[0]
		}
		return err
	})
	return is
}

// counters make transfers from accounts that nobody has asked before, so that entities start
// everywhere all the time. They ask for each transfer once: one that fails is a fault.
type counters struct {
	city   *city
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	booked map[string]int64 // The cents that came to each account.
	faults []error
}

// openCounters starts two counters, which use the nodes in turn.
func (c *city) openCounters(nodes ...strategic) *counters {
	k := &counters{city: c, booked: map[string]int64{}}
	ctx, cancel := context.WithCancel(c.t.Context())
	k.cancel = cancel
	for i := range 2 {
		// Owned by the counters; ends with close.
		k.work.Go(func() { k.serve(ctx, i, nodes) })
	}
	c.t.Cleanup(func() { cancel(); k.work.Wait() })
	return k
}

func (k *counters) serve(ctx context.Context, i int, nodes []strategic) {
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t := bank.Transfer{ID: fmt.Sprintf("c%d-%d", i, n), From: fmt.Sprintf("fresh-%d-%d", i, n), To: fmt.Sprintf("till-%d", i), Cents: 1}
		err := nodes[n%len(nodes)].transfer(context.WithoutCancel(ctx), t) // The client bounds the request.
		k.mu.Lock()
		if err != nil {
			k.faults = append(k.faults, fmt.Errorf("%s: %w", t.ID, err))
		} else {
			k.booked[t.To]++
		}
		k.mu.Unlock()
	}
}

// close ends the work, and checks that no transfer has failed and none is lost.
func (k *counters) close(nodes ...*node) {
	k.city.t.Helper()
	k.cancel()
	k.work.Wait()
	require.Empty(k.city.t, k.faults)
	require.Len(k.city.t, k.booked, 2)
	want, ids := map[string]int64{}, []string(nil)
	for id, n := range k.booked {
		want[id], ids = bank.OpeningCents+n, append(ids, id)
	}
	k.city.t.Logf("booked without a failure: %v", k.booked)
	k.city.checkBooks(want, ids, nodes)
}

// zones returns the lines of a file that nodes watch. By them a plugin places and moves
// shards, and is asked all the time.
func zones(path, sum, settings string) []string {
	return []string{
		"reload: {watch: true}",
		"sharding: {allocation: {strategy: zones}, rebalance: {idle-check: 50ms}}",
		fmt.Sprintf("plugins: {zones: {policy: allocation, path: %s, sha256: %s, settings: {%s}}}", path, sum, settings),
	}
}

// TestAnAllocationPluginIsSwappedUnderLoad changes the file of a cluster under load, while
// shards move to a node that has joined: other settings, changes that cannot work, and
// another executable. A change that works replaces the plugin; one that does not is
// refused, and the old process goes on. No ask fails in all of it.
//
// covers F55, F58, I31, I34.
func TestAnAllocationPluginIsSwappedUnderLoad(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	c := newCity(t)
	first, second := c.build("zoneaware", "zones-1"), c.build("zoneaware", "zones-2", "-ldflags=-w")
	sum, other := checksum(t, first), checksum(t, second)
	require.NotEqual(t, sum, other)
	change := func(path, sum, settings string) { c.configure("cluster.yaml", zones(path, sum, settings)...) }

	change("zones-1", sum, "skew: 1")
	a, b := c.startStrategic(0), c.startStrategic(1)
	c.awaitMembers(a.node, b.node)
	load := c.openCounters(a, b)
	third := c.startStrategic(2)
	// The oldest node asks its plugin: it has the coordinator.
	decides := func(than cluster.PluginStatus) cluster.PluginStatus {
		return a.awaitPlugin("it decides", func(p cluster.PluginStatus) bool { return p.Calls >= than.Calls+5 })
	}
	before := decides(cluster.PluginStatus{})
	require.Equal(t, sum, before.SHA256)

	change("zones-1", sum, "skew: 2")
	swapped := func(swaps uint64) func(cluster.PluginStatus) bool {
		return func(p cluster.PluginStatus) bool { return p.Swaps == swaps && p.State == "running" }
	}
	b.awaitPlugin("its settings are swapped", swapped(1))
	now := decides(a.awaitPlugin("its settings are swapped", swapped(1)))
	require.NotEqual(t, before.PID, now.PID)

	useless, err := exec.LookPath("true")
	require.NoError(t, err)
	for _, refused := range []struct{ path, sum, settings, says string }{
		{useless, checksum(t, useless), "skew: 2", "not a plugin"},
		{"zones-2", strings.Repeat("ab", sha256.Size), "skew: 2", "the file has " + other},
		{"zones-2", other, "skwe: 2", "skwe"},
		{"zones-2", other, "skew: 0", "0 is less than 1"},
	} {
		change(refused.path, refused.sum, refused.settings)
		for _, n := range []strategic{a, b} {
			n.awaitLog("the changed configuration is not taken over", refused.says)
		}
		is := decides(now)
		require.Equal(t, []any{now.PID, now.SHA256, now.Swaps}, []any{is.PID, is.SHA256, is.Swaps}, "after %+v", refused)
		now = is
	}

	change("zones-2", other, "skew: 2")
	b.awaitPlugin("another executable runs", swapped(2))
	last := decides(a.awaitPlugin("another executable runs", swapped(2)))
	require.Equal(t, other, last.SHA256)
	require.Zero(t, last.Failures, "%+v", last)
	require.Zero(t, last.Restarts, "%+v", last)
	third.awaitPlugin("another executable runs", swapped(2))
	load.close(a.node, b.node, third.node)
	a.awaitLog("zone-2", "zone-aware") // The plugin has moved shards to the third.
}

// TestADowningPluginIsTakenOverThroughTheRegister gives a downing plugin to one node, which
// goes on with the strategy of the cluster until the other node has the plugin too. Then its
// settings change in the same way, and the earlier processes end.
//
// covers F55, I4.
func TestADowningPluginIsTakenOverThroughTheRegister(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	c := newCity(t, "reload: {watch: true}")
	sum := checksum(t, c.build("witness", "witness"))
	c.configure("second.yaml", "reload: {watch: true}")
	a, b := c.startStrategic(0), c.startStrategic(1, "-config", filepath.Join(c.dir, "second.yaml"))
	c.awaitMembers(a.node, b.node)
	change := func(file, url string) {
		c.configure(file, "reload: {watch: true}", "downing: {strategy: witness}",
			fmt.Sprintf("plugins: {witness: {policy: downing, path: witness, sha256: %s, settings: {url: %q, cluster: bank}}}", sum, url))
	}
	running := func(p cluster.PluginStatus) bool { return p.State == "running" }

	change("cluster.yaml", "http://127.0.0.1:1")
	before := a.awaitPlugin("the first node has it", running)
	a.awaitLog("subject=strategy", "verdict=waiting", "witness")
	require.NotContains(t, a.log.String()+b.log.String(), "have loaded witness", "the other node does not have it")
	change("second.yaml", "http://127.0.0.1:1")
	b.awaitPlugin("the other node has it", running)
	for _, n := range []strategic{a, b} {
		n.awaitLog("subject=strategy", "verdict=unloaded", "keep-majority 1 is used by nobody any more")
	}
	require.Contains(t, a.log.String()+b.log.String(), "all members have loaded witness", "whoever leads says it")

	change("second.yaml", "http://127.0.0.1:2")
	change("cluster.yaml", "http://127.0.0.1:2")
	for _, n := range []strategic{a, b} {
		n.awaitLog("subject=strategy", "verdict=unloaded", "witness")
	}
	after := a.awaitPlugin("the process of before has ended", func(p cluster.PluginStatus) bool { return p.PID != before.PID })
	require.Equal(t, sum, after.SHA256)
	c.awaitMembers(a.node, b.node)
}
