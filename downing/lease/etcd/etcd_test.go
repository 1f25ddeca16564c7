// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/etcd"
	"github.com/quorate/quorate/internal/patience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConfigRefusesEachFaultAtItsKey(t *testing.T) {
	for text, edit := range map[string]func(*etcd.Config){
		"endpoints: 0 are not":             func(c *etcd.Config) { c.Endpoints = nil },
		"is no URL":                        func(c *etcd.Config) { c.Endpoints = []string{"10.0.0.1:2379"} },
		"not of the form https://host":     func(c *etcd.Config) { c.Endpoints = []string{"https://a/b"} },
		"the password could be read":       func(c *etcd.Config) { c.Endpoints, c.Username, c.PasswordFile = []string{"http://a:1"}, "u", "p" },
		"certificates are given":           func(c *etcd.Config) { c.Endpoints, c.CAFile = []string{"http://a:1"}, "ca" },
		"prefix: \"quorate\"":              func(c *etcd.Config) { c.Prefix = "quorate" },
		"password-file: username and":      func(c *etcd.Config) { c.Username = "u" },
		"key-file: cert-file and key-file": func(c *etcd.Config) { c.CertFile = "c" },
		"request-timeout: 0s is not from":  func(c *etcd.Config) { c.RequestTimeout = 0 },
		"request-timeout: 1h0m0s is not":   func(c *etcd.Config) { c.RequestTimeout = time.Hour },
	} {
		config := etcd.Default()
		config.Endpoints = []string{"https://10.0.0.1:2379"}
		require.NoError(t, config.Validate())
		edit(&config)
		_, err := etcd.New(config)
		require.ErrorContains(t, err, text)
	}
}

// Nothing listens at the endpoint: each call ends within its limit, with an error that does not
// look like the deadline of the caller.
func TestAnEtcdThatIsNotThereIsAnErrorInTime(t *testing.T) {
	config := etcd.Default()
	config.Endpoints, config.RequestTimeout = []string{"http://127.0.0.1:1"}, 200*time.Millisecond
	s, err := etcd.New(config)
	require.NoError(t, err)
	c := lease.Claim{Name: "bank", Owner: "a", TTL: 3 * time.Second}
	watch := patience.Start(t)
	_, err = s.Take(t.Context(), c)
	require.ErrorContains(t, err, "no answer from http://127.0.0.1:1 within 200ms")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.Error(t, s.Give(t.Context(), c))
	require.Less(t, watch.Elapsed(), 5*time.Second)
	c.Name = "../a"
	_, err = s.Take(t.Context(), c)
	require.ErrorContains(t, err, "is no name of a lease")
	config.PasswordFile, config.Username = t.TempDir()+"/missing", "u"
	s, err = etcd.New(config)
	require.NoError(t, err)
	_, err = s.Take(t.Context(), lease.Claim{Name: "bank", Owner: "a", TTL: 3 * time.Second})
	require.ErrorContains(t, err, "the password")
	require.NoError(t, s.Close())
}
