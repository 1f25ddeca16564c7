// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/etcd"
)

func valid() etcd.Config {
	config := etcd.Default()
	config.Endpoints = []string{"https://10.0.0.1:2379"}
	return config
}

func TestConfigIsValidWithEndpoints(t *testing.T) {
	require.NoError(t, valid().Validate())
	require.ErrorContains(t, etcd.Default().Validate(), "endpoints: 0 are not in the range from 1 to 16")
	local := valid()
	local.Endpoints, local.Username, local.PasswordFile = []string{"http://127.0.0.1:2379"}, "bank", "p"
	require.NoError(t, local.Validate(), "nobody reads along on this machine")
}

func TestConfigRefusesEachFaultAtItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*etcd.Config)
		key    string
		reason string
	}{
		"many endpoints":      {func(c *etcd.Config) { c.Endpoints = slicesOf(17, "https://a:1") }, "endpoints", "17 are not"},
		"no scheme":           {endpoint("10.0.0.1:2379"), "endpoints", "is no URL"},
		"path":                {endpoint("https://a:1/x"), "endpoints", "is not of the form https://host:port"},
		"password in it":      {endpoint("https://root:hunter2@a:1"), "endpoints", "root:xxxxx@a:1"},
		"open with password":  {func(c *etcd.Config) { endpoint("http://a:1")(c); c.Username, c.PasswordFile = "u", "p" }, "endpoints", "could be read"},
		"open with a CA":      {func(c *etcd.Config) { endpoint("http://a:1")(c); c.CAFile = "ca" }, "endpoints", "certificates are given"},
		"prefix without end":  {func(c *etcd.Config) { c.Prefix = "/quorate" }, "prefix", "is not of the form /quorate/"},
		"prefix of spaces":    {func(c *etcd.Config) { c.Prefix = "/a b/" }, "prefix", "is not of the form"},
		"long prefix":         {func(c *etcd.Config) { c.Prefix = "/" + strings.Repeat("a", 200) + "/" }, "prefix", "is not of the form"},
		"user alone":          {func(c *etcd.Config) { c.Username = "u" }, "password-file", "belong together"},
		"certificate alone":   {func(c *etcd.Config) { c.CertFile = "c" }, "key-file", "belong together"},
		"short TTL":           {func(c *etcd.Config) { c.TTL = time.Second }, "ttl", "from 3s to 5m"},
		"TTL of half seconds": {func(c *etcd.Config) { c.TTL = 3500 * time.Millisecond }, "ttl", "in whole seconds"},
		"interval":            {func(c *etcd.Config) { c.Interval = 0 }, "interval", "from 50ms to 1m"},
		"request":             {func(c *etcd.Config) { c.RequestTimeout = time.Hour }, "request-timeout", "from 100ms to 1m"},
	} {
		t.Run(name, func(t *testing.T) {
			config := valid()
			tc.edit(&config)
			fault, ok := errors.AsType[*field.Error](config.Validate())
			require.True(t, ok)
			require.Equal(t, tc.key, fault.Key)
			require.Contains(t, fault.Reason, tc.reason)
			_, err := etcd.New(config)
			require.ErrorContains(t, err, "etcd: "+tc.key)
		})
	}
}

func endpoint(url string) func(*etcd.Config) {
	return func(c *etcd.Config) { c.Endpoints = []string{url} }
}

func slicesOf(n int, text string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = text
	}
	return list
}

// A cluster makes the names of files relative to its configuration by these pointers.
func TestPathsAreAllFilesOfTheSettings(t *testing.T) {
	var config etcd.Config
	config.PasswordFile, config.CAFile, config.CertFile, config.KeyFile = "passwordfile", "cafile", "certfile", "keyfile"
	for _, name := range config.Paths() {
		*name = "/etc/bank/" + *name
	}
	require.Equal(t, []string{"/etc/bank/passwordfile", "/etc/bank/cafile", "/etc/bank/certfile", "/etc/bank/keyfile"},
		[]string{config.PasswordFile, config.CAFile, config.CertFile, config.KeyFile})
}
