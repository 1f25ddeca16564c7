// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/transport"

	"github.com/quorate/quorate/config/field"
)

// all returns all the files that TLS needs.
func all() transport.TLSFiles {
	return transport.TLSFiles{Certificate: "node.pem", Key: "key.pem", Authorities: "ca.pem"}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*management.Config)
		want   string
		field  string
	}{
		"no port":                {func(c *management.Config) { c.Address = "127.0.0.1" }, `address: "127.0.0.1" is not a "host:port"`, "address"},
		"port as a word":         {func(c *management.Config) { c.Address = "127.0.0.1:http" }, `address: "http" is not a port`, "address"},
		"port too high":          {func(c *management.Config) { c.Address = "127.0.0.1:65536" }, "not a port", "address"},
		"every interface":        {func(c *management.Config) { c.Address = ":8080" }, "address: :8080 is not on the loopback interface: use 127.0.0.1:8080, or set allow-remote: true and tls", "address"},
		"another name":           {func(c *management.Config) { c.Address = "node.example:8080" }, "allow-remote", "address"},
		"TLS alone":              {func(c *management.Config) { c.Address, c.TLS = "10.0.0.7:8080", all() }, "allow-remote", "address"},
		"no TLS":                 {func(c *management.Config) { c.Address, c.AllowRemote = "10.0.0.7:8080", true }, "tls: must be set (certificate, key and authorities), because allow-remote is true and 10.0.0.7:8080 is not on the loopback interface", "tls"},
		"half of TLS":            {func(c *management.Config) { c.TLS.Key = "key.pem" }, "tls: certificate, key and authorities must be set together", "tls"},
		"too many requests":      {func(c *management.Config) { c.MaxRequests = 1025 }, "max-requests: 1025", "max-requests"},
		"too many connections":   {func(c *management.Config) { c.MaxConnections = 65537 }, "max-connections: 65537", "max-connections"},
		"health without a port":  {func(c *management.Config) { c.Health.Address = "10.0.0.7" }, `health.address: "10.0.0.7" is not a "host:port"`, "health.address"},
		"health at one address":  {func(c *management.Config) { c.Address, c.Health.Address = "127.0.0.1:81", "127.0.0.1:81" }, "choose another port", "health.address"},
		"metrics without health": {func(c *management.Config) { c.Health.Metrics = true }, "health.metrics: is true, and nothing listens: set health.address", "health.metrics"},
		"socket too long":        {func(c *management.Config) { c.Operators.Socket = strings.Repeat("s", 97) }, "operators.socket", "operators.socket"},
		"tokens for nobody":      {func(c *management.Config) { c.Operators.TokenFile = "t" }, "operators.token-file: is set, and nothing listens", "operators.token-file"},
		"role without TLS":       {func(c *management.Config) { c.Operators.CertificateURI = "quorate://bank/operator" }, "operators.certificate-uri: is set without tls", "operators.certificate-uri"},
		"role that is no URI":    {func(c *management.Config) { c.TLS, c.Operators.CertificateURI = all(), "operator" }, `"operator" is no URI`, "operators.certificate-uri"},
		"too long a timeout":     {func(c *management.Config) { c.RequestTimeout = time.Hour }, "request-timeout: 1h0m0s", "request-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := management.Default()
			test.change(&cfg)
			err := cfg.Validate()
			require.ErrorContains(t, err, test.want)
			var fault *field.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, test.field, fault.Field())
		})
	}
	cfg := management.Config{Address: "nowhere"}
	err := cfg.Validate()
	for _, key := range []string{"max-requests", "max-connections", "request-timeout", "address"} {
		require.ErrorContains(t, err, key, "all faults together")
	}
}

func TestConfigurationsThatAreAccepted(t *testing.T) {
	for _, change := range []func(*management.Config){
		func(*management.Config) {},
		func(c *management.Config) { c.Address = "127.0.0.1:0" },
		func(c *management.Config) { c.Address = "[::1]:8080" },
		func(c *management.Config) { c.Address = "localhost:8080" },
		func(c *management.Config) { c.Address, c.TLS = "127.0.0.3:8080", all() },
		func(c *management.Config) { c.Address, c.AllowRemote, c.TLS = "0.0.0.0:8080", true, all() },
		func(c *management.Config) { c.Address, c.AllowRemote = "127.0.0.1:8080", true },
		func(c *management.Config) { c.Health.Address = ":8081" },
		func(c *management.Config) { c.Address, c.Health.Address = "127.0.0.1:0", "127.0.0.1:0" },
		func(c *management.Config) { c.Operators.Socket = "/run/bank/operators" },
		func(c *management.Config) { c.Address, c.Operators.TokenFile = "127.0.0.1:0", "tokens" },
		func(c *management.Config) {
			c.Address, c.TLS, c.Operators.CertificateURI = "127.0.0.3:8080", all(), "quorate://bank/operator"
		},
	} {
		cfg := management.Default()
		change(&cfg)
		require.NoError(t, cfg.Validate())
	}
}
