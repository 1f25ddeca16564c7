// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/config/manual"
	"github.com/quorate/quorate/tools/internal/reference"
)

// First the committed reference is compared with the sources, and faulty declarations are
// refused. Then the reference of a small group with maps and lists is read line by line.
// Last come the settings of a real node: values outside each range, defaults, named values
// and required keys are tried, in files that set one key (document) and with the schema, and
// the page has a row for each key.

// root is the directory of the repository.
const root = "../../.."

// The committed reference agrees with the sources, and every setting of a node states its
// meaning, unit and range.
func TestCommittedReferenceIsCurrent(t *testing.T) {
	files, err := reference.Generate(root, cluster.Default())
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s differs from the sources: run make reference, and commit", path)
	}
}

// bare lacks, in one setting or another, each thing that a declaration must state.
type bare struct {
	Silent string `koanf:"silent"`
	// Count has no unit and no range.
	Count int `koanf:"count"`
	// Pause has no range.
	Pause time.Duration `koanf:"pause"`
}

func TestIncompleteDeclarationsAreAllNamed(t *testing.T) {
	_, err := reference.Build(sources(t), reference.Prefix, bare{})
	require.EqualError(t, err, strings.Join([]string{
		"silent (reference_test.bare, field Silent): has no comment",
		"count (reference_test.bare, field Count): is a number and has no tag unit:\"…\"",
		"count (reference_test.bare, field Count): has no tag range:\"…\"",
		"pause (reference_test.bare, field Pause): has no tag range:\"…\"",
	}, "\n"))
	_, err = reference.Build(t.TempDir(), reference.Prefix, bare{})
	require.ErrorContains(t, err, "the sources of github.com/quorate/quorate/tools/internal/reference_test")
	_, err = reference.Build(root, reference.Prefix, manual.Setting{})
	require.NoError(t, err)
}

// sources returns a root under which the types of this file are declared: their comments
// become the meanings of the settings.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "tools/internal/reference_test")
	require.NoError(t, os.MkdirAll(at, 0o700))
	source, err := os.ReadFile("reference_test.go")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(at, "x.go"), source, 0o600))
	return dir
}

// entries has a map of groups, such as the plugins of a cluster, a list, and a map of
// values.
type entries struct {
	// Map holds what users name, see [entry] and Inner.
	Map map[string]entry `koanf:"the-map" reload:"yes"`
	// List holds groups without names.
	List []entry `koanf:"list"`
	// Shares says how much each gets.
	Shares map[string]time.Duration `koanf:"shares" range:">0s.."`
}

// entry describes one of them.
type entry struct {
	Inner string `koanf:"inner-path"` // Inner is where it is; TheMap is not.
	// Any is up to the plugin.
	Any map[string]any `koanf:"any"`
}

func (e *entry) SetDefaults() { e.Inner = "/here" }

func TestMapsAndListsOfGroupsAreDescribed(t *testing.T) {
	settings, err := reference.Build(sources(t), reference.Prefix, entries{})
	require.NoError(t, err)
	require.Equal(t, []manual.Setting{
		{Key: "the-map", Type: "map from names to groups", Default: "{}", Reload: true, Meaning: "Holds what users name, see entry and Inner."},
		{Key: "the-map.*", Type: "group", Reload: true, Meaning: "Describes one of them."},
		{Key: "the-map.*.inner-path", Type: "text", Default: "/here", Reload: true, Meaning: "Where it is; TheMap is not."},
		{Key: "the-map.*.any", Type: "map from names to any values", Default: "{}", Reload: true, Meaning: "Up to the plugin."},
		{Key: "list", Variable: "QUORATE_LIST", Type: "list of groups", Default: "[]", Meaning: "Holds groups without names."},
		{Key: "list[]", Type: "group", Meaning: "Describes one of them."},
		{Key: "list[].inner-path", Type: "text", Default: "/here", Meaning: "Where it is; TheMap is not."},
		{Key: "list[].any", Type: "map from names to any values", Default: "{}", Meaning: "Up to the plugin."},
		{Key: "shares", Type: "map from names to durations", Default: "{}", Unit: "duration", Range: ">0s..", Meaning: "Says how much each gets."},
	}, settings)
	require.Len(t, manual.Under(settings, "list"), 4)
	require.Empty(t, manual.Under(settings, "lis"))
	generated, err := reference.Schema(settings, entries{})
	require.NoError(t, err)
	schema := compiled(t, generated)
	require.NoError(t, valid(t, schema, "the-map: {x: {inner-path: a, any: {b: [1]}}}\nlist: [{inner-path: b}]\nshares: {a: 1s}\n"))
	require.Error(t, valid(t, schema, "the-map: {x: {outer: a}}\n"))
	require.Error(t, valid(t, schema, "list: [{inner-path: 1}]\n"))
	require.Error(t, valid(t, schema, "shares: {a: 1}\n"))
}

// document returns a file that sets one key, besides those that every node must set.
func document(path []string, value string) string {
	if path[len(path)-1] == "*" {
		path = append(slices.Clip(path[:len(path)-1]), "x")
	}
	inner := value
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == "[]" {
			inner = "[" + inner + "]"
			continue
		}
		if inner = path[i] + ": " + inner; i > 1 {
			inner = "{" + inner + "}"
		}
	}
	text := ""
	for section, required := range map[string]string{"cluster": "name: c", "node": "address: \"127.0.0.1:1\""} {
		if section == path[0] {
			inner = required + ", " + inner
		} else {
			text += section + ": {" + required + "}\n"
		}
	}
	return path[0] + ": {" + inner + "}\n" + text
}

// concrete puts the name x wherever a path has a * for a name that users choose.
func concrete(path []string) []string {
	path = slices.Clone(path)
	for i := range path {
		if path[i] == "*" {
			path[i] = "x"
		}
	}
	return path
}

// load reads a document as a node does.
func load(t *testing.T, text string) error {
	t.Helper()
	file, err := config.Parse("c.yaml", []byte(text))
	require.NoError(t, err, text)
	c := cluster.Default()
	return file.Decode("", &c)
}

// beyond returns values just outside a range.
func beyond(t *testing.T, s config.Setting) []string {
	t.Helper()
	r, err := field.ParseRange(s.Range)
	require.NoError(t, err)
	var values []string
	for i, b := range []field.Bound{r.Min, r.Max} {
		if b.Text == "" {
			continue
		}
		step := float64(2*i - 1)
		if s.Type == config.TypeNumber {
			step /= 1e6
		}
		if b.Open {
			step = 0
		}
		x := b.Value + step
		if b.Value > 1e12 { // A long duration: one nanosecond is too little for a floating-point number.
			x = b.Value + 1e6*step
		}
		text := strconv.FormatFloat(x, 'f', -1, 64)
		if _, err := time.ParseDuration(b.Text); err == nil && s.Type == config.TypeDuration {
			text = strconv.FormatInt(int64(x), 10) + "ns"
		}
		values = append(values, text)
	}
	return values
}

// A value just outside a range of the reference is refused by the module that has the
// setting, so that the page cannot drift from the code. The schema refuses it too, but for
// durations: to the schema they are text.
func TestRangesAreThoseThatAreChecked(t *testing.T) {
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	schema := compiled(t, committedSchema(t))
	checked := 0
	for _, s := range settings {
		for _, value := range beyond(t, s) {
			path := concrete(s.Path)
			if s.Type == config.TypeMap {
				path = append(slices.Clip(path), "x")
			}
			text := document(path, value)
			err := load(t, text)
			var faults config.Errors
			require.ErrorAs(t, err, &faults, text)
			found := false
			for _, f := range faults {
				found = found || f.Key == strings.ReplaceAll(strings.Join(path, "."), ".[]", "[0]")
			}
			require.True(t, found, "%s does not refuse %s: %v", s.Key(), value, err)
			if s.Type != config.TypeDuration {
				require.Error(t, valid(t, schema, text), "the schema takes %s for %s", value, s.Key())
			}
			checked++
		}
	}
	require.Greater(t, checked, 50)
}

// A node and the schema take each default and each allowed value, and refuse others where
// the reference lists what is allowed. The schema takes each known value, which need not be
// the only ones.
func TestDefaultsAndNamedValuesAreTaken(t *testing.T) {
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	schema := compiled(t, committedSchema(t))
	for _, s := range settings {
		if s.Type == config.TypeGroup || s.Type == config.TypeMap || s.Required || strings.ContainsAny(s.Key(), "*[") {
			continue
		}
		for _, value := range append([]string{s.Default}, s.OneOf...) {
			text := document(s.Path, value)
			if s.Key() == "telemetry.metrics" { // Metrics are fetched from the address of management.
				text += "management: {address: \"127.0.0.1:0\"}\n"
			}
			require.NoError(t, load(t, text), text)
			require.NoError(t, valid(t, schema, text), text)
		}
		for _, value := range s.Known {
			require.NoError(t, valid(t, schema, document(s.Path, value)))
		}
		if len(s.OneOf) > 0 {
			require.Error(t, load(t, document(s.Path, "nonsense")))
			require.Error(t, valid(t, schema, document(s.Path, "nonsense")))
		}
	}
}

// A node whose file sets nothing is refused, with exactly the keys that must be set.
func TestRequiredKeysAreThoseWithoutADefault(t *testing.T) {
	settings, err := config.Settings(cluster.Default())
	require.NoError(t, err)
	var want []string
	for _, s := range settings {
		if s.Required && !strings.Contains(s.Key(), "*") {
			want = append(want, s.Key())
		}
	}
	var faults config.Errors
	require.ErrorAs(t, load(t, "cluster: {}\n"), &faults)
	var got []string
	for _, f := range faults {
		got = append(got, f.Key)
	}
	require.ElementsMatch(t, want, got)
}

func TestMarkdownHasARowForEachKey(t *testing.T) {
	settings, err := reference.Read()
	require.NoError(t, err)
	page := manual.Markdown(settings)
	for _, s := range settings {
		require.Contains(t, page, fmt.Sprintf("`%s`", s.Key))
	}
}
