// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/consul"
)

func TestDefaultIsValid(t *testing.T) {
	require.NoError(t, consul.Default().Validate())
}

func TestConfigRefusesEachFaultAtItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*consul.Config)
		key    string
		reason string
	}{
		"no address":        {func(c *consul.Config) { c.Address = "" }, "address", "is not of the form"},
		"no URL":            {func(c *consul.Config) { c.Address = "127.0.0.1:8500" }, "address", "is no URL"},
		"password":          {func(c *consul.Config) { c.Address = "http://root:hunter2@a" }, "address", "root:xxxxx@a"},
		"open with a token": {func(c *consul.Config) { c.Address, c.TokenFile = "http://10.0.0.1:8500", "t" }, "address", "the token could be read"},
		"service":           {func(c *consul.Config) { c.Service = "a/%s" }, "service", "is no name of a service, write %s"},
		"no service":        {func(c *consul.Config) { c.Service = "" }, "service", "is no name of a service"},
		"many tags":         {func(c *consul.Config) { c.Tags = make([]string, 17) }, "tags", "17 are more than 16"},
		"tag":               {func(c *consul.Config) { c.Tags = []string{"a\n"} }, "tags", "is no tag"},
		"datacenter":        {func(c *consul.Config) { c.Datacenter = "a&b" }, "datacenter", "is no name of a datacenter"},
		"short request":     {func(c *consul.Config) { c.RequestTimeout = time.Millisecond }, "request-timeout", "is not from 100ms to 5m"},
		"long request":      {func(c *consul.Config) { c.RequestTimeout = time.Hour }, "request-timeout", "is not from"},
		"short wait":        {func(c *consul.Config) { c.Wait = 0 }, "wait", "is not from 1s to 10m"},
		"long wait":         {func(c *consul.Config) { c.Wait = time.Hour }, "wait", "is not from"},
	} {
		t.Run(name, func(t *testing.T) {
			config := consul.Default()
			tc.edit(&config)
			fault, ok := errors.AsType[*field.Error](config.Validate())
			require.True(t, ok)
			require.Equal(t, tc.key, fault.Key)
			require.Contains(t, fault.Reason, tc.reason)
			_, err := consul.New(config)
			require.ErrorContains(t, err, "consul: "+tc.key)
		})
	}
	loopback := consul.Default()
	loopback.TokenFile = "t"
	require.NoError(t, loopback.Validate(), "on this machine the token cannot be read on the way")
}
