// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package akka_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/manual"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/hocon"
	"github.com/quorate/quorate/tools/internal/reference"
)

// A file of Akka is translated, whole or not at all; the tables of docs are those of the rules.

var rewrite = flag.Bool("rewrite", false, "write the translation and the tables anew")

func translate(t *testing.T, text string) (*akka.Translation, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "application.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return translateFile(t, path)
}

func translateFile(t *testing.T, path string) (*akka.Translation, error) {
	t.Helper()
	settings, err := hocon.Read(path, nil)
	require.NoError(t, err)
	return akka.Translate(settings, cluster.Extensions{Options: []cluster.Option{cluster.WithStore(durable.OpenIn)}})
}

func TestAFileIsTranslated(t *testing.T) {
	got, err := translateFile(t, "testdata/application.conf")
	require.NoError(t, err)
	if *rewrite {
		require.NoError(t, os.WriteFile("testdata/cluster.yaml", []byte(got.File), 0o600))
	}
	want, err := os.ReadFile("testdata/cluster.yaml")
	require.NoError(t, err)
	require.Equal(t, string(want), got.File)
	require.Equal(t, []akka.Diagnostic{
		{Key: "ddata.durable", Why: "durable keys need a directory: set node.data-dir, or ddata.dir"},
		{Key: "transport.bind", Why: "0.0.0.0:2551 is not on the loopback interface, where alone a node listens without TLS: configure transport.tls, or set transport.allow-insecure"},
	}, got.Missing)
	unneeded := map[string]string{}
	for _, n := range got.Obsolete {
		unneeded[n.Key] = n.Why
	}
	require.Contains(t, unneeded["akka.actor.provider"], "a program that starts a node")
	require.Contains(t, unneeded["akka.actor.default-dispatcher.fork-join-executor.parallelism-max"], "goroutines")
	require.Contains(t, unneeded["akka.cluster.sharding.remember-entities"], "in code")
	require.Len(t, unneeded, 4)
	require.Equal(t, []akka.Diagnostic{
		{Key: "akka.cluster.made-up", Place: "testdata/application.conf:23"},
		{Key: "bank.limit", Place: "testdata/application.conf:32", Why: "is the program's own: a section of the program has them here, see cluster.WithSection"},
	}, got.Unknown)

	got, err = translate(t, "pekko.cluster.roles = [a]")
	require.NoError(t, err)
	require.Len(t, got.Missing, 2)
	require.Equal(t, "cluster.name, node.address", got.Missing[0].Key+", "+got.Missing[1].Key)
	require.Equal(t, "node:\n  roles: [a] # pekko.cluster.roles\n", got.File)
	got, err = translate(t, "")
	require.NoError(t, err)
	require.Empty(t, got.File)
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]string{
		"5": "5ms", "5 s": "5s", "5 seconds": "5s", "1 minute": "1m0s", "90m": "1h30m0s", "0.5s": "500ms", "200 millis": "200ms", "1d": "24h0m0s", "\"3 us\"": "", "-1s": "", "soon": "", "5 weeks": "", "[1]": "", "0.1ns": "", "9999999999 d": "",
	} {
		got, err := translate(t, "akka.cluster.gossip-interval = "+text)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Contains(t, got.File, "gossip-interval: "+want+" #", text)
	}
	for text, want := range map[string]string{"256000": "256000", "256k": "262144", "1 MiB": "1048576", "300kB": "300000", "1.5 M": "1572864", "1X": "", "-5": "", "1 GiB": ""} {
		got, err := translate(t, "akka.remote.artery.advanced.maximum-frame-size = "+text)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Contains(t, got.File, "max-frame-bytes: "+want+" #", text)
	}
}

// Each fault has its place, they come together, and nothing is translated then.
func TestWhatCannotBeTranslated(t *testing.T) {
	got, err := translate(t, strings.Join([]string{
		"akka.cluster.seed-nodes = [\"10.0.0.1:2551\"]", "akka.cluster.min-nr-of-members = many", "akka.cluster.split-brain-resolver.active-strategy = keep-referee",
		"akka.cluster.sharding.handoff-timeout = []", "akka.remote.artery.canonical.port = 70000", "akka.discovery.method = aggregate", "akka.cluster.split-brain-resolver.keep-oldest.down-if-alone = maybe",
		"akka.cluster.failure-detector.threshold = high", "akka.cluster.roles = [{a = 1}]", "pekko.cluster.split-brain-resolver.lease-majority.lease-implementation = mine",
	}, "\n"))
	require.Nil(t, got)
	var faults config.Errors
	require.ErrorAs(t, err, &faults)
	require.Len(t, faults, 10)
	lines := map[int]bool{}
	for _, f := range faults {
		lines[f.Line] = true
		require.Contains(t, f.File, "application.conf")
	}
	require.Len(t, lines, 10)
	for text, want := range map[string]string{
		"akka.cluster.gossip-interval = 9000h":                                                                                   "becomes membership.gossip-interval, which is refused: ",
		"akka.cluster.seed-nodes = [\"akka://a@h:1\", \"akka://b@h:2\"]":                                                         "two actor systems, a and b",
		"akka.cluster.seed-nodes = [\"akka://a@h\"]":                                                                             "becomes membership.seed-nodes, which is refused: ",
		"akka.cluster.roles = [a]\npekko.cluster.roles = [b]":                                                                    "becomes node.roles, as akka.cluster.roles does, which says something else",
		"akka.cluster.sharding { passivate-idle-entity-after = 1m, passivation.default-idle-strategy.idle-entity.timeout = 2m }": "says something else",
	} {
		got, err := translate(t, text)
		require.Nil(t, got)
		require.ErrorContains(t, err, want)
	}
}

// What a value demands of others, which are the defaults here, is said.
func TestValuesThatNeedOthers(t *testing.T) {
	got, err := translate(t, "akka.cluster.failure-detector.heartbeat-interval = 2m")
	require.NoError(t, err)
	var missing []string
	for _, n := range got.Missing {
		missing = append(missing, n.Key)
	}
	require.ElementsMatch(t, []string{"cluster.name", "node.address", "membership.failure-detector.max-silence", "membership.fence"}, missing)
}

// A rule makes a key that there is, and no setting has two rules, or a rule and a reason why it needs none.
func TestRulesNameKeys(t *testing.T) {
	all, err := reference.Read()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, r := range akka.Rules() {
		_, ok := manual.Find(all, r.To)
		require.True(t, ok, r.To)
		require.False(t, seen[r.From], r.From)
		seen[r.From] = true
	}
	for _, u := range akka.ObsoleteKeys() {
		require.False(t, seen[u.From], u.From)
		require.NotEmpty(t, u.Why)
		seen[u.From] = true
	}
}

// The tables of docs/choosing.md are made of the rules.
func TestThePageHasTheRules(t *testing.T) {
	const page = "../../../docs/choosing.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	const begin, end = "<!-- rules: made by `go test ./tools/internal/akka -args -rewrite` -->\n", "<!-- end of the rules -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	now, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *rewrite {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+akka.Markdown()+end+after), 0o600))
		return
	}
	require.Equal(t, akka.Markdown(), now)
}
