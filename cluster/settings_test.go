// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/discovery"
)

// The settings of a node: their values, where they were written, and what its files have otherwise.

// valueOf returns the value of a key, nil if it is not there.
func valueOf(values []config.Value, key string) *config.Value {
	for i := range values {
		if values[i].Key == key {
			return &values[i]
		}
	}
	return nil
}

func TestANodeSaysItsSettings(t *testing.T) {
	t.Parallel()
	own := twins{Repeat: time.Second, Most: 1}
	o := operate(t, cluster.WithSection("twins", &own), cluster.WithChange(func(c *cluster.Config) { c.Sharding.HandoffTimeout = 9 * time.Second }))
	report := func() (got cluster.SettingsReport) {
		require.Equal(t, http.StatusOK, o.get("/v1/settings", &got))
		require.Equal(t, o.node.Self().String(), got.Self)
		return got
	}
	got := report()
	require.Empty(t, got.Pending)
	require.Empty(t, got.Faults)
	require.Equal(t, "/bin/one", valueOf(got.Settings, "plugins.mover.path").Text)
	require.Contains(t, valueOf(got.Settings, "plugins.mover.path").Source, filepath.Base(o.path)+":")
	require.Equal(t, config.Value{Key: "sharding.handoff-timeout", Text: "9s", Source: "the program", Reload: valueOf(got.Settings, "sharding.handoff-timeout").Reload}, *valueOf(got.Settings, "sharding.handoff-timeout"))
	require.Equal(t, config.Value{Key: "membership.fence", Text: "3s"}, *valueOf(got.Settings, "membership.fence"))
	require.Equal(t, config.Value{Key: "twins.repeat", Text: "1s"}, *valueOf(got.Settings, "twins.repeat"))

	o.write("path: /bin/one, sha256", "path: /bin/two, sha256", `address: "127.0.0.1:0"`, `address: "127.0.0.1:1"`)
	got = report()
	require.Len(t, got.Pending, 2)
	require.Equal(t, "management.address", got.Pending[0].Key)
	require.False(t, got.Pending[0].Reload())
	require.Equal(t, "/bin/one to /bin/two", got.Pending[1].From.Text+" to "+got.Pending[1].To.Text)
	require.True(t, got.Pending[1].Reload())
	require.Equal(t, "/bin/one", valueOf(got.Settings, "plugins.mover.path").Text, "the file changes nothing")

	o.write(`address: "127.0.0.1:1"`, `adrress: "127.0.0.1:1"`)
	got = report()
	require.Empty(t, got.Pending)
	require.NotEmpty(t, got.Faults)
	require.Contains(t, got.Faults[0], "unknown key")
	require.Equal(t, "/bin/one", valueOf(got.Settings, "plugins.mover.path").Text)
}

func TestANodeThatIsConfiguredInCodeSaysItsSettings(t *testing.T) {
	t.Parallel()
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", free(t)
	cfg.Management.Address = "127.0.0.1:0"
	node, err := cluster.Start(t.Context(), quiet(cluster.WithConfig(cfg))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	var got cluster.SettingsReport
	o := &operated{t: t, node: node}
	require.Equal(t, http.StatusOK, o.get("/v1/settings", &got))
	require.Equal(t, config.Value{Key: "cluster.name", Text: "test", Source: "the program"}, *valueOf(got.Settings, "cluster.name"))
	require.Empty(t, valueOf(got.Settings, "membership.fence").Source)
	require.Empty(t, got.Pending)
}

// named is the section of a method.
type named struct {
	Name string `koanf:"name"`
}

// A program without a start lists the settings of files, those of methods of discovery that are chosen too.
func TestSettingsOfFiles(t *testing.T) {
	own := cluster.Extensions{Options: []cluster.Option{
		cluster.WithDiscovery("dns", named{"here"}, func(named) (discovery.Discovery, error) { return nil, errors.ErrUnsupported }),
	}}
	path := file(t, "cluster: {name: test}", "node: {address: 10.0.0.1:1}", "membership: {discovery: {methods: [dns]}}", "discovery-dns: {name: there}", "transport: {allow-insecure: true}")
	values, err := cluster.Settings(own, path)
	require.NoError(t, err)
	for key, want := range map[string]string{"discovery-dns.name": "there, " + path + ":4", "cluster.name": "test, " + path + ":1"} {
		v := valueOf(values, key)
		require.Equal(t, want, v.Text+", "+v.Source, key)
	}
	_, err = cluster.Settings(own, file(t, "cluster: {title: test}"))
	require.ErrorContains(t, err, "title")
}
