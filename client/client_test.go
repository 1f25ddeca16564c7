// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/patience"
)

// What a client does with nodes is tested in module gateway, which has them.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigsThatAreRefused(t *testing.T) {
	good := client.Default()
	good.Addresses = []string{"127.0.0.1:7947", "[::1]:7947"}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*client.Config){
		"addresses: has 0 addresses":         func(c *client.Config) { c.Addresses = nil },
		"is not a \"host:port\"":             func(c *client.Config) { c.Addresses = []string{"127.0.0.1"} },
		"127.0.0.1:0\" is not":               func(c *client.Config) { c.Addresses = []string{"127.0.0.1:0"} },
		"is listed twice":                    func(c *client.Config) { c.Addresses = []string{"127.0.0.1:1", "127.0.0.1:1"} },
		"is not on the loopback interface":   func(c *client.Config) { c.Addresses = []string{"10.0.0.1:7947"} },
		"tls: certificate, key and":          func(c *client.Config) { c.TLS.Key = "k" },
		"queued: 0 is not from":              func(c *client.Config) { c.Queued = 0 },
		"queued-bytes: 1 is not":             func(c *client.Config) { c.QueuedBytes = 1 },
		"retry-interval: 1h0m0s is not from": func(c *client.Config) { c.RetryInterval = time.Hour },
		"dial-timeout: 0s is not from":       func(c *client.Config) { c.DialTimeout = 0 },
	} {
		cfg := good
		change(&cfg)
		require.ErrorContains(t, cfg.Validate(), want)
		_, err := client.Open(cfg)
		require.Error(t, err)
	}
	good.AllowInsecure, good.Addresses = true, []string{"node.example.com:7947"}
	require.NoError(t, good.Validate())
}

// A mistake in a file is an error of the start.
func TestFilesAreReadAtTheStart(t *testing.T) {
	cfg := client.Default()
	cfg.Addresses = []string{"127.0.0.1:1"}
	for name, text := range map[string]string{"none": "", "two": "a b", "long": strings.Repeat("x", 5000)} {
		cfg.TokenFile = filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(cfg.TokenFile, []byte(text), 0o600))
		_, err := client.Open(cfg)
		require.ErrorContains(t, err, "token-file")
	}
	cfg.TokenFile, cfg.TLS = "", client.TLSFiles{Certificate: "a", Key: "b", Authorities: "c"}
	_, err := client.Open(cfg)
	require.ErrorContains(t, err, "tls")
}

// Without any node a client waits within its bounds, says why, and ends at once.
func TestClientsWithoutNodes(t *testing.T) {
	cfg := client.Default()
	cfg.Addresses, cfg.Queued = []string{"127.0.0.1:1"}, 1
	c, err := client.Open(cfg, client.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() {
		_, err := c.Ask(context.Background(), "k", "a", nil)
		waits <- err
	}()
	short := func() context.Context { return patience.Expiring(t, 20*time.Millisecond) }
	patience.Eventually(t, func() bool {
		_, err := c.Ask(short(), "k", "b", nil)
		require.ErrorIs(t, err, client.ErrNotDelivered)
		return strings.Contains(err.Error(), client.ErrOverloaded.Error())
	}, "the queue is full")
	require.Error(t, c.AwaitReady(short()))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-waits, client.ErrNotDelivered)
	require.ErrorIs(t, c.Tell(t.Context(), "k", "a", nil), client.ErrNotDelivered)
	e := &client.MessageError{Kind: strings.Repeat("k", 100), Entity: "e", Errs: []error{client.ErrInvalid}}
	require.EqualError(t, e, "client: "+strings.Repeat("k", 64)+`... "e": invalid`)
}
