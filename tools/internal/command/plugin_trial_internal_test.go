// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/trial"
)

// A check is repeated by the flags on which it depends, whatever their defaults are: a trace from a
// file is no check without the file.
func TestACheckIsRepeatedAsItWasRun(t *testing.T) {
	c := &TestPlugin{PluginFlags: PluginFlags{File: "bin/x", Settings: "x.yaml"}, Nodes: 3, Calls: 500, Seed: 7, Trace: []string{"logs/rack7.txt"}}
	for name, want := range map[string]string{
		"start":                "",
		"kit/Memory":           "--calls 500 ",
		"sim/every-fault":      "--nodes 3 ",
		"sim/chaos-7":          "",
		"trace/pauses":         "--seed 7 ",
		"trace/logs/rack7.txt": "--trace logs/rack7.txt ",
	} {
		got := c.repeat(trial.Check{Name: name, Repeat: "--only " + name})
		require.Equal(t, "quorate plugin test bin/x --settings=x.yaml "+want+"--only "+name, got)
	}
	c.StartTimeout = time.Minute
	require.Equal(t, "quorate plugin test bin/x --settings=x.yaml --start-timeout=1m0s --only start", c.repeat(trial.Check{Name: "start", Repeat: "--only start"}))
}
