// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/configtest"
	"github.com/quorate/quorate/internal/patience"
)

// Files in YAML, JSON and a format of the program: they give the same values, say where a
// fault is, are refused, mixed and bounded. Then trees at random are read alike in each
// format; last come formats that the program gives, and one that it does not link.

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
		file, err := config.Loader{}.Load(write(t, name, strings.ReplaceAll(one()[name], "\n", "\r\n")))
		require.NoError(t, err, name)
		got := defaults()
		require.NoError(t, file.Decode("", &got), name)
		return got
	}
	want := load("c.yaml")
	require.Equal(t, uint64(18446744073709551615), want.Plugins["Witness.one"].Settings.(map[string]any)["big"])
	require.Equal(t, 250*time.Millisecond, want.Membership.Interval)
	require.Equal(t, want, load("c.json"))
}

// A fault has its line in each format, as in YAML. covers B54.
func TestEveryFormatSaysWhereAFaultIs(t *testing.T) {
	for name, text := range map[string]string{
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
func TestEveryUnusableJSONIsOneClearError(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
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
		write(t, "base.yml", "node: {name: a, weight: 1, roles: [x, y]}\n"),
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
		"most.yaml": "a: [" + strings.Repeat("[],", 10_000) + "]\n",
		"keys.json": "{" + numbered(func(i int) string { return `"k` + strconv.Itoa(i) + "\":1,\n" }) + `"z":1}`,
		"list.json": `{"a": [` + fill("1,\n") + "1]}",
		"keys.yaml": numbered(func(i int) string { return "k" + strconv.Itoa(i) + ": 1\n" }),
	} {
		watch := patience.Start(t)
		_, err := config.Loader{}.Load(write(t, name, text))
		require.ErrorContains(t, err, "more than 10000 keys and list items are in the file", name)
		require.Less(t, watch.Elapsed(), time.Minute, name) // Without the bound one of these files took a hundred seconds.
	}
}

// The same tree, written in each format, is read as the same tree.
func TestFormatsAgreeOnAnyTree(t *testing.T) {
	for seed := range uint64(500) {
		tree := configtest.RandomTree(rand.New(rand.NewPCG(seed, 0)))
		read := func(name, text string) map[string]any {
			file, err := config.Parse(name, []byte(text))
			require.NoError(t, err, "seed %d: %s\n%s", seed, name, text)
			got := map[string]any{}
			require.NoError(t, file.Decode("", &got), "seed %d: %s\n%s", seed, name, text)
			return got
		}
		json := configtest.Flow(tree, ": ")
		require.Equal(t, tree, read("t.json", json), "seed %d", seed)
		require.Equal(t, tree, read("t.yaml", json), "seed %d", seed)
	}
}

// pairs is a format of lines "a.b=c", for files with the end .pairs.
type pairs struct{}

// Extension returns the end of the names of files.
func (pairs) Extension() string { return ".pairs" }

// Parse reads the lines, and tells places where each key stands.
func (pairs) Parse(text []byte, places *config.Places) map[string]any {
	tree, stood := map[string]any{}, map[string]int{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		at, level := []string(nil), tree
		parts := strings.Split(key, ".")
		for n, part := range parts {
			if at = places.Key(at, part, i+1); at == nil || places.Full() {
				return tree
			}
			if n < len(parts)-1 {
				below, _ := level[part].(map[string]any)
				if below == nil {
					below = map[string]any{}
				}
				level[part], level = below, below
			}
		}
		if first, twice := stood[key]; twice {
			places.Twice(i+1, at, first)
		}
		stood[key] = i + 1
		items := []any{}
		for n, one := range strings.Split(value, ",") {
			places.Note(places.Item(at, n), i+1)
			items = append(items, one)
		}
		if level[parts[len(parts)-1]] = any(value); len(items) > 1 {
			level[parts[len(parts)-1]] = items
		}
	}
	return tree
}

// A format that the program gives is read like those that are built in: files in it are
// merged with others, included, and loaded again, with the same rules and places.
func TestAFormatOfTheProgramIsReadLikeTheOthers(t *testing.T) {
	loader := config.Loader{Formats: []config.Format{pairs{}}}
	dir := tree(t, map[string]string{"c.yaml": "include: [a.pairs]\nnode: {weight: 9}\n", "a.pairs": "node.name=a\nnode.weight=1\nnode.roles=x,y\n"})
	file, err := loader.Load(filepath.Join(dir, "c.yaml"))
	require.NoError(t, err)
	file, err = file.Reload()
	require.NoError(t, err)
	got := defaults()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, "a", got.Node.Name)
	require.Equal(t, uint8(9), got.Node.Weight)
	require.Equal(t, []string{"x", "y"}, got.Node.Roles)

	parse := func(text string) error {
		file, err := config.Parse("c.PAIRS", []byte(text), pairs{})
		if err == nil {
			err = file.Decode("", &got)
		}
		return err
	}
	require.Equal(t, []string{`c.PAIRS:2: node.addrss: unknown key; did you mean "address"?`}, faults(t, parse("node.name=a\nnode.addrss=b\n")))
	require.Equal(t, []string{"c.PAIRS:3: node.name: the key stands twice, first in line 1"}, faults(t, parse("node.name=a\nnode.roles=x,y\nnode.name=b\n")))
	require.Equal(t, []string{`c.PAIRS:2: node: the key "" is empty or holds a control character`}, faults(t, parse("node.name=a\nnode.=b\n")))
	require.Equal(t, []string{"c.PAIRS:1: a: is nested deeper than 32 levels"}, faults(t, parse(strings.Repeat("a.", 40)+"a=b\n")))
	require.ErrorContains(t, parse(strings.Repeat("a=1,2,3\nb=1,2,3\n", 1)+"c="+strings.Repeat(",", 10_000)), "more than 10000 keys and list items are in the file")
}

// A file in a format that is known and not linked says what to import, wherever it is
// named.
func TestAFormatThatIsNotLinkedNamesTheImport(t *testing.T) {
	const cure = "a.toml: TOML is not part of this program: import github.com/quorate/quorate/config/toml, and give toml.Format() " +
		"to the loader, which for a node is the option cluster.WithFormat(toml.Format())"
	dir := tree(t, map[string]string{"c.yaml": "node: {}\ninclude: [a.toml]\n", "a.toml": "x = 1\n"})
	_, err := config.Loader{}.Load(filepath.Join(dir, "a.toml"))
	require.ErrorIs(t, err, config.ErrNotLinked)
	require.ErrorIs(t, err, config.ErrRead)
	require.Equal(t, []string{cure}, faults(t, err))
	_, err = config.Parse("a.toml", []byte("x = 1"))
	require.Equal(t, []string{cure}, faults(t, err))
	_, err = config.Loader{}.Load(filepath.Join(dir, "c.yaml"))
	require.Len(t, faults(t, err), 1)
	require.ErrorContains(t, err, "c.yaml:2: include[0]: ")
	require.ErrorContains(t, err, cure)
}
