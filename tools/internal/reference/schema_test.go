// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/tools/internal/reference"
)

// committedSchema returns the schema that editors are pointed at.
func committedSchema(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs/cluster.schema.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(data, &schema))
	return schema
}

// compiled compiles a schema. The compiler validates the schema itself, against that of its draft.
func compiled(t *testing.T, schema map[string]any) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("schema.json", plainJSON(t, schema)))
	c, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return c
}

// valid validates a YAML document against a schema.
func valid(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var tree any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree), text)
	return schema.Validate(plainJSON(t, tree))
}

// plainJSON returns a value in the types that the validator takes.
func plainJSON(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return plain
}

func TestSchemaKnowsGoodFilesFromBadOnes(t *testing.T) {
	committed := committedSchema(t)
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", committed["$schema"])
	schema := compiled(t, committed)
	for _, good := range []string{
		"cluster: {name: bank}\nnode: {address: '127.0.0.1:7946', roles: [backend]}\nmembership:\n  seed-nodes: ['127.0.0.1:7946']\n",
		"include: [base.yaml]\nsharding:\n", // A part of a configuration, with an empty section.
		"downing: {stable-after: auto, strategy: witness}\n",
		"membership: {fence: 1h30m, push-delay: 0, min-nr-of-members-of-role: {backend: 3}}\n",
		"sharding: {allocation: {least-shard: {rebalance-relative-limit: 0.5}}, on-stuck: abandon}\n",
	} {
		require.NoError(t, valid(t, schema, good), good)
	}
	for _, bad := range []string{
		"[]",
		"nodes: {}\n",
		"node: {addrss: 'x'}\n",
		"node: {roles: backend}\n",
		"node: {roles: [1]}\n",
		"node: {address: 5}\n",
		"include: base.yaml\n",
		"membership: {fence: 5}\n",
		"membership: {fence: 1d}\n",
		"membership: {fence: ''}\n",
		"membership: {push-fanout: 17}\n",
		"membership: {push-fanout: '4'}\n",
		"membership: {min-nr-of-members-of-role: {backend: 0}}\n",
		"membership: {failure-detector: {threshold: 1000}}\n",
		"transport: {allow-insecure: 'yes'}\n",
		"sharding: {on-stuck: wait}\n",
		"sharding: {allocation: {least-shard: {rebalance-relative-limit: 0}}}\n",
	} {
		require.Error(t, valid(t, schema, bad), bad)
	}
}

// Every YAML file of the repository that configures a node, and so names a cluster, is
// valid.
func TestSchemaTakesTheFilesOfTheRepository(t *testing.T) {
	schema := compiled(t, committedSchema(t))
	seen := 0
	for _, pattern := range []string{"*/*.yaml", "*/*/*.yaml", "*/*/*/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var top struct {
				Cluster map[string]any `yaml:"cluster"`
			}
			if yaml.Unmarshal(data, &top) != nil || top.Cluster["name"] == nil {
				continue // The file is not the configuration of a node.
			}
			seen++
			require.NoError(t, valid(t, schema, string(data)), path)
		}
	}
	require.Positive(t, seen, "no file configures a node: the patterns miss the examples")
}

// What a plugin says of its settings holds for the plugin of that name alone, with its own definitions.
func TestSchemaKnowsTheSettingsOfPlugins(t *testing.T) {
	committed := committedSchema(t)
	require.NoError(t, reference.WithPlugins(committed, map[string][]byte{
		"witness": []byte(`{"properties": {"grace": {"$ref": "#/$defs/time"}}, "additionalProperties": false, "$defs": {"time": {"type": "integer", "maximum": 9}}}`),
		"zones":   []byte(`true`),
	}))
	schema := compiled(t, committed)
	plugin := func(name, settings string) string {
		return "plugins: {" + name + ": {policy: downing, path: x, settings: " + settings + "}}"
	}
	for _, good := range []string{plugin("witness", "{grace: 9}"), plugin("zones", "{grace: ten}"), plugin("unknown", "{grace: ten}")} {
		require.NoError(t, valid(t, schema, good), good)
	}
	for _, bad := range []string{plugin("witness", "{grace: 10}"), plugin("witness", "{grac: 9}"), "plugins: {witness: {polic: downing}}"} {
		require.Error(t, valid(t, schema, bad), bad)
	}
	require.ErrorContains(t, reference.WithPlugins(committedSchema(t), map[string][]byte{"witness": []byte(`{`)}), "plugins.witness.settings")
}
