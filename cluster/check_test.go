// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/downing"
)

// A configuration that a start would refuse is refused by a check too, at its key and
// line; one that a start takes passes.
func TestACheckRefusesWhatTheStartRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.pem")
	require.NoError(t, os.WriteFile(text, []byte("no certificate"), 0o600))
	tls := func(path string) string {
		return "tls: {certificate: " + path + ", key: " + path + ", authorities: " + path + "}"
	}
	const name, here = "cluster: {name: test}", "node: {address: 127.0.0.1:7946}"
	tests := map[string]struct {
		lines []string
		own   []string
		want  string
	}{
		"fine":                       {[]string{name, here}, nil, ""},
		"localhost":                  {[]string{name, "node: {address: localhost:7946}"}, nil, ""},
		"address without TLS":        {[]string{name, "node: {address: 10.0.0.1:7946}"}, nil, ":2: node.address: 10.0.0.1:7946 is not on the loopback"},
		"bind without TLS":           {[]string{name, here, "transport: {bind: 0.0.0.0:7946}"}, nil, ":3: transport.bind: 0.0.0.0:7946 is not on the loopback"},
		"insecure on purpose":        {[]string{name, here, "transport: {bind: 0.0.0.0:7946, allow-insecure: true}"}, nil, ""},
		"certificate is a directory": {[]string{name, here, "transport: {" + tls(dir) + "}"}, nil, ":3: transport.tls.certificate: "},
		"certificate is missing":     {[]string{name, here, "transport: {" + tls("none.pem") + "}"}, nil, "none.pem"},
		"certificate is none":        {[]string{name, here, "transport: {" + tls(text) + "}"}, nil, ":3: transport.tls.certificate: "},
		"certificate of management":  {[]string{name, here, "management: {" + tls(dir) + "}"}, nil, ":3: management.tls.certificate: "},
		"unknown downing":            {[]string{name, here, "downing: {strategy: coin}"}, nil, `:3: downing.strategy: "coin" is neither built in (` + strings.Join(downing.BuiltIns().Names(), ", ")},
		"own downing":                {[]string{name, here, "downing: {strategy: coin}"}, []string{"coin"}, ""},
		"unknown allocation":         {[]string{name, here, "sharding: {allocation: {strategy: dice}}"}, nil, `:3: sharding.allocation.strategy: "dice" is neither`},
		"unknown detector":           {[]string{name, here, "membership: {failure-detector: {strategy: mine}}"}, nil, `:3: membership.failure-detector.strategy: "mine" is neither built in (phi-accrual, deadline) nor the name of a plugin`},
		"plugin of no policy":        {[]string{name, here, "plugins: {x: {policy: weather, path: /bin/x, unpinned: true}}"}, nil, `:3: plugins.x.policy: "weather" is none of [downing allocation failure-detector join-decider discovery]`},
		"variable of a shell":        {[]string{name, `node: {address: "${POD_IP}:7946"}`}, nil, `:2: node.address: "${POD_IP}:7946" has the variable ${POD_IP}, and nothing replaces it in a file: write ${env:POD_IP} for a variable of the environment, or take the key out and set QUORATE_NODE__ADDRESS`},
		"variable in a list":         {[]string{name, here, "membership: {seed-nodes: ['127.0.0.1:7946', '$(SEED):7946']}"}, nil, `:3: membership.seed-nodes: "$(SEED):7946" has the variable $(SEED)`},
		"variable in a map":          {[]string{name, here, "membership: {min-nr-of-members-of-role: {'${ROLE}': 1}}"}, nil, ""},
		"no variable":                {[]string{"cluster: {name: 'a$b'}", here}, nil, ""},
		"several faults":             {[]string{name, "node: {address: 10.0.0.1:7946}", "downing: {strategy: coin}"}, nil, ":2: node.address: 10.0.0.1"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			err := cluster.Check(cluster.Extensions{Strategies: test.own}, file(t, test.lines...))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, config.ErrInvalid)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// Whatever may be chosen by name, a name that nothing has ends a start at its file, line and key,
// with what to do; so does a check of the file, though it does not know what the program gives the
// node in its code.
func TestAStrategyThatNothingHasIsRefusedAtItsKey(t *testing.T) {
	address := free(t)
	for key, test := range map[string]struct{ line, cure string }{
		"membership.failure-detector.strategy": {"membership: {failure-detector: {strategy: dice}}", "add a plugin to the section plugins"},
		"downing.strategy":                     {"downing: {strategy: dice}", "add a plugin to the section plugins"},
		"sharding.allocation.strategy":         {"sharding: {allocation: {strategy: dice}}", "add a plugin to the section plugins"},
		"membership.discovery.methods": {
			"membership: {discovery: {methods: [dice]}}",
			"import github.com/quorate/quorate/discovery/dice, and start the node with the option cluster.WithDiscovery(dice.Method",
		},
		"membership.discovery.join-decider": {
			"membership: {seed-nodes: [" + strconv.Quote(address) + "], discovery: {methods: [static], join-decider: dice}}",
			"add it to the section plugins, or take the name out",
		},
	} {
		t.Run(key, func(t *testing.T) {
			path := file(t, "cluster: {name: test}", "node: {address: "+address+"}", test.line)
			for what, err := range map[string]error{"start": started(t, cluster.WithFile(path)), "check": cluster.Check(cluster.Extensions{}, path)} {
				require.ErrorContains(t, err, path+":3: "+key+": ", what)
				require.ErrorContains(t, err, `"dice"`, what)
				require.ErrorIs(t, err, config.ErrInvalid, what)
			}
			require.ErrorContains(t, started(t, cluster.WithFile(path)), test.cure)
		})
	}
}

// started starts a node that cannot start, and returns the error.
func started(t *testing.T, opts ...cluster.Option) error {
	t.Helper()
	node, err := cluster.Start(t.Context(), opts...)
	if err == nil {
		require.NoError(t, node.Close())
	}
	return err
}

// A check takes the sections that a program has declared: strictly where it knows their
// type, and with any content where it does not. Other sections are refused, with the
// nearest name.
func TestACheckTakesSectionsOfTheProgram(t *testing.T) {
	path := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "twins: {repaet: 1s}")
	require.ErrorContains(t, cluster.Check(cluster.Extensions{}, path), ":3: twins: unknown section")
	own := func(name string, into any) cluster.Extensions {
		return cluster.Extensions{Sections: []config.Section{{Name: name, Into: into}}}
	}
	require.NoError(t, cluster.Check(own("twins", new(any)), path))
	require.ErrorContains(t, cluster.Check(own("twinz", new(any)), path), `:3: twins: unknown section; did you mean "twinz"?`)
	require.ErrorContains(t, cluster.Check(own("twins", new(twins)), path), `:3: twins.repaet: unknown key; did you mean "repeat"?`)
	require.ErrorContains(t, cluster.Check(own("sharding", new(any)), path), `two sections with the name "sharding"`)
}

// A variable that nothing replaces ends a start too, and a node that finds nobody by itself is a warning, since
// its program may have it join.
func TestWhatNobodyHasReplacedOrFinds(t *testing.T) {
	path := file(t, "cluster: {name: test}", `node: {address: "127.0.0.1:7946", zone: "${ZONE}"}`)
	require.ErrorContains(t, started(t, cluster.WithFile(path)), path+`:2: node.zone: "${ZONE}" has the variable ${ZONE}`)
	for line, want := range map[string][]string{
		"membership: {fence: 30s}":                                                     {"membership.seed-nodes"},
		"membership: {seed-nodes: ['127.0.0.1:7946']}":                                 nil,
		"membership: {seed-nodes: ['127.0.0.1:7946'], discovery: {methods: [static]}}": nil,
	} {
		var warned []string
		own := cluster.Extensions{Warn: func(key, reason string) {
			warned = append(warned, key)
			require.Contains(t, reason, "finds nobody")
		}}
		require.NoError(t, cluster.Check(own, file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", line)))
		require.Equal(t, want, warned, line)
	}
	plugin := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "plugins: {x: {policy: downing, path: /bin/x, unpinned: true, args: ['${HOME}']}}")
	require.NoError(t, cluster.Check(cluster.Extensions{Options: []cluster.Option{cluster.WithPlugins(new(stage))}}, plugin), "its arguments are its own")
}

// Kinds that clients are to reach are held to those of the program, where these are known.
func TestKindsThatNothingServesAreRefused(t *testing.T) {
	path := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "gateway: {address: 127.0.0.1:7947, kinds: [account, acount]}")
	require.NoError(t, cluster.Check(cluster.Extensions{}, path))
	require.NoError(t, cluster.Check(cluster.Extensions{Kinds: []string{"acount", "account"}}, path))
	err := cluster.Check(cluster.Extensions{Kinds: []string{"account", "customer"}}, path)
	require.EqualError(t, err, path+`:3: gateway.kinds: "acount" is no kind of the program, which has account, customer, so that clients are refused: correct the name, or name it to config check by --kinds`)
	all := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "gateway: {address: 127.0.0.1:7947, kinds: ['*']}")
	require.NoError(t, cluster.Check(cluster.Extensions{Kinds: []string{"account"}}, all))
}

// A seed node that is the node itself in another form is said in the words of a start, for names of one host as far as
// this machine knows them. Whatever has another port is another node.
func TestACheckSaysWhichSeedNodeIsTheNodeItself(t *testing.T) {
	for seeds, want := range map[string]string{
		"localhost:7946":                 "localhost:7946 is this node, which is called 127.0.0.1:7946: write that into the list",
		"LocalHost:7946, 127.0.0.2:7946": "localhost:7946 is this node, which is called 127.0.0.1:7946: write that into the list",
		"127.0.0.1:7946, localhost:7947": "",
		"'[::ffff:127.0.0.1]:7946'":      "",
		"127.0.0.2:7946":                 "",
	} {
		var told []string
		own := cluster.Extensions{Warn: func(key, reason string) { told = append(told, key+": "+reason) }}
		path := file(t, "cluster: {name: test}", "node: {address: 127.0.0.1:7946}", "membership: {seed-nodes: ["+seeds+"]}")
		require.NoError(t, cluster.Check(own, path))
		if want == "" {
			require.Empty(t, told, seeds)
		} else {
			require.Equal(t, []string{"membership.seed-nodes: " + want}, told, seeds)
		}
	}
}

// Files of the nodes of one cluster are compared.
func TestFilesOfSeveralNodesAreCompared(t *testing.T) {
	node := func(name string, i int, rest string) string {
		return file(t, "cluster: {name: "+name+"}", "node: {address: 127.0.0.1:"+strconv.Itoa(i)+rest+"}", "membership: {seed-nodes: ['127.0.0.1:1']}")
	}
	var told []string
	own := cluster.Extensions{Warn: func(key, reason string) { told = append(told, key+": "+reason) }}
	kept := ", data-dir: x"
	require.NoError(t, cluster.CheckEach(own, node("a", 1, kept), node("a", 2, kept)))
	require.NoError(t, cluster.CheckEach(own, node("a", 1, ""), node("a", 2, "")))
	require.Empty(t, told)

	first, second, third := node("a", 1, kept), node("a", 2, ""), node("a", 3, kept)
	require.NoError(t, cluster.CheckEach(own, first, second, third))
	require.Equal(t, []string{"node.data-dir: is not in " + second + ", but in " + first + ", " + third +
		": after a restart of all nodes only those with one count, and if they are no majority none starts by itself"}, told)

	told = nil
	other := file(t, "cluster: {name: a}", "node: {address: 127.0.0.1:2}", "membership: {seed-nodes: ['127.0.0.1:2']}")
	require.NoError(t, cluster.CheckEach(own, node("a", 1, ""), other))
	require.Len(t, told, 1)
	require.Contains(t, told[0], "membership.seed-nodes: differs, 2 lists in 2 files")

	err := cluster.CheckEach(own, first, node("b", 1, kept))
	require.ErrorIs(t, err, config.ErrInvalid)
	require.ErrorContains(t, err, `cluster.name: "b" is "a" in `+first)
	require.ErrorContains(t, err, "node.address: 127.0.0.1:1 is that of "+first+" too")
	require.ErrorContains(t, cluster.CheckEach(own, first, file(t, "cluster: {name: a}")), "node.address")
}
