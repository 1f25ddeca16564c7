// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/kubernetes"
)

func TestDefaultIsValid(t *testing.T) {
	require.NoError(t, kubernetes.Default().Validate())
}

func TestConfigRefusesEachFaultAtItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*kubernetes.Config)
		key    string
		reason string
	}{
		"source":             {func(c *kubernetes.Config) { c.Source = "nodes" }, "source", `"nodes" is neither`},
		"no selector":        {func(c *kubernetes.Config) { c.Selector = "" }, "selector", "write for instance app.kubernetes.io/name=%s"},
		"selector of lines":  {func(c *kubernetes.Config) { c.Selector = "a=b\n" }, "selector", "is no label selector"},
		"long selector":      {func(c *kubernetes.Config) { c.Selector = strings.Repeat("a", 1025) }, "selector", "is no label selector"},
		"namespace":          {func(c *kubernetes.Config) { c.Namespace = "a/../b" }, "namespace", "is no name of a namespace"},
		"no namespace":       {func(c *kubernetes.Config) { c.Server = "https://a" }, "namespace", "where the server is given"},
		"family":             {func(c *kubernetes.Config) { c.IPFamily = "ipv5" }, "ip-family", `"ipv5" is none of`},
		"no URL":             {server("https://a b"), "server", "is no URL"},
		"no scheme":          {server("10.0.0.1:6443"), "server", "is no URL"},
		"other scheme":       {server("ftp://a"), "server", "is not of the form https://host:port"},
		"no host":            {server("https://"), "server", "is not of the form https://host:port"},
		"query":              {server("https://a?b"), "server", "is not of the form https://host:port"},
		"open":               {server("http://10.0.0.1:8001"), "server", "not encrypted and not on this machine"},
		"open with a token":  {func(c *kubernetes.Config) { server("http://127.0.0.1:8001")(c); c.TokenFile = "t" }, "server", "the token could be read"},
		"request too short":  {func(c *kubernetes.Config) { c.RequestTimeout = time.Millisecond }, "request-timeout", "is not from 100ms to 5m"},
		"request too long":   {func(c *kubernetes.Config) { c.RequestTimeout = time.Hour }, "request-timeout", "is not from"},
		"watch too short":    {func(c *kubernetes.Config) { c.WatchTimeout = 0 }, "watch-timeout", "is not from 1s to 1h"},
		"watch too long":     {func(c *kubernetes.Config) { c.WatchTimeout = 2 * time.Hour }, "watch-timeout", "is not from"},
		"name of no Service": {func(c *kubernetes.Config) { c.Source, c.Service = "endpoint-slices", "a,b" }, "service", "is no name of a Service"},
	} {
		t.Run(name, func(t *testing.T) {
			config := kubernetes.Default()
			tc.edit(&config)
			fault, ok := errors.AsType[*field.Error](config.Validate())
			require.True(t, ok)
			require.Equal(t, tc.key, fault.Key)
			require.Contains(t, fault.Reason, tc.reason)
			require.Len(t, field.Parts(config.Validate()), 1)
			_, err := kubernetes.New(config)
			require.ErrorContains(t, err, "kubernetes: "+tc.key)
		})
	}
}

func server(url string) func(*kubernetes.Config) {
	return func(c *kubernetes.Config) { c.Server, c.Namespace = url, "prod" }
}

// An error does not repeat the password in an address.
func TestConfigKeepsAPasswordToItself(t *testing.T) {
	config := kubernetes.Default()
	server("https://root:hunter2@a")(&config)
	err := config.Validate()
	require.ErrorContains(t, err, "is not of the form https://host:port")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestConfigReportsAllFaultsTogether(t *testing.T) {
	bad := kubernetes.Config{IPFamily: "x"}
	bad.Namespace = "!"
	require.Len(t, field.Parts(bad.Validate()), 5)
	good := kubernetes.Default()
	server("http://localhost:8001")(&good)
	require.NoError(t, good.Validate(), "a proxy on the same machine, without a token")
}
