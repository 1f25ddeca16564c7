// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/attached"
)

// TestTheFileOfAllNodes loads the file that a run writes. All nodes that a run begins
// with are seed nodes in it, so that one that starts late finds one that still runs. Every
// timing is the default.
func TestTheFileOfAllNodes(t *testing.T) {
	dir := t.TempDir()
	_, err := newNodeProcesses(filepath.Join(dir, "bank"), dir, dir, false, nil)
	require.ErrorContains(t, err, "make demo", "without the program there are no nodes")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bank"), nil, 0o600))
	f, err := newNodeProcesses(filepath.Join(dir, "bank"), dir, dir, false, nil)
	require.NoError(t, err)
	defer f.ports.Close()
	cfg, err := cluster.Load(cluster.WithFile(f.config()))
	require.NoError(t, err)
	require.Len(t, cfg.Membership.SeedNodes, firstNodes)
	want := cluster.Default()
	want.Cluster.Name, want.Node.Address, want.Membership.SeedNodes = "bank", f.address(0), cfg.Membership.SeedNodes
	require.Equal(t, want, cfg)
}

// TestPickFindsTheOldest asks a node for the members and picks from them.
func TestPickFindsTheOldest(t *testing.T) {
	answer := `{"self":"x:1#1","members":[
		{"node":"x:1#1","status":"up","up_number":4},{"node":"x:2#1","status":"up","up_number":2},
		{"node":"x:3#1","status":"joining","up_number":0},{"node":"x:4#1","status":"up","up_number":3}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	f := &nodeProcesses{client: server.Client(), printer: &printer{out: io.Discard, begun: time.Now(), last: map[string]string{}}}
	for _, address := range []string{"x:1", "x:2", "x:3", "x:4"} {
		p := newProcess(address, address)
		p.HTTP, p.Node = strings.TrimPrefix(server.URL, "http://"), address+"#1"
		f.alive, f.all = append(f.alive, p), append(f.all, p)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	picked := map[string]bool{}
	for range 50 {
		oldest, err := f.pick(t.Context(), true, rnd)
		require.NoError(t, err)
		require.Equal(t, "x:2", oldest.address)
		other, err := f.pick(t.Context(), false, rnd)
		require.NoError(t, err)
		picked[other.address] = true
	}
	require.Equal(t, map[string]bool{"x:1": true, "x:4": true}, picked, "those that are up and not the oldest")

	require.Empty(t, f.ready(), "none has been admitted")
	f.alive[0].admitted = true
	require.Equal(t, []*process{f.alive[0]}, f.ready())
	f.forget(f.alive[1])
	require.Equal(t, 3, f.size())
	for _, p := range f.nodes() {
		require.NotEqual(t, "x:2", p.address)
	}
}

// TestAnIncarnationIsFoundByItsIdentity looks for a node and for the incarnation that
// was at its address before.
func TestAnIncarnationIsFoundByItsIdentity(t *testing.T) {
	v := view{Members: []member{{Node: "x:1#2", Status: "up"}, {Node: "x:2#1", Status: "up", Unreachable: true}}}
	require.Nil(t, v.find(&process{address: "x:1", Process: &attached.Process{Node: "x:1#1"}}))
	require.Equal(t, &v.Members[0], v.find(&process{address: "x:1", Process: &attached.Process{Node: "x:1#2"}}))
	require.Equal(t, 1, v.up(), "who is unreachable is not there")
}
