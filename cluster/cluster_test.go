// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// Real nodes from files, with what the tests of this package share. First a node runs, and
// its HTTP interface answers; then come faults of files, what overrides a file, formats and
// paths; last a port that is in use, faults of settings in code, and nodes that leave.

// TestMain has many tests run at once: most of their time they wait for timers of a node.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// file writes a configuration and returns its path.
func file(t *testing.T, lines ...string) string {
	t.Helper()
	patience.Watch(t) // The limits of the node are real.
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// free returns an address at which nothing listens. Its port lies below those that systems take for
// connections, and no other test that asks here is given it until this one ends: the UDP port of the
// same number, which no node uses, is held meanwhile.
func free(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = held.Close() }) // Nothing was sent.
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
	require.FailNow(t, "there is no free port from 20000 to 29999")
	return ""
}

// quiet adds to options the one by which a node logs nothing.
func quiet(opts ...cluster.Option) []cluster.Option {
	return append(opts, cluster.WithLogger(slog.New(slog.DiscardHandler)))
}

// lone writes the file of a cluster of one node, and returns its path and the node's
// address.
func lone(t *testing.T, more ...string) (path, address string) {
	t.Helper()
	address = free(t)
	return file(t, append([]string{
		"cluster: {name: test}", "node: {address: " + address + ", roles: [backend]}", "membership: {seed-nodes: [" + address + "]}",
	}, more...)...), address
}

// counter is an entity that adds up the numbers that it is sent.
type counter struct{ n int64 }

// Receive adds a number, and answers with the sum.
func (c *counter) Receive(ctx *sharding.Context, add *wrapperspb.Int64Value) error {
	c.n += add.GetValue()
	return ctx.Reply(wrapperspb.Int64(c.n))
}

// A node from a file comes up, runs entities, and leaves in order by Close,
// which may be called again and from several goroutines.
func TestANodeFromAFile(t *testing.T) {
	t.Parallel()
	path, address := lone(t)
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.AwaitUp(t.Context()))
	require.Equal(t, address, node.Self().Address.String())
	require.True(t, node.Membership().HasRole("backend"))
	counters, err := sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	for want := range int64(3) {
		sum, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), counters, "a", wrapperspb.Int64(1))
		require.NoError(t, err)
		require.Equal(t, want+1, sum.GetValue())
	}
	var closing sync.WaitGroup
	for range 4 {
		closing.Go(func() { _ = node.Close() })
	}
	closing.Wait()
	require.NoError(t, node.Close())
	<-node.Done()
	require.NoError(t, node.Err(), "it left in order")
	require.NoError(t, node.Leave(t.Context()))
	require.ErrorIs(t, node.AwaitUp(t.Context()), membership.ErrClosed)
	_, err = sharding.Ask[*wrapperspb.Int64Value](t.Context(), counters, "a", wrapperspb.Int64(1))
	require.Error(t, err)
}

// The HTTP interface tells of the node until the node is closed, and listens no more
// afterwards. A program adds routes of its own.
func TestTheHTTPInterfaceOfANode(t *testing.T) {
	path, address := lone(t, "management: {address: \"127.0.0.1:0\"}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithRoutes(management.Route{
		Path: "/v1/own", Answer: func(context.Context, management.Request) (any, error) { return "mine", nil },
	}))...)
	require.NoError(t, err)
	defer func() { _ = node.Close() }()
	require.NoError(t, node.AwaitUp(t.Context()))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	at := "http://" + node.ManagementAddress()
	get := func(path string) string {
		response, err := client.Get(at + path)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, `{"status":"live"}`, get("/health/live"))
	require.Contains(t, get("/v1/members"), `"node":"`+address)
	require.Contains(t, get("/v1/decisions?component=membership"), "formed cluster")
	require.JSONEq(t, `"mine"`, get("/v1/own"))
	require.JSONEq(t, fmt.Sprintf(`{"self":%q,"kinds":[]}`, node.Self()), get("/v1/kinds"))
	_, err = sharding.Start(node, sharding.Kind[*wrapperspb.Int64Value]{
		Name: "counter", New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return new(counter) },
	})
	require.NoError(t, err)
	require.Contains(t, get("/v1/kinds"), `{"name":"counter","shards":1000,"hosted":`)
	require.Contains(t, get("/v1/kinds/counter/entities/a"), `"entity":"a"`)
	require.Contains(t, get("/v1/kinds"), fmt.Sprintf(`"coordinator":%q,"term":"`, node.Self()))
	require.Contains(t, get("/v1/kinds/counter/shards/17"), `"shard":17`)
	require.Contains(t, get("/v1/kinds/counter/shards/1000"), "0 to 999")
	require.NoError(t, node.Membership().Close())
	require.Contains(t, get("/health/live"), "not live")
	require.NoError(t, node.Close())
	_, err = client.Get(at + "/health/live")
	require.Error(t, err)

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) {
		c.Management.Address = taken.Addr().String()
	}))...)
	require.ErrorContains(t, err, "management: address "+taken.Addr().String())
}

// Each class of fault is reported with file, line, key and cure.
func TestFaultsOfAFile(t *testing.T) {
	good := []string{"cluster: {name: test}", "node: {address: 127.0.0.1:7946}"}
	tests := map[string]struct {
		lines []string
		class error
		wants []string
	}{
		"unknown key": {
			[]string{"membership:", "  gossip-intervall: 1s"},
			config.ErrUnknownKey,
			[]string{"cluster.yaml:4: membership.gossip-intervall: unknown key", `did you mean "gossip-interval"`},
		},
		"unknown section": {
			[]string{"membreship: {}"}, config.ErrUnknownKey, []string{"cluster.yaml:3: membreship: unknown section", `did you mean "membership"`},
		},
		"deep unknown key": {
			[]string{"membership:", "  failure-detector:", "    treshold: 8"},
			config.ErrUnknownKey,
			[]string{"cluster.yaml:5: membership.failure-detector.treshold", `"threshold"`},
		},
		"not a duration": {
			[]string{"membership: {fence: 3}"}, config.ErrBadValue, []string{"cluster.yaml:3: membership.fence: the number 3 is not a duration"},
		},
		"not a number": {
			[]string{"sharding: {number-of-shards: many}"}, config.ErrBadValue, []string{"cluster.yaml:3: sharding.number-of-shards"},
		},
		"syntax": {
			[]string{"membership: [unclosed"}, config.ErrSyntax, []string{"cluster.yaml:"},
		},
		"key twice": {
			[]string{"node: {zone: a}"}, config.ErrSyntax, []string{"cluster.yaml:3", "node"},
		},
		"out of range in membership": {
			[]string{"membership: {push-fanout: 99}"}, config.ErrInvalid, []string{"cluster.yaml:3: membership.push-fanout: 99", "16"},
		},
		"out of range in the failure detector": {
			[]string{"membership:", "  failure-detector:", "    threshold: 0.5"},
			config.ErrInvalid,
			[]string{"cluster.yaml:5: membership.failure-detector.threshold: 0.5"},
		},
		"out of range in transport": {
			[]string{"transport:", "  window-bytes: 5"}, config.ErrInvalid, []string{"cluster.yaml:4: transport.window-bytes: 5", "65536"},
		},
		"half of TLS": {
			[]string{"transport:", "  tls: {key: k.pem}"}, config.ErrInvalid, []string{"cluster.yaml:4: transport.tls: ", "authorities"},
		},
		"out of range in downing": {
			[]string{"downing: {down-own-side-after: 1ms}"}, config.ErrInvalid, []string{"cluster.yaml:3: downing.down-own-side-after: 1ms", "1s"},
		},
		"out of range in sharding": {
			[]string{"sharding: {mailbox-size: 0}"}, config.ErrInvalid, []string{"cluster.yaml:3: sharding.mailbox-size"},
		},
		"remote management": {
			[]string{"management:", "  address: 10.0.0.7:8080"}, config.ErrInvalid, []string{"cluster.yaml:4: management.address: 10.0.0.7:8080", "allow-remote: true"},
		},
		"remote management without TLS": {
			[]string{"management:", "  address: 10.0.0.7:8080", "  allow-remote: true"}, config.ErrInvalid, []string{"management.tls: must be set", "authorities"},
		},
		"bad seed node": {
			[]string{"membership:", "  seed-nodes: [nowhere]"}, config.ErrInvalid, []string{"cluster.yaml:4: membership.seed-nodes", "nowhere"},
		},
		"rule across sections": {
			[]string{"downing: {stable-after: 1s}"}, config.ErrInvalid, []string{"cluster.yaml:3: downing.stable-after: 1s", "fence", "auto"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.Load(cluster.WithFile(file(t, append(append([]string(nil), good...), test.lines...)...)))
			require.ErrorIs(t, err, test.class)
			for _, want := range test.wants {
				require.ErrorContains(t, err, want)
			}
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "one fault, one line:\n%v", err)
		})
	}
}

// Settings that must be set, a file that does not exist, and a start without a
// configuration or with two are errors that say so.
func TestMissingSettingsAndFiles(t *testing.T) {
	path := file(t, "node: {roles: [a]}")
	_, err := cluster.Load(cluster.WithFile(path))
	require.ErrorContains(t, err, "cluster.name: must be set")
	require.ErrorContains(t, err, "node.address: must be set")
	_, err = cluster.Load(cluster.WithFile(filepath.Join(t.TempDir(), "none.yaml")))
	require.ErrorIs(t, err, config.ErrRead)
	require.ErrorContains(t, err, "none.yaml")
	_, err = cluster.Start(t.Context())
	require.ErrorContains(t, err, "no configuration file")
	_, err = cluster.Start(t.Context(), cluster.WithFile(path), cluster.WithConfig(cluster.Default()))
	require.ErrorContains(t, err, "both WithConfig and WithFile")
}

// All faults of all sections come in one error, one a line.
func TestSeveralFaultsAtOnce(t *testing.T) {
	_, err := cluster.Start(t.Context(), cluster.WithFile(file(t,
		"cluster: {nam: test}", "node: {address: 0.0.0.0:7946}", "membership: {push-fanout: 0, fenc: 3s}", "transport: {linger: -1s}",
		"downing: {strategy: \"\"}", "sharding: {window-bytes: 1}",
	)))
	for _, want := range []string{
		":1: cluster.nam: unknown key", ":2: node.address: ", ":3: membership.push-fanout", ":3: membership.fenc: unknown key",
		":4: transport.linger", ":5: downing.strategy", ":6: sharding.window-bytes",
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "must be set", "the name that is missing was misspelt")
}

// The environment overrides the file, and later files earlier ones; a fault in
// a variable names the variable.
func TestTheEnvironmentOverridesTheFile(t *testing.T) {
	path, _ := lone(t, "sharding: {number-of-shards: 12}")
	site := file(t, "sharding: {number-of-shards: 34}")
	address := free(t)
	t.Setenv("QUORATE_NODE__ADDRESS", address)
	t.Setenv("QUORATE_NODE__ROLES", "a,b")
	cfg, err := cluster.Load(cluster.WithFile(path), cluster.WithFile(site))
	require.NoError(t, err)
	require.Equal(t, address, cfg.Node.Address)
	require.Equal(t, []string{"a", "b"}, cfg.Node.Roles)
	require.Equal(t, 34, cfg.Sharding.NumberOfShards)
	require.Equal(t, cluster.Default().Membership.Fence, cfg.Membership.Fence)
	t.Setenv("QUORATE_MEMBERSHIP__FENCE", "soon")
	_, err = cluster.Load(cluster.WithFile(path))
	require.ErrorContains(t, err, "$QUORATE_MEMBERSHIP__FENCE")
}

// lines is a format of lines "section.key=value", for files with the end .lines.
type lines struct{}

// Extension returns the end of the names of files.
func (lines) Extension() string { return ".lines" }

// Parse reads the lines, and tells places where each key stands.
func (lines) Parse(text []byte, places *config.Places) map[string]any {
	tree := map[string]any{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		section, key, _ := strings.Cut(key, ".")
		places.Key(places.Key(nil, section, i+1), key, i+1)
		tree[section] = map[string]any{key: value}
	}
	return tree
}

// Files in a format that the program gives are loaded and checked; without it the option
// is named.
func TestAFileInAFormatOfTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.lines")
	require.NoError(t, os.WriteFile(path, []byte("cluster.name=test\nnode.address=127.0.0.1:7946\n"), 0o600))
	cfg, err := cluster.Load(cluster.WithFile(path), cluster.WithFormat(lines{}))
	require.NoError(t, err)
	require.Equal(t, "test", cfg.Cluster.Name)
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{cluster.WithFormat(lines{})}}, path))
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(filepath.Join(t.TempDir(), "cluster.toml")))...)
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.ErrorContains(t, err, "cluster.toml: TOML is not part of this program: import github.com/quorate/quorate/config/toml")
	require.ErrorContains(t, err, "cluster.WithFormat(toml.Format())")
}

// Paths in a file are relative to it, not to where the program runs.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	path, _ := lone(t, "transport: {tls: {certificate: node.pem, key: /keys/node.pem, authorities: ../ca.pem}}",
		"management: {tls: {certificate: ask.pem, key: ask.pem, authorities: ca.pem}}")
	cfg, err := cluster.Load(cluster.WithFile(path))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(path), "node.pem"), cfg.Transport.TLS.Certificate)
	require.Equal(t, filepath.Join(filepath.Dir(path), "ask.pem"), cfg.Management.TLS.Certificate)
	require.Equal(t, "/keys/node.pem", cfg.Transport.TLS.Key)
	require.Equal(t, filepath.Join(filepath.Dir(filepath.Dir(path)), "ca.pem"), cfg.Transport.TLS.Authorities)
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.ErrorContains(t, err, "node.pem", "the file is missing, and the error says which")
}

// The data directory of a node holds its record; its path is relative to the file too.
func TestADataDirIsUsed(t *testing.T) {
	t.Parallel()
	address := free(t)
	path := file(t, "cluster: {name: test}", "node: {address: "+address+", data-dir: data/n1}", "membership: {seed-nodes: ["+address+"]}")
	node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(path))...)
	require.NoError(t, err)
	require.NoError(t, node.AwaitUp(t.Context()))
	require.FileExists(t, filepath.Join(filepath.Dir(path), "data", "n1", "record"))
	require.NoError(t, node.Close())
}

// A port that is in use is an error with the address. The start leaves no goroutine behind,
// for which TestMain looks.
func TestAPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	path, _ := lone(t)
	_, err = cluster.Start(t.Context(), quiet(cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) {
		c.Node.Address = l.Addr().String()
	}))...)
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "in use")
}

// Settings in code are checked as strictly as those of a file.
func TestFaultsOfAChange(t *testing.T) {
	path, _ := lone(t)
	_, err := cluster.Start(t.Context(), cluster.WithFile(path), cluster.WithChange(func(c *cluster.Config) {
		c.Cluster.Name, c.Transport.WindowBytes, c.Sharding.MailboxSize, c.Downing.StableAfter, c.Management.MaxRequests = "", 0, 0, 1, 0
	}))
	for _, want := range []string{"cluster.name", "transport.window-bytes", "sharding.mailbox-size", "downing.stable-after", "management.max-requests"} {
		require.ErrorContains(t, err, want)
	}
}

// Of three nodes the one that is closed leaves in order: the others see it exit, and no node
// finds it unreachable.
func TestCloseLeavesInOrder(t *testing.T) {
	t.Parallel()
	seed := free(t)
	var nodes []*cluster.Node
	for i := range 3 {
		node, err := cluster.Start(t.Context(), quiet(cluster.WithFile(file(t,
			"cluster: {name: test}", "membership: {seed-nodes: ["+seed+"]}", "node: {address: "+seed+"}",
		)), cluster.WithChange(func(c *cluster.Config) {
			if i > 0 {
				c.Node.Address = free(t)
			}
		}))...)
		require.NoError(t, err)
		defer func() { _ = node.Close() }()
		nodes = append(nodes, node)
	}
	ctx := patience.Context(t)
	for _, n := range nodes {
		require.NoError(t, n.AwaitUp(ctx))
	}
	sub := nodes[0].Membership().Subscribe()
	defer sub.Close()
	require.NoError(t, nodes[2].Close())
	require.NoError(t, nodes[2].Err())
	var seen []string
	for {
		e, err := sub.Next(ctx)
		require.NoError(t, err)
		switch e := e.(type) {
		case membership.ReachabilityChanged:
			require.True(t, e.Reachable, "%s was found unreachable", e.Member.Node)
		case membership.MemberChanged:
			if e.Member.Node == nodes[2].Self() {
				seen = append(seen, e.Member.Status.String())
			}
		case membership.MemberRemoved:
			require.Equal(t, nodes[2].Self(), e.Member.Node)
			require.Contains(t, fmt.Sprint(seen), "exiting")
			return
		}
	}
}
