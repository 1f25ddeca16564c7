// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdtest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/consul/v2"
	koanfetcd "github.com/knadh/koanf/providers/etcd/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// nodeSettings are what the tests read from stores.
type nodeSettings struct {
	Node struct {
		Roles []string `koanf:"roles"`
		Size  int      `koanf:"size"`
	} `koanf:"node"`
}

// read loads the settings of a provider.
func read(t *testing.T, p config.Provider) (s nodeSettings) {
	t.Helper()
	file, err := config.Loader{Providers: []config.Provider{p}}.Load()
	require.NoError(t, err)
	require.NoError(t, file.Decode("", &s))
	return s
}

// koanf's provider of etcd reads settings that have a key each.
func TestSettingsAreReadFromEtcd(t *testing.T) {
	_, address := start(t, settings(t))
	c := client(t, address)
	for key, value := range map[string]string{"bank/node/roles": "backend,eu", "bank/node/size": "500"} {
		_, err := c.Put(t.Context(), key, value)
		require.NoError(t, err)
	}
	keys, err := koanfetcd.Provider(koanfetcd.Config{Endpoints: c.Endpoints(), DialTimeout: 10 * time.Second, Prefix: true, Key: "bank/"})
	require.NoError(t, err)
	got := read(t, config.Provider{Name: "etcd", Source: config.Flat(keys, "bank/", "/")})
	require.Equal(t, []string{"backend", "eu"}, got.Node.Roles)
	require.Equal(t, 500, got.Node.Size)
}

// koanf's provider of Consul reads a file that is under one key of a double.
func TestSettingsAreReadFromConsul(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/kv/bank/cluster.yaml" {
			http.NotFound(w, r)
			return
		}
		value := []byte("node: {roles: [backend], size: 500}\n") // Encoded as base64, as by Consul.
		_ = json.NewEncoder(w).Encode([]map[string]any{{"Key": "bank/cluster.yaml", "Value": value}})
	}))
	t.Cleanup(server.Close)
	key, err := consul.Provider(consul.Config{Key: "bank/cluster.yaml", Cfg: &api.Config{Address: server.URL}})
	require.NoError(t, err)
	got := read(t, config.Provider{Name: "consul", Source: config.Document(key, "bank/cluster.yaml"), Parser: yaml.Parser()})
	require.Equal(t, []string{"backend"}, got.Node.Roles)
	require.Equal(t, 500, got.Node.Size)
}
