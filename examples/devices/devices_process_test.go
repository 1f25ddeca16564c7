// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && postgres && unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
)

// The product as its operators have it: five processes, a database, a load balancer, and devices that send
// readings all the time (load). The test does to it what happens to products, one after the other:
// a rolling deploy, two nodes that leave at once, and a node that is killed. Then an auditor reads the database.

const (
	nodes = 5
	// lookInterval is how often conditions are looked at.
	lookInterval = 50 * time.Millisecond
)

// world is the product with all around it.
type world struct {
	t        *testing.T
	dir      string
	database string
	ports    []int // Of the nodes, then those of their probes, then those for devices.
	nodes    [nodes]*attachedtest.Node
}

// newWorld builds the program, and writes the file that all nodes share.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), database: database, ports: attachedtest.Ports(t, 3*nodes)}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(w.dir, "devices"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := fmt.Sprintf(`cluster: {name: devices}
membership: {seed-nodes: [%q, %q, %q]}
management: {health: {metrics: true}}
telemetry: {metrics: prometheus}
states: {store: postgres}
shutdown: {unready-for: 1500ms} # The balancer has noticed after 1.2 s.
`, w.node(0), w.node(1), w.node(2))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "cluster.yaml"), []byte(file), 0o600))
	return w
}

func (w *world) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", w.ports[i]) }
func (w *world) node(i int) string    { return w.address(i) }
func (w *world) health(i int) string  { return w.address(nodes + i) }
func (w *world) http(i int) string    { return w.address(2*nodes + i) }

// start starts nodes.
func (w *world) start(which ...int) {
	w.t.Helper()
	for _, i := range which {
		cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), filepath.Join(w.dir, "devices"), "-attached", "-config", "cluster.yaml", "-database", w.database, "-http", w.http(i))
		cmd.Dir = w.dir
		cmd.Env = append(os.Environ(),
			"QUORATE_NODE__ADDRESS="+w.node(i), fmt.Sprintf("QUORATE_NODE__DATA_DIR=data-%d", i), "QUORATE_MANAGEMENT__HEALTH__ADDRESS="+w.health(i))
		w.nodes[i] = attachedtest.Start(w.t, w.node(i), cmd)
	}
}

// awaitReady waits until the probes of nodes succeed.
func (w *world) awaitReady(which ...int) {
	w.t.Helper()
	for _, i := range which {
		for _, path := range []string{"/health/ready", "/health/startup", "/health/live"} {
			patience.Eventually(w.t, func() bool {
				status, _ := w.get(w.health(i) + path)
				return status == http.StatusOK
			}, "%s succeeds at node %d", path, i)
		}
	}
}

// leave has nodes leave at once, as a supervisor does it, and waits until they have.
func (w *world) leave(which ...int) {
	w.t.Helper()
	for _, i := range which {
		require.NoError(w.t, w.nodes[i].Cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, i := range which {
		select {
		case <-w.nodes[i].Ended():
		case <-patience.Ended(w.t):
			require.FailNow(w.t, "a node does not end", "%s", w.nodes[i].Log)
		}
		require.Equal(w.t, 0, w.nodes[i].Cmd.ProcessState.ExitCode(), "%s", w.nodes[i].Log)
	}
}

// get asks for a page. The status is 0 when nobody answers.
func (w *world) get(url string) (status int, text string) {
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(b)
}

// begin starts the balancer and the load before the nodes. The function that it returns stops both.
func (w *world) begin() (l *load, b *balancer, end func()) {
	w.t.Helper()
	backends := make([]*backend, nodes)
	for i := range backends {
		backends[i] = &backend{http: w.http(i), health: w.health(i)}
	}
	b = newBalancer(backends)
	server := httptest.NewServer(b)
	l = newLoad(server.URL)
	watching, unwatch := context.WithCancel(context.Background())
	loading, unload := context.WithCancel(context.Background())
	broken, giveUp := context.WithCancel(context.Background())
	var watched, loaded sync.WaitGroup
	watched.Go(func() { b.watch(watching) })
	loaded.Go(func() { l.run(loading, broken) })
	end = sync.OnceFunc(func() {
		unload()
		loaded.Wait()
		unwatch()
		watched.Wait()
		server.Close()
	})
	w.t.Cleanup(func() {
		unload()
		giveUp() // A test that has failed has no nodes any more.
		end()
	})
	return l, b, end
}

// Devices notice neither a deploy nor nodes that leave, and a node that is killed makes them wait, but
// leaves nobody in doubt about what was sent a second later. What was acknowledged is stored once.
func TestDevicesWithPostgresNoticeNoDeployAndLoseNoReading(t *testing.T) {
	database, pool := startPostgres(t)
	w := newWorld(t, database)
	installAudit(t, pool)
	w.start(0, 1, 2, 3, 4)
	w.awaitReady(0, 1, 2, 3, 4)

	began := time.Now()
	l, b, end := w.begin()
	noFailure := func(during string) {
		t.Helper()
		failures, first := l.failed(time.Time{})
		require.Empty(t, first, "%s: %d requests have failed; the first: %s", during, len(failures), first)
		t.Logf("%s: %s; after %v, %d requests were sent again", during, l.figures(), time.Since(began).Round(time.Second), b.again.Load())
	}
	everyDevice := func(since time.Time) {
		t.Helper()
		looks := time.NewTicker(lookInterval)
		defer looks.Stop()
		for ended := patience.Ended(t); !l.allSentSince(since); {
			select {
			case <-looks.C:
			case <-ended:
				failures, first := l.failed(since)
				require.FailNow(t, "a device waits", "%d requests have failed meanwhile; the first: %s", len(failures), first)
			}
		}
	}
	everyDevice(began)
	noFailure("all devices once")
	w.seesRequests(l.url)

	for i := range nodes {
		w.leave(i)
		w.start(i)
		w.awaitReady(i)
	}
	noFailure("a rolling deploy")

	w.leave(0, 1)
	noFailure("two nodes leave at once")
	w.start(0, 1)
	w.awaitReady(0, 1)
	noFailure("two nodes come")

	killed := time.Now()
	w.nodes[2].Kill() // The oldest: it has the job, and the coordinator of the devices.
	gone := time.Since(killed)
	later := killed.Add(time.Second)
	everyDevice(later)
	inDoubt, _ := l.failed(killed.Add(-requestTimeout))
	var last failure // The one of them that was sent last.
	for _, f := range inDoubt {
		if f.sent.After(last.sent) {
			last = f
		}
	}
	t.Logf("a node is killed: %s; after %v, %d requests were sent again; %d are in doubt", l.figures(), time.Since(began).Round(time.Second), b.again.Load(), len(inDoubt))
	t.Logf("the process was gone after %v; the last request in doubt was sent after %v: %s", gone, last.sent.Sub(killed), last)
	failures, first := l.failed(later)
	require.Empty(t, first, "%d requests that were sent a second after the node was killed, or later, had no success; the first: %s", len(failures), first)
	for _, f := range inDoubt {
		require.Equal(t, outcomeUnknown, f.outcome, "%s", f)
	}

	end()
	var acknowledged uint64
	for i := range l.books {
		acknowledged += l.books[i].acknowledged
	}
	patience.Eventually(t, func() bool {
		var readings uint64
		err := pool.QueryRow(t.Context(), "SELECT readings FROM device_totals").Scan(&readings)
		return err == nil && readings == acknowledged
	}, "the periodic job goes on, and has the total")
	audit(t, pool, l.books)
}

// seesRequests looks at what operators see of requests: metrics of every node, and a trace that begins with a
// client and reaches another node.
func (w *world) seesRequests(url string) {
	w.t.Helper()
	for i := range nodes {
		_, metrics := w.get(w.health(i) + "/metrics")
		for _, name := range []string{"devices_readings_total", "quorate_sharding_state_", "quorate_membership_standing"} {
			require.Contains(w.t, metrics, name)
		}
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for i := range 20 { // One of them lives on another node than that which is asked.
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, fmt.Sprintf("%s/devices/device-%d", url, i), bytes.NewReader(nil))
		require.NoError(w.t, err)
		request.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		response, err := http.DefaultClient.Do(request)
		require.NoError(w.t, err)
		require.NoError(w.t, response.Body.Close())
		require.Equal(w.t, http.StatusOK, response.StatusCode)
	}
	patience.Eventually(w.t, func() bool {
		seen := 0
		for i := range nodes {
			if _, spans := w.get(w.http(i) + "/traces"); strings.Contains(spans, trace) {
				seen++
			}
		}
		return seen > 1
	}, "a trace reaches two nodes")
}
