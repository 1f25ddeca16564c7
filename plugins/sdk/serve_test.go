// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/plugins"
)

func keepMajority() Strategy {
	return Downing(func(struct{}) (downing.Provider, error) { return downing.KeepMajority{}, nil })
}

func TestAPluginThatIsStartedByHandSaysWhatItIs(t *testing.T) {
	var out strings.Builder
	code := serve(keepMajority(), aboutOf([]Option{WithName("witness"), WithVersion("1.0.0")}), func(string) string { return "" }, &out)
	require.Equal(t, exitByHand, code)
	require.Contains(t, out.String(), "witness 1.0.0 is a downing plugin for Quorate")
	require.Contains(t, out.String(), "policy: downing, path: "+os.Args[0])
}

func TestTheNameOfTheExecutableIsTheDefault(t *testing.T) {
	require.NotEmpty(t, aboutOf(nil).name)
	require.NotContains(t, aboutOf(nil).name, string(os.PathSeparator))
	require.Equal(t, "x", nameOf(about{name: "x"}))
}

func TestTheHostIsTheProcessThatItNames(t *testing.T) {
	env := map[string]string{}
	get := func(key string) string { return env[key] }
	require.Equal(t, os.Getppid(), hostPID(get))
	env[plugins.HostPID] = "17"
	require.Equal(t, 17, hostPID(get))
	env[plugins.HostPID] = "-1"
	require.Equal(t, os.Getppid(), hostPID(get))
}

func TestTheParentIsWatched(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // On Windows a plugin waits for the process of its host, which need not be its parent.
	}
	require.NoError(t, awaitHost(t.Context(), os.Getpid()), "the parent of this process is another one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, awaitHost(ctx, os.Getppid()), context.Canceled, strconv.Itoa(os.Getppid()))
}

// A strategy that no host would ask is found when the plugin is built or tried, not in a
// cluster.
func TestWhatIsNoStrategyCannotBeServed(t *testing.T) {
	require.PanicsWithValue(t, "sdk: no policy is a error", func() {
		New(func(struct{}) (error, error) { return nil, nil })
	})
}
