// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/config"
)

// one holds the same settings in each format.
func one() map[string]string {
	return map[string]string{
		"c.yaml": `
node: {name: bank, address: "127.0.0.1:7946", roles: [backend, eu], weight: 255, offset: -32768, limit: 7, allow-insecure: true}
membership:
  gossip-interval: 250ms
  failure-detector: {threshold: 10.5}
  seed-nodes: ["127.0.0.1:7946"]
plugins:
  Witness.one:
    path: plugins/witness
    settings: {url: "https://witness", retries: 3, ratio: 0.5, big: 18446744073709551615, tags: [a, 1, [true]], list: [{a: 1}, {a: 2}]}
`,
		"c.toml": `
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
settings = {url = "https://witness", retries = 3, ratio = 0.5, tags = ["a", 1, [true]]}
[[plugins."Witness.one".settings.list]]
a = 1
[[plugins."Witness.one".settings.list]]
a = 2
`,
		"c.json": "\ufeff" + `{
  "node": {"name": "bank", "address": "127.0.0.1:7946", "roles": ["backend", "eu"],
           "weight": 255, "offset": -32768, "limit": 7, "allow-insecure": true},
  "membership": {"gossip-interval": "250ms", "failure-detector": {"threshold": 10.5}, "seed-nodes": ["127.0.0.1:7946"]},
  "plugins": {"Witness.one": {"path": "plugins/witness", "settings": {
    "url": "https://witness", "retries": 3, "ratio": 0.5, "big": 18446744073709551615, "tags": ["a", 1, [true]], "list": [{"a": 1}, {"a": 2}]}}}
}`,
	}
}

func TestAllFormatsGiveTheSameValues(t *testing.T) {
	load := func(name string) document {
		text := one()[name]
		if name == "c.toml" { // A table in braces is closed, and TOML has no whole number above 63 bits.
			text = strings.Replace(text, "settings = {url", "[plugins.\"Witness.one\".settings]\nurl", 1)
			text = strings.Replace(text, "witness\", retries = 3, ratio = 0.5, tags = [\"a\", 1, [true]]}", "witness\"\nretries = 3\nratio = 0.5\ntags = [\"a\", 1, [true]]", 1)
		}
		file, err := config.Loader{}.Load(write(t, name, strings.ReplaceAll(text, "\n", "\r\n")))
		require.NoError(t, err, name)
		got := defaults()
		require.NoError(t, file.Decode("", &got), name)
		return got
	}
	want := load("c.yaml")
	require.Equal(t, uint64(18446744073709551615), want.Plugins["Witness.one"].Settings.(map[string]any)["big"])
	require.Equal(t, 250*time.Millisecond, want.Membership.Interval)
	require.Equal(t, want, load("c.json"))
	delete(want.Plugins["Witness.one"].Settings.(map[string]any), "big")
	require.Equal(t, want, load("c.toml"))
}

// Places are as exact in each format as in YAML. covers B54.
func TestEveryFormatSaysWhereAFaultIs(t *testing.T) {
	for name, text := range map[string]string{
		"c.toml": `# first line
[node]
addrss = "127.0.0.1:7946"
roles = "backend"
weight = 256
name = 1.10
[membership]
gosip-interval = "1s"
stable-after = 5
seed-nodes = [
  "127.0.0.1:7946",
  "nowhere",
]
failure-detector = {threshold = -1}
[plugins.witness]
settings = {}
`,
		"c.json": `{
"node": {
  "addrss": "127.0.0.1:7946",
  "roles": "backend",
  "weight": 256,
  "name": 1.10},
"membership": {
  "gosip-interval": "1s",
  "stable-after": 5,
  "seed-nodes": [
    "127.0.0.1:7946",
    "nowhere"
  ],
  "failure-detector": {"threshold": -1}},
"plugins": {"witness":
    {"settings": {}}}
}
`,
	} {
		t.Run(name, func(t *testing.T) {
			file, err := config.Loader{}.Load(write(t, name, text))
			require.NoError(t, err)
			got := defaults()
			require.Equal(t, []string{
				name + `:3: node.addrss: unknown key; did you mean "address"?`,
				name + `:4: node.roles: must be a list, not the text "backend", write [a, b]`,
				name + `:5: node.weight: 256 is out of range, from 0 to 255`,
				name + `:6: node.name: must be text, not the number 1.1, put it in quotes`,
				name + `:8: membership.gosip-interval: unknown key; did you mean "gossip-interval"?`,
				name + `:9: membership.stable-after: the number 5 is not a duration: write a number and a unit of ns, us, ms, s, m or h, such as "500ms" or "1h30m"`,
				name + `:12: membership.seed-nodes[1]: bad value "nowhere": not an ip:port`,
				name + `:14: membership.failure-detector.threshold: must be above 0`,
				name + `:15: plugins.witness.path: is needed`,
			}, faults(t, file.Decode("", &got)))
		})
	}
}

// covers B55.
func TestEveryUnusableTOMLOrJSONIsOneClearError(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"c.toml", "", "c.toml: is empty"},
		{"c.toml", "# nothing\n", "c.toml: is empty"},
		{"c.toml", "[node]\nname =\n", "c.toml:2: not valid TOML: incomplete number"},
		{"c.toml", "[node\n", "c.toml:1: not valid TOML: expected character ]"},
		{"c.toml", "\n\n[node]\nname = \"a\n", "c.toml:4: not valid TOML: "},
		{"c.toml", "[node]\nname = 'a'\nroles = []\nname = 'b'\n", "c.toml:4: node.name: the key stands twice, first in line 2"},
		{"c.toml", "[node]\nname = 'a'\n[membership]\n[node]\n", "c.toml:4: node: the key stands twice, first in line 1"},
		{"c.toml", "x = {a = 1,\n a = 2}\n", "c.toml:1: not valid TOML: "},
		{"c.toml", "x = {a = 1, a = 2}\n", "c.toml:1: x.a: the key stands twice, first in line 1"},
		{"c.toml", "a = 1\nb = 2\n[a]\nc = 1\n[d]\n", "c.toml:3: a: the key stands twice, first in line 1"},
		{"c.toml", "a = 1\nb = 2\na.c = 1\nd = 3\n", "c.toml:3: not valid TOML: expected a to be a table, not a value"},
		{"c.toml", "[a.b]\nx = 1\n[[a]]\ny = 1\n[d]\n", "c.toml:3: not valid TOML: "},
		{"c.toml", "a = 9223372036854775808\n", "c.toml:1: not valid TOML: "},
		{"c.toml", "b = 1\na = 2001-01-01\n", "c.toml:2: a: must not be a date or a time: if it is text, put it in quotes"},
		{"c.toml", "a = [1, 07:32:00]\n", "c.toml:1: a[1]: must not be a date or a time: if it is text, put it in quotes"},
		{"c.toml", "\"a\\u001f\" = 1\n", "c.toml:1: the key \"a\\x1f\" is empty or holds a control character"},
		{"c.toml", "a.\"\" = 1\n", "c.toml:1: a: the key \"\" is empty or holds a control character"},
		{"c.toml", "\n[\"\"]\nx = 1\n", "c.toml:2: the key \"\" is empty or holds a control character"},
		{"c.toml", "a = " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "c.toml:1: not valid TOML: a value is nested deeper than 32 levels"},
		{"c.toml", "a = " + strings.Repeat("{a=", 1<<18), "c.toml:1: not valid TOML: a value is nested deeper than 32 levels"},
		{"c.toml", strings.Repeat("a.", 1<<18) + "a = 1\n", "c.toml:1: a: is nested deeper than 32 levels"},
		{"c.toml", "[" + strings.Repeat("a.", 40) + "a]\nb = 1\n", "c.toml:1: a: is nested deeper than 32 levels"},
		{"c.toml", "a = \"\xff\"\n", "c.toml: is not UTF-8 text"},
		{"c.toml", "a = '" + strings.Repeat("x", 1<<20) + "'\n", "c.toml: is larger than 1048576 bytes"},
		{"c.json", "", "c.json: is empty"},
		{"c.json", " null\n", "c.json: is empty"},
		{"c.json", "[]", `c.json:1: the top of the file must be an object of sections, such as {"node": {}}`},
		{"c.json", "{\n\"node\": {\n\"name\": a}}", "c.json:3: not valid JSON: invalid character 'a' looking for beginning of value"},
		{"c.json", "{\n\"node\": {},\n}", "c.json:3: not valid JSON: invalid character '}' looking for beginning of object key string"},
		{"c.json", "{\n\"node\": {}", "c.json:2: not valid JSON: unexpected end of JSON input"},
		{"c.json", "{}\n{}", "c.json:2: not valid JSON: invalid character '{' after top-level value"},
		{"c.json", "{// no\n}", "c.json:1: not valid JSON: invalid character '/' looking for beginning of object key string"},
		{"c.json", "{\"node\": {\"name\": \"a\",\n \"x\": [{}],\n\"name\": \"b\"}}", "c.json:3: node.name: the key stands twice, first in line 1"},
		{"c.json", "{\"a\\u001f\": 1}", "c.json:1: the key \"a\\x1f\" is empty or holds a control character"},
		{"c.json", "{\"a\":\n {\"\": {\"b\": []}}}", "c.json:2: a: the key \"\" is empty or holds a control character"},
		{"c.json", "{\"a\": 1e999}", "c.json:1: a: the number 1e999 is out of range"},
		{"c.json", "{\"a\": " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "c.json:1: a: is nested deeper than 32 levels"},
		{"c.json", "{\"a\": " + strings.Repeat("[", 1<<19), "c.json:1: not valid JSON: invalid character '[' exceeded max depth"},
		{"c.json", "{\"a\": \"\xff\"}", "c.json: is not UTF-8 text"},
		{"c.hcl", "a {}", "c.hcl: .hcl files are not supported, write YAML, TOML or JSON into a .yaml, .toml or .json file"},
	} {
		_, err := config.Loader{}.Load(write(t, c.name, c.text))
		require.Error(t, err, "%.60q", c.text)
		require.True(t, strings.HasPrefix(faults(t, err)[0], c.want), "%.60q: %s", c.text, err)
	}
}

func TestFormatsCanBeMixed(t *testing.T) {
	file, err := config.Loader{Environ: []string{"QUORATE_NODE__LIMIT=3"}}.Load(
		write(t, "base.toml", "[node]\nname = 'a'\nweight = 1\nroles = ['x', 'y']\n"),
		write(t, "site.JSON", `{"node": {"name": "b", "roles": ["z"]}}`),
		write(t, "local", "node: {weight: 9}\n"))
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "b", got.Node.Name)
	require.Equal(t, []string{"z"}, got.Node.Roles)
	require.Equal(t, uint8(9), got.Node.Weight)
	require.Equal(t, 3, *got.Node.Limit)
}

// A file at the limit of its size that is made to be slow still ends soon: the
// time grows with the size, not with its square.
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
		"most.yaml":   "a: [" + strings.Repeat("[],", 10_000) + "]\n",
		"heads.toml":  numbered(func(i int) string { return "[k" + strconv.Itoa(i) + "]\n" }) + "[k1]\n",
		"keys.json":   "{" + numbered(func(i int) string { return `"k` + strconv.Itoa(i) + "\":1,\n" }) + `"z":1}`,
		"list.json":   `{"a": [` + fill("1,\n") + "1]}",
		"keys.yaml":   numbered(func(i int) string { return "k" + strconv.Itoa(i) + ": 1\n" }),
	} {
		began := time.Now()
		_, err := config.Loader{}.Load(write(t, name, text))
		require.ErrorContains(t, err, "more than 10000 keys and list items are in the file", name)
		require.Less(t, time.Since(began), time.Minute, name) // Unbounded, one of them took a hundred seconds on an idle machine.
	}
}

// The same tree, written in each format, is read as the same tree.
func TestFormatsAgreeOnAnyTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, 0)
		if len(tree) == 0 {
			return
		}
		read := func(name, text string) map[string]any {
			file, err := config.Parse(name, []byte(text))
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			got := map[string]any{}
			if err := file.Decode("", &got); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			return got
		}
		json := writeFlow(tree, ": ")
		require.Equal(t, tree, read("t.json", json))
		require.Equal(t, tree, read("t.yaml", json))
		var toml strings.Builder
		for _, key := range sortedKeys(tree) {
			toml.WriteString(quote(key) + " = " + writeFlow(tree[key], " = ") + "\n")
		}
		require.Equal(t, tree, read("t.toml", toml.String()))
	})
}
