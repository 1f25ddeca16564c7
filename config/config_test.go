// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
)

// Decoding files into structs. After the structs of the tests come values over defaults and
// the faults of all sections; then files over files and the environment over them; then
// files and values that are refused; last targets that cannot be filled, and rules over
// several sections.

// fieldError is what a module writes to point at one of its keys.
type fieldError struct{ field, reason string }

func (e *fieldError) Error() string { return e.reason }
func (e *fieldError) Field() string { return e.field }

type detector struct {
	Strategy  string        `koanf:"strategy"`
	Threshold float64       `koanf:"threshold"`
	Pause     time.Duration `koanf:"acceptable-heartbeat-pause"`
}

type membership struct {
	Interval time.Duration    `koanf:"gossip-interval"`
	Fence    time.Duration    `koanf:"fence"`
	Stable   time.Duration    `koanf:"stable-after"`
	Seeds    []netip.AddrPort `koanf:"seed-nodes"`
	Detector detector         `koanf:"failure-detector"`
	Observer func()           // No file can set a function.
}

func (m *membership) Validate() error {
	var errs []error
	if m.Fence > m.Stable {
		errs = append(errs, &fieldError{"fence", "must not be above stable-after"})
	}
	if m.Detector.Threshold <= 0 {
		errs = append(errs, &fieldError{"failure-detector.threshold", "must be above 0"})
	}
	return errors.Join(errs...)
}

type plugin struct {
	Path     string `koanf:"path"`
	Settings any    `koanf:"settings"`
}

func (p plugin) Validate() error {
	if p.Path == "" {
		return &fieldError{"path", "is needed"}
	}
	return nil
}

type common struct {
	Name string `koanf:"name"`
}

type node struct {
	common   `koanf:",squash"`
	Address  string   `koanf:"address"`
	Roles    []string `koanf:"roles"`
	Weight   uint8    `koanf:"weight"`
	Offset   int16    `koanf:"offset"`
	Insecure bool     `koanf:"allow-insecure"`
	Limit    *int     `koanf:"limit"`
}

type document struct {
	Node       node              `koanf:"node"`
	Membership membership        `koanf:"membership"`
	Plugins    map[string]plugin `koanf:"plugins"`
}

func defaults() document {
	return document{
		Node: node{Roles: []string{"all"}, Weight: 1},
		Membership: membership{
			Interval: time.Second, Fence: 3 * time.Second, Stable: 5 * time.Second,
			Detector: detector{Strategy: "phi-accrual", Threshold: 8, Pause: 3 * time.Second},
		},
		Plugins: map[string]plugin{"builtin": {Path: "/builtin"}},
	}
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// faults returns the lines of an error, with the directory of the test removed.
func faults(t *testing.T, err error) []string {
	t.Helper()
	var errs config.Errors
	require.ErrorAs(t, err, &errs)
	lines := make([]string, len(errs))
	for i, e := range errs {
		if e.File != "" && !strings.HasPrefix(e.File, "$") {
			e.File = filepath.Base(e.File)
		}
		lines[i] = e.Error()
		require.NotContains(t, lines[i], "\n")
	}
	return lines
}

func TestValuesOverwriteDefaultsAndTheRestStays(t *testing.T) {
	path := write(t, "cluster.yaml", `
node:
  name: bank
  address: 127.0.0.1:7946
  roles: [backend, eu]
  weight: 255
  offset: -32768
  limit: 7
membership:
  gossip-interval: 250ms
  seed-nodes: [127.0.0.1:7946, "[::1]:7946"]
  failure-detector: {threshold: 10}
plugins:
  Witness.one:
    path: plugins/witness
    settings: {url: "https://witness", retries: 3, tags: [a, 1]}
`)
	file, err := config.Loader{}.Load(path)
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "bank", got.Node.Name)
	require.Equal(t, []string{"backend", "eu"}, got.Node.Roles)
	require.Equal(t, uint8(255), got.Node.Weight)
	require.Equal(t, int16(-32768), got.Node.Offset)
	require.Equal(t, 7, *got.Node.Limit)
	require.Equal(t, 250*time.Millisecond, got.Membership.Interval)
	require.Equal(t, 3*time.Second, got.Membership.Fence)
	require.Equal(t, netip.MustParseAddrPort("[::1]:7946"), got.Membership.Seeds[1])
	require.InDelta(t, 10, got.Membership.Detector.Threshold, 0)
	require.Equal(t, "phi-accrual", got.Membership.Detector.Strategy)
	require.Equal(t, map[string]any{"url": "https://witness", "retries": 3, "tags": []any{"a", 1}}, got.Plugins["Witness.one"].Settings)
	require.Equal(t, "/builtin", got.Plugins["builtin"].Path)
	require.Equal(t, []string{"membership", "node", "plugins"}, file.Sections())
	require.True(t, file.Has("node"))
	require.False(t, file.Has("sharding"))
	require.Equal(t, filepath.Dir(path), file.Dir())
	require.Equal(t, filepath.Join(filepath.Dir(path), "plugins/witness"), file.Resolve(got.Plugins["Witness.one"].Path))
	require.Equal(t, "/abs", file.Resolve("/abs"))
	require.Equal(t, []string{path}, file.Paths())
}

// One Decode reports every fault of every section. covers B54.
func TestAllFaultsOfAllSectionsAreReportedTogether(t *testing.T) {
	path := write(t, "cluster.yaml", `node:
  addrss: 127.0.0.1:7946
  roles: backend
  weight: 256
  allow-insecure: "yes"
  name: 1.10
membership:
  gosip-interval: 1s
  fence: 1d
  stable-after: 5
  seed-nodes: [127.0.0.1:7946, nowhere]
  failure-detector: {threshold: -1, strategy: }
  fenceAfter: 2s
plugins:
  witness: {settings: {}}
shards: {}
threshold: 8
`)
	file, err := config.Loader{}.Load(path)
	require.NoError(t, err)
	got := defaults()
	err = file.Decode("", &got)
	require.Equal(t, []string{
		`cluster.yaml:2: node.addrss: unknown key; did you mean "address"?`,
		`cluster.yaml:3: node.roles: must be a list, not the text "backend", write [a, b]`,
		`cluster.yaml:4: node.weight: 256 is out of range, from 0 to 255`,
		`cluster.yaml:5: node.allow-insecure: must be true or false, not the text "yes"`,
		`cluster.yaml:6: node.name: must be text, not the number 1.1, put it in quotes`,
		`cluster.yaml:8: membership.gosip-interval: unknown key; did you mean "gossip-interval"?`,
		`cluster.yaml:9: membership.fence: "1d" is not a duration: write a number and a unit of ns, us, ms, s, m or h, such as "500ms" or "1h30m" (there is no unit for days, one day is 24h)`,
		`cluster.yaml:10: membership.stable-after: the number 5 is not a duration: write a number and a unit of ns, us, ms, s, m or h, such as "500ms" or "1h30m"`,
		`cluster.yaml:11: membership.seed-nodes[1]: bad value "nowhere": not an ip:port`,
		`cluster.yaml:12: membership.failure-detector.strategy: has no value, give one or remove the line`,
		`cluster.yaml:12: membership.failure-detector.threshold: must be above 0`,
		`cluster.yaml:13: membership.fenceAfter: unknown key, known here: failure-detector, fence, gossip-interval, seed-nodes, stable-after`,
		`cluster.yaml:15: plugins.witness.path: is needed`,
		`cluster.yaml:16: shards: unknown section, known here: membership, node, plugins`,
		`cluster.yaml:17: threshold: unknown section; did you mean "membership.failure-detector.threshold"?`,
	}, faults(t, err))
	require.Equal(t, defaults(), got, "a refused document changes nothing")
	for _, class := range []error{config.ErrUnknownKey, config.ErrBadValue, config.ErrInvalid} {
		require.ErrorIs(t, err, class)
	}
	var pointed *fieldError
	require.ErrorAs(t, err, &pointed, "the validator's own error can be asked for")
}

func TestSectionIsDecodedByItself(t *testing.T) {
	file, err := config.Parse("inline", []byte("membership: {fence: 2s}\nunknown-here: {}\n"))
	require.NoError(t, err)
	got := defaults().Membership
	require.NoError(t, file.Decode("membership", &got), "other sections are somebody else's")
	require.Equal(t, 2*time.Second, got.Fence)
	require.Empty(t, file.Dir())
	require.Equal(t, "p", file.Resolve("p"))

	absent := defaults().Node
	require.NoError(t, file.Decode("node", &absent))
	require.Equal(t, defaults().Node, absent)

	broken := membership{Fence: time.Hour}
	err = file.Decode("absent", &broken)
	require.Equal(t, []string{
		"inline: absent.failure-detector.threshold: must be above 0",
		"inline: absent.fence: must not be above stable-after",
	}, faults(t, err), "defaults are validated too")
}

func TestLaterFilesAndThenTheEnvironmentWin(t *testing.T) {
	base := write(t, "base.yaml", "node: {name: a, roles: [x, y], weight: 1}\nmembership: {fence: 1s}\n")
	site := write(t, "site.yaml", "node: {name: b, roles: [z]}\n")
	file, err := config.Loader{Environ: []string{
		"QUORATE_NODE__WEIGHT=9",
		"QUORATE_MEMBERSHIP__FAILURE_DETECTOR__ACCEPTABLE_HEARTBEAT_PAUSE=4s",
		"QUORATE_MEMBERSHIP__FAILURE_DETECTOR__THRESHOLD=9.5",
		"QUORATE_NODE__ALLOW_INSECURE=true",
		"QUORATE_NODE__LIMIT=-3",
		"QUORATE_NODE__OFFSET=-5",
		"QUORATE_NODE__ADDRESS=12",
		"QUORATE_MEMBERSHIP__SEED_NODES=127.0.0.1:1, 127.0.0.1:2",
		"QUORATE_PLUGINS__WITNESS__PATH=/w",
		"QUORATE_PLUGINS__WITNESS__SETTINGS=12",
		"QUORATE_SERVICE_HOST=10.0.0.1", // Container platforms set such variables.
		"OTHER__KEY=1",
		"malformed",
	}}.Load(base, site)
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "b", got.Node.Name)
	require.Equal(t, []string{"z"}, got.Node.Roles)
	require.Equal(t, uint8(9), got.Node.Weight)
	require.Equal(t, int16(-5), got.Node.Offset)
	require.Equal(t, "12", got.Node.Address)
	require.Equal(t, -3, *got.Node.Limit)
	require.True(t, got.Node.Insecure)
	require.Equal(t, time.Second, got.Membership.Fence)
	require.Equal(t, 4*time.Second, got.Membership.Detector.Pause)
	require.InDelta(t, 9.5, got.Membership.Detector.Threshold, 0)
	require.Len(t, got.Membership.Seeds, 2)
	require.Equal(t, plugin{Path: "/w", Settings: 12}, got.Plugins["witness"])
}

// covers B56.
func TestEnvironmentFaultsNameTheVariable(t *testing.T) {
	path := write(t, "c.yaml", "node: {name: a}\n")
	load := func(environ ...string) (*config.File, error) { return config.Loader{Environ: environ}.Load(path) }

	_, err := load("QUORATE_node__name=x", "QUORATE_NODE____NAME=x", "QUORATE_NODE__NAME=a\x00b", "QUORATE_NODE__ADDRESS=a\nb",
		"QUORATE_A__B=1", "QUORATE_A__B__C=2", "QUORATE_N__B=\xff")
	require.Equal(t, []string{
		"$QUORATE_NODE__ADDRESS: node.address: the value holds a control character or is not UTF-8",
		"$QUORATE_NODE__NAME: node.name: the value holds a control character or is not UTF-8",
		"$QUORATE_NODE____NAME: the name must be SECTION__KEY, with two underscores between levels and one for a hyphen",
		"$QUORATE_N__B: n.b: the value holds a control character or is not UTF-8",
		"$QUORATE_node__name: the name may hold capital letters, digits and underscores only",
		"$QUORATE_A__B__C: a.b.c: contradicts $QUORATE_A__B, which sets a.b as a whole",
	}, faults(t, err))

	file, err := load("QUORATE_MEMBERSHIP_GOSSIP_INTERVAL=1s", "QUORATE_NODE__ROLES=[a", "QUORATE_MEMBERSHIP__SEED_NODES=1,x",
		"QUORATE_MEMBERSHIP__FAILURE_DETECTOR__THRESHOLD=NaN", "QUORATE_NODE__WEIGHT=-1", "QUORATE_NODE__LIMIT=many", "QUORATE_NODE__ALLOW_INSECURE=1",
		"QUORATE_MEMBERSHIP__FENCE=3", "QUORATE_PLUGINS__X=1", "QUORATE_NODE__NAMES=x", "QUORATE_MEMBERSHIP=1", "QUORATE_SERVICE_HOST=10.0.0.1", "QUORATE_NODE_PORT=1")
	require.NoError(t, err)
	got := defaults()
	lines := faults(t, file.Decode("", &got))
	require.Len(t, lines, 12)
	for i, want := range []string{
		"$QUORATE_MEMBERSHIP: membership: names a section and no key: set QUORATE_MEMBERSHIP__KEY for a key of it, with two underscores",
		"$QUORATE_MEMBERSHIP_GOSSIP_INTERVAL: membership.gossip-interval: the levels of a key are separated by two underscores; did you mean \"QUORATE_MEMBERSHIP__GOSSIP_INTERVAL\"?",
		"$QUORATE_MEMBERSHIP__FAILURE_DETECTOR__THRESHOLD: membership.failure-detector.threshold: NaN is not a finite number of this size",
		"$QUORATE_MEMBERSHIP__FENCE: membership.fence: \"3\" is not a duration",
		"$QUORATE_MEMBERSHIP__SEED_NODES: membership.seed-nodes: item 1: bad value \"1\"",
		"$QUORATE_MEMBERSHIP__SEED_NODES: membership.seed-nodes: item 2: bad value \"x\"",
		"$QUORATE_NODE__ALLOW_INSECURE: node.allow-insecure: must be true or false, not the text \"1\"",
		"$QUORATE_NODE__LIMIT: node.limit: must be a whole number, not the text \"many\"",
		"$QUORATE_NODE__NAMES: node.names: unknown key; did you mean \"name\"?",
		"$QUORATE_NODE__ROLES: node.roles: \"[a\" is not a list",
		"$QUORATE_NODE__WEIGHT: node.weight: -1 is out of range, from 0 to 255",
		"$QUORATE_PLUGINS__X: plugins.x: is a group of settings, which have variables of their own",
	} {
		require.True(t, strings.HasPrefix(lines[i], want), "%s\n%s", want, lines[i])
	}
}

func TestListsInVariablesMayBeQuoted(t *testing.T) {
	path := write(t, "c.yaml", "node: {name: a}\n")
	for text, want := range map[string][]string{
		"":           {},
		"a":          {"a"},
		" a , b ":    {"a", "b"},
		`["a,b", c]`: {"a,b", "c"},

		"[::1]:1,[::1]:2": {"[::1]:1", "[::1]:2"}, // Addresses of version 6 begin with a bracket.
		"[::1],[::2]":     {"[::1]", "[::2]"},
	} {
		file, err := config.Loader{Environ: []string{"QUORATE_NODE__ROLES=" + text}}.Load(path)
		require.NoError(t, err)
		got := defaults()
		require.NoError(t, file.Decode("", &got))
		require.Equal(t, want, got.Node.Roles, text)
	}
	file, err := config.Loader{Environ: []string{"QUORATE_NODE__ROLES=a,,b"}}.Load(path)
	require.NoError(t, err)
	got := defaults()
	require.ErrorIs(t, file.Decode("", &got), config.ErrBadValue)
}

// covers B55.
func TestEveryUnusableFileIsOneClearError(t *testing.T) {
	bomb := "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "c.yaml: is empty"},
		"comments alone":    {"# nothing\n", "c.yaml: is empty"},
		"null":              {"~\n", "c.yaml: is empty"},
		"list at the top":   {"- a\n", "c.yaml:1: the top of the file must be a map of sections, such as \"node:\""},
		"word at the top":   {"node\n", "c.yaml:1: the top of the file must be a map of sections, such as \"node:\""},
		"syntax":            {"node:\n  a: [\n", "c.yaml:2: not valid YAML: did not find expected node content"},
		"tab":               {"node:\n\ta: 1\n", "c.yaml:2: not valid YAML: found character that cannot start any token"},
		"no UTF-8":          {"node: \xff\xfe\n", "c.yaml: is not UTF-8 text"},
		"two documents":     {"a: {}\n---\nb: {}\n", "c.yaml:2: a second document begins here, one is allowed"},
		"duplicate key":     {"node:\n  name: a\n  name: b\n", "c.yaml:3: node.name: the key stands twice, first in line 2"},
		"anchor":            {"a: &x {b: 1}\n", "c.yaml:1: a: anchors and aliases are not supported, repeat the value"},
		"merge key":         {"<<: {b: 1}\n", "c.yaml:1: anchors and aliases are not supported, repeat the value"},
		"tag":               {"a: !secret x\n", "c.yaml:1: a: the tag !secret is not supported"},
		"list as a key":     {"? [a]\n: 1\n", "c.yaml:1: a key must be a word"},
		"control character": {"\"a\\x1f\": 1\n", "c.yaml:1: the key \"a\\x1f\" is empty or holds a control character"},
		"nested too deep":   {"a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", "c.yaml:1: a: is nested deeper than 32 levels"},
		"too large":         {"a: " + strings.Repeat("x", 1<<20) + "\n", "c.yaml: is larger than 1048576 bytes"},
		"alias bomb":        {bomb, "c.yaml:1: a: anchors and aliases are not supported, repeat the value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Loader{}.Load(write(t, "c.yaml", c.text))
			require.Equal(t, c.want, faults(t, err)[0])
		})
	}
	_, err := config.Loader{}.Load(filepath.Join(t.TempDir(), "absent.yaml"), write(t, "c.json", "x"), write(t, "e.yaml", ""))
	require.Equal(t, []string{
		"absent.yaml: no such file", "c.json:1: not valid JSON: invalid character 'x' looking for beginning of value", "e.yaml: is empty",
	}, faults(t, err), "the faults of all files come together")
	_, err = config.Loader{}.Load(t.TempDir())
	require.ErrorContains(t, err, "is a directory, a file is needed")
	_, err = config.Loader{}.Load(os.DevNull)
	require.ErrorContains(t, err, "is not a regular file")
	_, err = config.Loader{}.Load()
	require.ErrorIs(t, err, config.ErrRead)
}

func TestByteOrderMarkAndCarriageReturnsAreFine(t *testing.T) {
	file, err := config.Loader{}.Load(write(t, "c.yaml", "\ufeffnode:\r\n  name: a\r\n  oops: 1\r\n"))
	require.NoError(t, err)
	got := defaults()
	require.Equal(t, []string{
		"c.yaml:3: node.oops: unknown key, known here: address, allow-insecure, limit, name, offset, roles, weight",
	}, faults(t, file.Decode("", &got)))
}

func TestOddValuesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"node: 3":                                              "node: must be a group of settings, not the number 3",
		"node: [a]":                                            "node: must be a group of settings, not a list",
		"node: {name: {a: 1}}":                                 "node.name: must be text, not a map",
		"node: {name: 2001-01-01}":                             "node.name: must be text, not a date, put it in quotes",
		"node: {name: true}":                                   "node.name: must be text, not the truth value true, put it in quotes",
		"node: {weight: 1.5}":                                  "node.weight: must be a whole number, not the number 1.5",
		"node: {weight: \"1\"}":                                "node.weight: must be a whole number, not the text \"1\"",
		"node: {offset: 32768}":                                "node.offset: 32768 is out of range, from -32768 to 32767",
		"node: {offset: -32769}":                               "node.offset: -32769 is out of range, from -32768 to 32767",
		"node: {limit: 18446744073709551615}":                  "node.limit: 18446744073709551615 is out of range, from -9223372036854775808 to 9223372036854775807",
		"node: {roles: [~]}":                                   "node.roles[0]: is empty",
		"membership: {failure-detector: {threshold: x}}":       "membership.failure-detector.threshold: must be a number, not the text \"x\"",
		"membership: {failure-detector: {threshold: .inf}}":    "membership.failure-detector.threshold: +Inf is not a finite number of this size",
		"membership: {seed-nodes: [1]}":                        "membership.seed-nodes[0]: must be text (netip.AddrPort), not the number 1",
		"membership: {fence: 99999999h}":                       "membership.fence: \"99999999h\" is too large: durations end at 2562047h0m0s",
		"membership: {fence: " + strings.Repeat("x", 99) + "}": "membership.fence: \"" + strings.Repeat("x", 60) + "…\" is not a duration",
		"plugins: [a]":                                         "plugins: must be a map, not a list",
		"plugins: {1: {path: a, oops: 2}}":                     "plugins.1.oops: unknown key",
	} {
		file, err := config.Parse("c", []byte(text))
		require.NoError(t, err)
		got := defaults()
		lines := faults(t, file.Decode("", &got))
		require.True(t, strings.HasPrefix(lines[0], "c:1: "+want), "%s\n%s", lines[0], want)
	}
}

// pinned refuses an item of its list.
type pinned struct {
	Sums texts `koanf:"sums"`
}

func (p *pinned) Validate() error {
	for i, sum := range p.Sums {
		if sum == "bad" {
			return field.Errorf(fmt.Sprintf("sums[%d]", i), "is bad")
		}
	}
	return nil
}

// A list of texts that has a form as text may be written as one text. Its items have lines of their own.
func TestATextMayStandForAListOfIt(t *testing.T) {
	for text, want := range map[string]texts{
		"a: {}": nil, "a: {sums: x}": {"x"}, "a: {sums: [x, y]}": {"x", "y"}, "a: {sums: []}": {}, "a:\n  sums:\n  - x\n": {"x"},
	} {
		file, err := config.Parse("c", []byte(text))
		require.NoError(t, err)
		var got struct {
			A pinned `koanf:"a"`
		}
		require.NoError(t, file.Decode("", &got), text)
		require.Equal(t, want, got.A.Sums, text)
	}
	for text, want := range map[string]string{
		"a: {sums: 1}":                  "c:1: a.sums: must be text, or a list of text, not the number 1",
		"a: {sums: {x: y}}":             "c:1: a.sums: must be text, or a list of text, not a map",
		"a: {sums: [x, 1]}":             "c:1: a.sums[1]: must be text, not the number 1",
		"a:\n  sums:\n  - x\n  - bad\n": "c:4: a.sums[1]: is bad",
	} {
		file, err := config.Parse("c", []byte(text))
		require.NoError(t, err)
		var got struct {
			A pinned `koanf:"a"`
		}
		require.True(t, strings.HasPrefix(faults(t, file.Decode("", &got))[0], want), "%q", faults(t, file.Decode("", &got)))
	}
}

// A duration that cannot be parsed leaves the default, so that a rule which compares
// it with another setting has nothing to complain of.
func TestABadDurationIsOneFault(t *testing.T) {
	file, err := config.Parse("c", []byte("membership: {stable-after: soon}"))
	require.NoError(t, err)
	got := defaults()
	lines := faults(t, file.Decode("", &got))
	require.Len(t, lines, 1, "%q", lines)
	require.Contains(t, lines[0], "c:1: membership.stable-after: ")
}

func TestEmptySectionMeansItsDefaults(t *testing.T) {
	file, err := config.Parse("c", []byte("node:\nmembership: {failure-detector: , fence: 0}\nplugins:\n"))
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	want := defaults()
	want.Membership.Fence = 0
	require.Equal(t, want, got)
}

func TestTargetsThatNoFileCouldFillAreRefused(t *testing.T) {
	file, err := config.Parse("c", []byte("a: {}\n"))
	require.NoError(t, err)
	type loop struct {
		Next *loop `koanf:"next"`
	}
	var number int
	for _, target := range []any{
		nil, document{}, &number, (*document)(nil), &loop{}, &struct {
			F func() `koanf:"f"`
		}{}, &struct {
			M map[int]string `koanf:"m"`
		}{}, &struct {
			E error `koanf:"e"`
		}{},
	} {
		require.Error(t, file.Decode("", target))
	}
}

// crossed has a rule that concerns two sections.
type crossed struct {
	A common `koanf:"a"`
	B common `koanf:"b"`
}

func (c crossed) Validate() error {
	if c.A.Name == c.B.Name {
		return &fieldError{"b.name", "b.name: must differ from a.name"}
	}
	return nil
}

func TestDocumentMayHaveRulesOverSections(t *testing.T) {
	file, err := config.Parse("c", []byte("a: {name: x}\nb:\n  name: x\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"c:3: b.name: must differ from a.name"}, faults(t, file.Decode("", &crossed{})))
}

// What is found after the files were read, when something starts with their settings, gets the
// place of its setting; an error about something else stays as it is.
func TestAFaultThatIsFoundLaterIsLocated(t *testing.T) {
	f, err := config.Parse("a.yaml", []byte("a: 1\ndowning:\n  strategy: dice\n"))
	require.NoError(t, err)
	cause := errors.New("there is no such strategy")
	started := fmt.Errorf("start: %w", &field.Error{Key: "downing.strategy", Reason: "write another", Err: cause})
	located := f.Locate(started)
	require.EqualError(t, located, "a.yaml:3: downing.strategy: write another")
	require.ErrorIs(t, located, config.ErrInvalid)
	require.ErrorIs(t, located, cause)
	require.ErrorIs(t, located, started)
	require.EqualError(t, f.Locate(field.Errorf("downing.mode", "a default")), "a.yaml:2: downing.mode: a default", "where the section is")
	f, err = config.Parse("a.yaml", []byte("names:\n- a\n- b\n"))
	require.NoError(t, err)
	for _, key := range []string{"names[1]", "names.[1]"} {
		require.EqualError(t, f.Locate(field.Errorf(key, "is bad")), "a.yaml:3: names[1]: is bad")
	}
	require.EqualError(t, new(config.File).Locate(started), "downing.strategy: write another")
	require.Equal(t, cause, f.Locate(cause))
	require.NoError(t, f.Locate(nil))
}

func TestProcessEnvironmentIsRead(t *testing.T) {
	t.Setenv("QUORATE_NODE__NAME", "from-environment")
	file, err := config.Load(write(t, "c.yaml", "node: {name: a}\n"))
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "from-environment", got.Node.Name)
}

// Numbers of YAML are read as they are by the other formats, or refused with the number that YAML would have read.
func TestNumbersOfYAMLAreDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0100": "node.limit: 0100 is not a decimal number as written, and YAML would read 64: write that number in decimal digits, or put a text in quotes",
		"0x10": "YAML would read 16", "0o17": "YAML would read 15", "0b11": "YAML would read 3", "1_000": "YAML would read 1000", "-0100": "YAML would read -64",
		"09": "YAML would read 9", "1_0.5": "YAML would read 10.5", "1e3": "node.limit: is not a whole number as written: write 1000, without a point and an exponent",
		"1000.0": "node.limit: is not a whole number as written: write 1000", "'0100'": "must be a whole number, not the text", "100": "", "+7": "", "0": "", "-1": "",
	} {
		file, err := config.Parse("c.yaml", []byte("node:\n  limit: "+text+"\n"))
		if err == nil {
			err = file.Decode("node", &struct {
				Limit int `koanf:"limit"`
			}{})
		}
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, "c.yaml:2: ", text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := config.Parse("c.yaml", []byte("node:\n  weights: {0100: 1}\n  list: [1, 0x2]\n"))
	require.ErrorContains(t, err, "c.yaml:2: node.weights: 0100 is not a decimal number")
	require.ErrorContains(t, err, "c.yaml:3: node.list[1]: 0x2 is not a decimal number")
}
