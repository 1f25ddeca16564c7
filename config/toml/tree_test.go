// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package toml_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// drawTree draws a map with values of every kind that both formats have.
func drawTree(t *rapid.T, depth int) map[string]any {
	tree := map[string]any{}
	for range rapid.IntRange(1, 3).Draw(t, "keys") {
		tree[rapid.StringMatching(`[a-zé][a-z0-9 ."'\\#-]{0,5}`).Draw(t, "key")] = drawValue(t, depth)
	}
	return tree
}

func drawValue(t *rapid.T, depth int) any {
	most := 5
	if depth > 2 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return rapid.StringMatching(`[a-zé0-9 ."'\\#:~-]{0,8}`).Draw(t, "text")
	case 1:
		return rapid.Bool().Draw(t, "truth")
	case 2:
		return rapid.Int().Draw(t, "number")
	case 3:
		return rapid.Float64Range(0.1, 1000).Draw(t, "part") + 0.125
	case 4:
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawValue(t, depth+1))
		}
		return items
	default:
		return drawTree(t, depth+1)
	}
}

// writeFlow writes a value in the notation with braces and brackets that the
// formats share, apart from what stands between key and value.
func writeFlow(value any, colon string) string {
	switch v := value.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range sortedKeys(v) {
			parts = append(parts, quote(key)+colon+writeFlow(v[key], colon))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = writeFlow(one, colon)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quote(v)
	case float64:
		text, _ := json.Marshal(v) //nolint:errchkjson // A finite number.
		if !strings.ContainsAny(string(text), ".e") {
			return string(text) + ".0"
		}
		return string(text)
	default:
		text, _ := json.Marshal(v) //nolint:errchkjson // A number or a truth value.
		return string(text)
	}
}

// quote writes a text with the escapes that the formats share.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func sortedKeys(tree map[string]any) []string { return slices.Sorted(maps.Keys(tree)) }
