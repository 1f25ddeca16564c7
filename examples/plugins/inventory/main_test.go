// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/plugins/sdk/sdktest"
)

// script writes a program, and returns its path.
func script(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "inventory.sh")
	require.NoError(tb, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

// list prints two contact points of the service of the suite, and none of others.
const list = `[ "$1" = quorate ] && printf '# ours\n10.0.0.1:7946\nseed.example:7946\n'
exit 0`

func asking(tb testing.TB, text string) discovery.Discovery {
	tb.Helper()
	d, err := newInventory(settings{Command: []string{script(tb, text)}, Timeout: 10 * time.Second})
	require.NoError(tb, err)
	return d
}

func TestTheContractIsKept(t *testing.T) {
	discoverytest.TestDiscovery(t, func(tb testing.TB) discovery.Discovery { tb.Helper(); return asking(tb, list) })
}

func TestTheContractIsKeptOverTheWire(t *testing.T) {
	discoverytest.TestDiscovery(t, func(tb testing.TB) discovery.Discovery {
		tb.Helper()
		return sdktest.Discovery(tb, sdk.Discovery(newInventory), map[string]any{"command": []string{script(tb, list)}})
	})
}

// What the program does wrong is an error of the lookup, which says what.
func TestAProgramThatDoesNotPrintAListIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"echo 10.0.0.1:7946; echo nonsense":               "line 2: ",
		"echo the database is away >&2; exit 3":           "exit status 3: the database is away",
		"head -c 2000000 /dev/zero":                       "prints more than 1048576 bytes",
		"exec no-such-program":                            "exit status 127",
		"head -c 2000000 /dev/zero >&2; echo 10.0.0.1:ab": `the port "ab" is not a number`,
	} {
		_, err := asking(t, text).Lookup(t.Context(), discovery.Query{Service: "bank"})
		require.ErrorContains(t, err, want, text)
	}
}

func TestAProgramThatHangsEndsWithTheLookup(t *testing.T) {
	d, err := newInventory(settings{Command: []string{script(t, "exec sleep 60")}, Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	_, err = d.Lookup(t.Context(), discovery.Query{Service: "bank"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestSettingsAreChecked(t *testing.T) {
	for key, s := range map[string]settings{
		"command": {Command: []string{"inventory.sh"}, Timeout: time.Second},
		"timeout": {Command: []string{"/bin/true"}},
	} {
		_, err := newInventory(s)
		var fault plugins.SettingError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, key, fault.Key)
	}
}
