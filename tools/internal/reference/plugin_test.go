// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/config/manual"
	"github.com/quorate/quorate/tools/internal/reference"
)

// The settings of a plugin are described as those of Quorate, below the key of the plugin.
func TestSettingsOfAPluginAreDescribedByTheirSchema(t *testing.T) {
	got, err := reference.Plugin("plugins.x.settings", "All.", []byte(`{
		"type": "object", "required": ["count"], "$defs": {"tree": {"type": "object", "properties": {"name": {"type": "string"}, "left": {"$ref": "#/$defs/tree"}}}},
		"properties": {
			"count": {"type": "integer", "minimum": -9223372036854775808, "maximum": 10, "exclusiveMinimum": 0, "x-unit": "things", "description": "How many."},
			"grace": {"type": "string", "pattern": "`+strings.ReplaceAll(field.DurationPattern, `\`, `\\`)+`", "x-range": "1s..", "default": "10s"},
			"hosts": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
			"mode": {"enum": ["fast", "safe"], "default": "safe"},
			"ports": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
			"any": {"default": ""}, "part": {"type": ["number", "string"]},
			"rules": {"type": "array", "items": {"type": "object", "properties": {"strict": {"type": "boolean", "default": false}}}},
			"tree": {"$ref": "#/$defs/tree", "description": "In itself."}, "words": {"type": "string", "examples": ["auto"]}
		}}`))
	require.NoError(t, err)
	const key = "plugins.x.settings"
	want := []manual.Setting{
		{Key: key, Type: "group", Meaning: "All."},
		{Key: key + ".any", Type: "any value", Default: `""`},
		{Key: key + ".count", Type: "whole number", Unit: "things", Range: ">0..10", Required: true, Meaning: "How many."},
		{Key: key + ".grace", Type: "duration", Range: "1s..", Default: "10s"},
		{Key: key + ".hosts", Type: "list of text", OneOf: []string{"a", "b"}, Default: "[a]"},
		{Key: key + ".mode", Type: "text", OneOf: []string{"fast", "safe"}, Default: "safe"},
		{Key: key + ".part", Type: "any value"},
		{Key: key + ".ports", Type: "map from names to whole numbers", Range: "1.."},
		{Key: key + ".rules", Type: "list of groups"},
		{Key: key + ".rules[].strict", Type: "true or false", Default: "false"},
		{Key: key + ".tree", Type: "group", Meaning: "In itself."},
		{Key: key + ".tree.left", Type: "group"},
		{Key: key + ".tree.name", Type: "text"},
		{Key: key + ".words", Type: "text", Known: []string{"auto"}},
	}
	for i := range want {
		want[i].Reload = true // Everything of a plugin may change.
	}
	require.Equal(t, want, got)
	_, err = reference.Plugin(key, "", []byte(`{"properties": {"a": true}}`))
	require.ErrorContains(t, err, "cannot be shown")
}
