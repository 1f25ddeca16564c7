// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package toml_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/configtest"
	"github.com/quorate/quorate/config/toml"
	"github.com/quorate/quorate/internal/patience"
)

// TOML beside the formats that are built in: the same values as in YAML, the place of a
// fault, texts that are refused, files that are mixed; then bounds, trees at random, and
// any text.

// parse reads a text under the name of a file.
func parse(name, text string) (map[string]any, error) {
	file, err := config.Parse(name, []byte(text), toml.Format())
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	return tree, file.Decode("", &tree)
}

// Settings in TOML have the values of the same settings in YAML, whatever ends the lines.
func TestTOMLGivesTheValuesThatYAMLGives(t *testing.T) {
	want, err := parse("c.yaml", `
node: {name: bank, address: "127.0.0.1:7946", roles: [backend, eu], weight: 255, offset: -32768, limit: 7, allow-insecure: true}
membership:
  gossip-interval: 250ms
  failure-detector: {threshold: 10.5}
  seed-nodes: ["127.0.0.1:7946"]
plugins:
  Witness.one:
    path: plugins/witness
    settings: {url: "https://witness", retries: 3, ratio: 0.5, tags: [a, 1, [true]], list: [{a: 1}, {a: 2}]}
`)
	require.NoError(t, err)
	const text = `
[node]
name = "bank"
address = "127.0.0.1:7946"
roles = [
  "backend", # a comment ]
  'eu',
]
weight = 255
offset = -32_768
limit = 0x7
allow-insecure = true
[membership]
gossip-interval = "250ms"
failure-detector.threshold = 10.5
seed-nodes = ["127.0.0.1:7946"]
[plugins."Witness.one"]
path = """plugins/\
   witness"""
[plugins."Witness.one".settings]
url = "https://witness"
retries = 3
ratio = 0.5
tags = ["a", 1, [true]]
[[plugins."Witness.one".settings.list]]
a = 1
[[plugins."Witness.one".settings.list]]
a = 2
`
	for _, end := range []string{"\n", "\r\n"} {
		got, err := parse("c.toml", strings.ReplaceAll(text, "\n", end))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// settings has the sections of the files below.
type settings struct {
	Node struct {
		Address string   `koanf:"address"`
		Name    string   `koanf:"name"`
		Roles   []string `koanf:"roles"`
		Weight  uint8    `koanf:"weight"`
	} `koanf:"node"`
	Membership struct {
		Interval time.Duration `koanf:"gossip-interval"`
		Stable   time.Duration `koanf:"stable-after"`
		Seeds    []uint8       `koanf:"seed-nodes"`
		Detector struct {
			Threshold float64 `koanf:"threshold"`
		} `koanf:"failure-detector"`
	} `koanf:"membership"`
}

// A fault has its line, as in YAML. covers B54.
func TestAFaultIsShownInItsLine(t *testing.T) {
	const text = `# first line
[node]
addrss = "127.0.0.1:7946"
roles = "backend"
weight = 256
name = 1.10
[membership]
gosip-interval = "1s"
stable-after = 5
seed-nodes = [
  1,
  "nowhere",
]
failure-detector = {threshold = true}
`
	file, err := config.Parse("c.toml", []byte(text), toml.Format())
	require.NoError(t, err)
	err = file.Decode("", new(settings))
	require.Error(t, err)
	for _, want := range []string{
		`c.toml:3: node.addrss: unknown key; did you mean "address"?`,
		`c.toml:4: node.roles: must be a list, not the text "backend", write [a, b]`,
		`c.toml:5: node.weight: 256 is out of range, from 0 to 255`,
		`c.toml:6: node.name: must be text, not the number 1.1, put it in quotes`,
		`c.toml:8: membership.gosip-interval: unknown key; did you mean "gossip-interval"?`,
		`c.toml:9: membership.stable-after: the number 5 is not a duration: `,
		`c.toml:12: membership.seed-nodes[1]: `,
		`c.toml:14: membership.failure-detector.threshold: `,
	} {
		require.ErrorContains(t, err, want)
	}
	require.Len(t, strings.Split(err.Error(), "\n"), 8)
}

// covers B55.
func TestEveryUnusableTextIsOneClearError(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "c.toml: is empty"},
		{"# nothing\n", "c.toml: is empty"},
		{"[node]\nname =\n", "c.toml:2: not valid TOML: unexpected character U+000A at start of value"},
		{"[node\n", "c.toml:1: not valid TOML: expected ']' to close table name"},
		{"\n\n[node]\nname = \"a\n", "c.toml:4: not valid TOML: "},
		{"[node]\nname = 'a'\nroles = []\nname = 'b'\n", "c.toml:4: node.name: the key stands twice, first in line 2"},
		{"[node]\nname = 'a'\n[membership]\n[node]\n", "c.toml:4: node: the key stands twice, first in line 1"},
		{"x = {a = 1,\n a = 2}\n", "c.toml:2: x.a: the key stands twice, first in line 1"},
		{"x = {a = 1, a = 2}\n", "c.toml:1: x.a: the key stands twice, first in line 1"},
		{"a = 1\nb = 2\n[a]\nc = 1\n[d]\n", "c.toml:3: a: the key stands twice, first in line 1"},
		{"a = 1\nb = 2\na.c = 1\nd = 3\n", "c.toml:3: not valid TOML: key a is already defined"},
		{"[a.b]\nx = 1\n[[a]]\ny = 1\n[d]\n", "c.toml:3: not valid TOML: "},
		{"a = 9223372036854775808\n", "c.toml:1: not valid TOML: "},
		{"b = 1\na = 2001-01-01\n", "c.toml:2: a: must not be a date or a time: if it is text, put it in quotes"},
		{"a = [1, 07:32:00]\n", "c.toml:1: a[1]: must not be a date or a time: if it is text, put it in quotes"},
		{"\"a\\u001f\" = 1\n", "c.toml:1: the key \"a\\x1f\" is empty or holds a control character"},
		{"a.\"\" = 1\n", "c.toml:1: a: the key \"\" is empty or holds a control character"},
		{"\n[\"\"]\nx = 1\n", "c.toml:2: the key \"\" is empty or holds a control character"},
		{"a = " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "c.toml:1: not valid TOML: a value is nested deeper than 32 levels"},
		{"a = " + strings.Repeat("{a=", 1<<18), "c.toml:1: not valid TOML: a value is nested deeper than 32 levels"},
		{strings.Repeat("a.", 1<<18) + "a = 1\n", "c.toml:1: a: is nested deeper than 32 levels"},
		{"[" + strings.Repeat("a.", 40) + "a]\nb = 1\n", "c.toml:1: a: is nested deeper than 32 levels"},
		{"a = \"\xff\"\n", "c.toml: is not UTF-8 text"},
		{"a = '" + strings.Repeat("x", 1<<20) + "'\n", "c.toml: is larger than 1048576 bytes"},
	} {
		_, err := parse("c.toml", c.text)
		require.Error(t, err, "%.60q", c.text)
		require.True(t, strings.HasPrefix(err.Error(), c.want), "%.60q: %s", c.text, err)
	}
}

// Files are merged with those of other formats, and include and are included.
func TestFilesAreMixedWithThoseOfOtherFormats(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cluster.toml": "include = ['base.yaml', 'sites/eu.TOML']\n[node]\nname = 'top'\n", "base.yaml": "node: {name: base, weight: 1, roles: [x]}\n",
		"sites/eu.TOML": "[node]\nroles = ['eu']\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	loader := config.Loader{Environ: []string{"QUORATE_NODE__WEIGHT=3"}, Formats: []config.Format{toml.Format()}}
	file, err := loader.Load(filepath.Join(dir, "cluster.toml"))
	require.NoError(t, err)
	var got settings
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "top", got.Node.Name)
	require.Equal(t, []string{"eu"}, got.Node.Roles)
	require.Equal(t, uint8(3), got.Node.Weight)
}

// A file of nearly the largest size that is made to be slow to read is refused soon, since
// the number of its keys and items is bounded.
func TestTheLargestFilesAreReadInBoundedTime(t *testing.T) {
	const size = 1<<20 - 64
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-40; i++ {
			b.WriteString(format(i))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"tables.toml": fill("[[a]]\n"),
		"nested.toml": fill("[[a]]\n[[a.b]]\nc=1\n"),
		"keys.toml":   numbered(func(i int) string { return "k" + strconv.Itoa(i) + "=1\n" }),
		"list.toml":   "a = [" + fill("1,\n") + "]\n",
		"heads.toml":  numbered(func(i int) string { return "[k" + strconv.Itoa(i) + "]\n" }) + "[k1]\n",
	} {
		watch := patience.Start(t)
		_, err := parse(name, text)
		require.ErrorContains(t, err, "more than 10000 keys and list items are in the file", name)
		require.Less(t, watch.Elapsed(), time.Minute, name)
	}
}

func TestTheFormatKeepsTheContract(t *testing.T) {
	configtest.TestFormat(t, toml.Format(), func(tree map[string]any) string {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			text.WriteString(configtest.Entry(key, tree[key], " = ") + "\n")
		}
		return text.String()
	})
}

// FuzzFormat feeds any text. Each text gives a value, or a list of one-line errors, the
// same for the same input. covers B54, B55.
func FuzzFormat(f *testing.F) {
	for _, seed := range []string{
		"[node]\nname = 'a'\nroles = [\n'b' ]\n[[plugins.x.settings.y]]\na.b = 1_0\n",
		"a = {b = {c = 1}}\na.b.d = 2\n[[a]]\n[a.b]\n",
		"x = \"\"\"a\\\n \"\"\"\"\"\ny = '''[[''' # [\nz = 07:32:00\n",
		"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		configtest.CheckText(t, "fuzz.toml", text, toml.Format())
	})
}
