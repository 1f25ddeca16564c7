// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/dns"
)

func TestDefaultIsValid(t *testing.T) {
	require.NoError(t, dns.Default().Validate())
}

func TestConfigReportsEachFaultAtItsKey(t *testing.T) {
	for _, tc := range []struct {
		key  string
		edit func(*dns.Config)
	}{
		{"servers", func(c *dns.Config) { c.ResolvConf = "" }},
		{"servers", func(c *dns.Config) { c.Servers = make([]string, 9) }},
		{"servers", func(c *dns.Config) { c.Servers = []string{"10.0.0.1"} }},
		{"servers", func(c *dns.Config) { c.Servers = []string{"ns.example:53"} }},
		{"servers", func(c *dns.Config) { c.Servers = []string{"10.0.0.1:0"} }},
		{"query-timeout", func(c *dns.Config) { c.QueryTimeout = 0 }},
		{"query-timeout", func(c *dns.Config) { c.QueryTimeout = time.Hour }},
		{"rounds", func(c *dns.Config) { c.Rounds = 0 }},
		{"rounds", func(c *dns.Config) { c.Rounds = 6 }},
		{"min-ttl", func(c *dns.Config) { c.MinTTL = -1 }},
		{"max-ttl", func(c *dns.Config) { c.MaxTTL = c.MinTTL - 1 }},
		{"max-ttl", func(c *dns.Config) { c.MaxTTL = 25 * time.Hour }},
		{"max-negative-ttl", func(c *dns.Config) { c.MaxNegativeTTL = c.MinTTL - 1 }},
		{"max-negative-ttl", func(c *dns.Config) { c.MaxNegativeTTL = 25 * time.Hour }},
		{"family", func(c *dns.Config) { c.Family = "ipv5" }},
		{"port", func(c *dns.Config) { c.Port = 65536 }},
		{"port", func(c *dns.Config) { c.Port = -1 }},
	} {
		config := dns.Default()
		tc.edit(&config)
		faults := field.Parts(config.Validate())
		require.NotEmpty(t, faults, tc.key)
		for _, fault := range faults {
			key, reason := field.Of(fault)
			require.Equal(t, tc.key, key)
			require.NotEmpty(t, reason)
		}
		_, err := dns.New(config)
		require.Error(t, err)
	}
	require.Greater(t, len(field.Parts(dns.Config{}.Validate())), 3, "all faults together")
	config := dns.Default()
	config.Servers = []string{"[fd00::10]:53", "10.0.0.10:5353"}
	require.NoError(t, config.Validate())
}
