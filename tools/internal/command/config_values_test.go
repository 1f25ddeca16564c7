// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/management"
	"github.com/quorate/quorate/tools/internal/command"
)

// What a setting is and where two configurations differ, in files and on a node.

// values lists the settings of files for a program that links nothing.
func values(own command.Extensions, paths ...string) ([]config.Value, error) {
	var e cluster.Extensions
	for _, name := range own.Sections {
		e.Sections = append(e.Sections, config.Section{Name: name, Into: new(any)})
	}
	return cluster.Settings(e, paths...)
}

const plainNode = "cluster: {name: test}\nnode: {address: 127.0.0.1:7946, roles: [a]}\n"

func TestAValueIsExplained(t *testing.T) {
	path := write(t, plainNode+"membership: {fence: 5s}\ntwins: {token: s3cret}\n")
	status, out, errs := run(t, &count{}, "config", "explain", "membership.fence", path, "-allow", "twins")
	require.Equal(t, command.StatusOK, status, errs)
	require.Contains(t, out, "  value      5s, "+path+":3\n")
	require.Contains(t, out, "  default    3s\n")
	require.Contains(t, out, "  meaning    ")
	status, out, _ = run(t, &count{}, "--json", "config", "explain", "twins", path, "-allow", "twins")
	require.Equal(t, command.StatusOK, status)
	require.JSONEq(t, `[{"key":"twins.token","value":"","hidden":true,"source":"`+path+`:4","reload":false}]`, out)
	status, _, errs = run(t, &count{}, "config", "explain", "membership.fense", path, "-allow", "twins")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, errs, `no key is named "membership.fense"`)
	status, _, errs = run(t, &count{}, "config", "explain", "plugins", path, "-allow", "twins")
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, errs, "plugins has no entry")
	status, _, errs = run(t, &count{}, "config", "explain", "plugins", path)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, errs, path+":4: twins: unknown section")
}

func TestDifferencesAreListed(t *testing.T) {
	from, to := write(t, plainNode+"membership: {fence: 3s}\n"), write(t, plainNode+"sharding: {handoff-timeout: 7s}\n")
	status, out, errs := run(t, &count{}, "config", "diff", from, to)
	require.Equal(t, command.StatusFailed, status)
	require.Empty(t, errs)
	require.Contains(t, out, "sharding.handoff-timeout\n  from       ")
	require.Contains(t, out, "  to         7s, "+to+":3\n")
	require.Contains(t, out, "  change     needs a restart of the node\n")
	require.NotContains(t, out, "fence", "a default that is written is no difference")
	status, out, _ = run(t, &count{}, "--json", "config", "diff", from, to)
	require.Equal(t, command.StatusFailed, status)
	var got struct{ Differences []config.Difference }
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Differences, 1)
	status, out, _ = run(t, &count{}, "config", "diff", from, from+","+from)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "no difference\n", out)
	status, out, _ = run(t, &count{}, "--json", "config", "diff", from, from)
	require.Equal(t, command.StatusOK, status)
	require.JSONEq(t, `{"differences":[]}`, out)
	status, _, errs = run(t, &count{}, "config", "diff", from, write(t, "node: {address: 7}\n"))
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, errs, `address`)
}

// settingsOf answers what a node says of its settings.
func settingsOf(report cluster.SettingsReport) management.Route {
	return management.Route{Path: "/v1/settings", Answer: func(context.Context, management.Request) (any, error) { return report, nil }}
}

func TestTheSettingsOfANodeAreExplained(t *testing.T) {
	fence := config.Value{Key: "membership.fence", Text: "5s", Source: "cluster.yaml:3"}
	then := fence
	then.Text, then.Source = "8s", "cluster.yaml:9"
	url, _, _ := operable(t, settingsOf(cluster.SettingsReport{
		Self: firstNode, Settings: []config.Value{{Key: "cluster.name", Text: "test"}, fence, {Key: "twins.a", Hidden: true}},
		Pending: []config.Difference{{Key: fence.Key, From: &fence, To: &then}, {Key: "plugins.v.path", To: &config.Value{Key: "plugins.v.path", Text: "/v", Reload: true}}},
		Faults:  []string{"cluster.yaml:7: node.rols: unknown key"},
	}))
	status, out, errs := run(t, &count{}, "config", "explain", "membership", "-node", url)
	require.Equal(t, command.StatusOK, status, errs)
	require.Contains(t, out, "  value      5s, cluster.yaml:3\n  files      8s, cluster.yaml:9; needs a restart of the node\n")
	require.Contains(t, out, "cluster.yaml:7: node.rols: unknown key")
	status, out, _ = run(t, &count{}, "config", "explain", "plugins.v.path", "-node", url)
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, out, "  value      nothing\n  files      /v, the default; quorate reload takes it over\n")
	status, out, _ = run(t, &count{}, "config", "diff", write(t, plainNode+"twins: {a: 1}\n"), "-node", url, "-allow", "twins")
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, out, "membership.fence\n  from       5s, cluster.yaml:3\n  to         3s, the default\n")
	require.Contains(t, out, "not compared twins.a\n")
}
