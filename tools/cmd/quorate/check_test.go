// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/tools/internal/command"
)

// A configuration that selects parts which not every program links is valid; check returns
// an error for each part that the program must link, and none while the file has faults.
func TestCheckNamesWhatTheProgramNeeds(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const node = "{cluster: {name: test}, node: {address: 127.0.0.1:7946}"
	plain := file("plain.yaml", node+"}\n")
	metrics := file("metrics.yaml", node+",\n telemetry: {metrics: prometheus}, management: {address: 127.0.0.1:8080}}\n")
	written := file("written.toml", "[telemetry]\nmetrics = \"prometheus\"\n[management]\naddress = \"127.0.0.1:8080\"\n[cluster]\nname = \"test\"\n[node]\naddress = \"127.0.0.1:7946\"\n")
	kept := file("kept.yaml", node+",\n ddata: {durable: [a], dir: data}}\n")
	const looks = ",\n membership: {discovery: {service: bank, methods: "
	dns := file("dns.yaml", node+looks+"[dns]}},\n discovery-dns: {port: 7946}}\n")
	all := file("all.yaml", node+looks+"[consul, dns, etcd, file, kubernetes, multicast]}},\n discovery-file: {path: nodes},\n"+
		" discovery-etcd: {endpoints: ['http://127.0.0.1:2379']}}\n")
	const leases = ",\n downing: {strategy: lease-majority, lease-majority: {lease-name: bank, store: "
	inFiles := file("files.yaml", node+leases+"file}},\n lease-file: {directory: leases}}\n")
	inEtcd := file("etcd.yaml", node+leases+"etcd}},\n lease-etcd: {endpoints: ['http://127.0.0.1:2379']}}\n")
	inKubernetes := file("kubernetes.yaml", node+leases+"kubernetes}}}\n")
	for name, c := range map[string]struct {
		path string
		want []string
	}{
		"leases in files":           {inFiles, nil},
		"leases in etcd":            {inEtcd, []string{"etcd.yaml:2: downing.lease-majority.store: the store \"etcd\" is not part of this program, which links \"file\": "}},
		"leases in Kubernetes":      {inKubernetes, []string{"/downing/lease/kubernetes, and start the node with the option cluster.WithLeases(kubernetes.Kind,"}},
		"a method of discovery":     {dns, []string{"dns.yaml:2: membership.discovery.methods: the method \"dns\" is not part of this program, which links \"static\": "}},
		"every method of discovery": {all, []string{"/discovery/consul,", "/discovery/dns,", "/discovery/etcd,", "/discovery/file,", "/discovery/kubernetes,", "/discovery/multicast,"}},
		"durable keys":              {kept, []string{"kept.yaml:2: ddata.durable: the store of durable keys is not part of this program"}},
		"no part":                   {plain, nil},
		"metrics":                   {metrics, []string{"metrics.yaml:2: telemetry.metrics: prometheus is not part of this program"}},
		"format and metrics":        {written, []string{"written.toml: TOML is not part of this program", "written.toml:2: telemetry.metrics"}},
	} {
		t.Run(name, func(t *testing.T) {
			needs, _, err := check(command.Extensions{}, c.path)
			require.NoError(t, err)
			require.Len(t, needs, len(c.want), "%v", needs)
			for i, want := range c.want {
				require.Contains(t, strings.ReplaceAll(needs[i].Error(), dir, ""), want)
				require.ErrorIs(t, needs[i], config.ErrNotLinked)
			}
		})
	}
	needs, _, err := check(command.Extensions{}, file("wrong.yaml", node+", telemetry: {metrics: prometeus}}\n"))
	require.ErrorContains(t, err, "telemetry.metrics")
	require.Empty(t, needs, "what is wrong comes first")
	for wrong, want := range map[string]string{
		node + looks + "[dns]}},\n discovery-dns: {prot: 1}}\n": `discovery-dns.prot: unknown key; did you mean "port"?`,
		node + looks + "[file]}}}\n":                            "discovery-file.path",
		node + looks + "[dsn]}}}\n":                             `the method "dsn" is unknown, there are `,
		node + leases + "etcd}}, lease-etcd: {endpoint: a}}\n":  `lease-etcd.endpoint: unknown key; did you mean "endpoints"?`,
		node + leases + "ectd}}}\n":                             `the store "ectd" is unknown, there are "etcd", "file", "kubernetes";`,
	} {
		needs, _, err = check(command.Extensions{}, file("wrong.yaml", wrong))
		require.ErrorContains(t, err, want, wrong)
		require.Empty(t, needs)
	}
}

// A plugin that cannot have the user of its section is a warning: the file may be for another
// machine. So is a limit that this system does not know, and Linux knows all.
func TestCheckWarnsOfWhatTheSystemDoesNotKeep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vote"), []byte("a plugin"), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{cluster: {name: test}, node: {address: 127.0.0.1:7946}, membership: {seed-nodes: ['127.0.0.1:7946']},\n"+
		" plugins: {vote: {policy: downing, path: vote, unpinned: true, user: nobody-of-that-name}}}\n"), 0o600))
	_, warnings, err := check(command.Extensions{}, path)
	require.NoError(t, err)
	require.NotEmpty(t, warnings)
	last := warnings[len(warnings)-1]
	require.Equal(t, "plugins.vote.user", last.Key)
	if runtime.GOOS == "linux" {
		require.Len(t, warnings, 1)
		require.Contains(t, last.Reason, "nobody-of-that-name")
	}
}

// The command links every method that has a package below discovery, or it would call the name of
// a method unknown that exists.
func TestEveryMethodOfTheProjectIsLinked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte("{cluster: {name: test}, node: {address: 127.0.0.1:7946}, membership: {discovery: {methods: [nonesuch]}}}\n"), 0o600))
	_, _, err := check(command.Extensions{}, path)
	names := append(methodNames(t), discovery.MethodStatic)
	slices.Sort(names)
	require.ErrorContains(t, err, `the method "nonesuch" is unknown, there are "`+strings.Join(names, `", "`)+`";`, "methods() in check.go has a row for each package below discovery")
	require.NotErrorIs(t, err, config.ErrNotLinked)
}

// methodNames are the names of the methods that have a package below discovery.
func methodNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "discovery", "*", "*.go"))
	require.NoError(t, err)
	declaration := regexp.MustCompile(`(?m)^const Method = "([a-z]+)"$`)
	var names []string
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
	}
	require.Greater(t, len(names), 1)
	return names
}
