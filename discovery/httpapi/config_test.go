// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/discovery/httpapi"
)

func TestATimeoutOutOfRangeIsRefusedAtItsKey(t *testing.T) {
	require.NoError(t, httpapi.Default().Validate())
	for _, bad := range []time.Duration{0, 99 * time.Millisecond, 5*time.Minute + 1} {
		fault, ok := errors.AsType[*field.Error](httpapi.Config{RequestTimeout: bad}.Validate())
		require.True(t, ok)
		require.Equal(t, "request-timeout", fault.Key)
		require.Contains(t, fault.Reason, "is not from 100ms to 5m")
	}
}

// A cluster makes the names of files relative to its configuration by these pointers.
func TestPathsAreAllFilesOfTheSettings(t *testing.T) {
	config := httpapi.Config{TokenFile: "tokenfile", CAFile: "cafile"}
	for _, name := range config.Paths() {
		*name = "/etc/bank/" + *name
	}
	require.Equal(t, httpapi.Config{TokenFile: "/etc/bank/tokenfile", CAFile: "/etc/bank/cafile"}, config)
}

func TestAURLHasASchemeAndAHost(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "is not of the form https://host:port",
		"10.0.0.1:6443":           "is no URL",
		"https://a b":             "is no URL",
		"ftp://a":                 "is not of the form https://host:port",
		"https://":                "is not of the form https://host:port",
		"https://a?b":             "is not of the form https://host:port",
		"https://a#b":             "is not of the form https://host:port",
		"https://root:hunter2@a":  `"https://root:xxxxx@a" is not of the form`,
		"https://root:hunter2@:x": `"...@:x" is no URL`,
	} {
		_, err := httpapi.ParseURL("address", text)
		fault, ok := errors.AsType[*field.Error](err)
		require.True(t, ok, text)
		require.Equal(t, "address", fault.Key)
		require.Contains(t, fault.Reason, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	for text, local := range map[string]bool{
		"http://localhost:8001": true, "http://127.0.0.2": true, "https://[::1]:1/path": true,
		"https://10.0.0.1:6443": false, "http://localhost.example": false, "https://a": false,
	} {
		u, err := httpapi.ParseURL("address", text)
		require.NoError(t, err)
		require.Equal(t, local, httpapi.IsLocal(u), text)
	}
}

func TestRootsWithoutANameAreThoseOfTheSystem(t *testing.T) {
	roots, err := httpapi.ReadRoots("")
	require.NoError(t, err)
	require.Nil(t, roots)
	name := filepath.Join(t.TempDir(), "ca.pem")
	write(t, name, "nothing")
	_, err = httpapi.ReadRoots(name)
	require.EqualError(t, err, name+" holds no certificate in PEM form")
}
