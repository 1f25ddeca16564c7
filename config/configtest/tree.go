// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package configtest

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// maxDepth is how deep lists and maps are drawn.
const maxDepth = 3

// RandomTree draws a map with values of every type that all formats have: maps, lists,
// text, bool, int and float64. Keys and texts have characters that mean something in the
// notation of one format or the other.
func RandomTree(rnd *rand.Rand) map[string]any { return drawMap(rnd, 0) }

func drawMap(rnd *rand.Rand, depth int) map[string]any {
	tree := map[string]any{}
	for range 1 + rnd.IntN(3) {
		key := drawText(rnd, "abcxyzé", 1) + drawText(rnd, "abz019 .\"'\\#-", rnd.IntN(6))
		tree[key] = drawValue(rnd, depth)
	}
	return tree
}

func drawValue(rnd *rand.Rand, depth int) any {
	types := 6
	if depth >= maxDepth {
		types = 4
	}
	switch rnd.IntN(types) {
	case 0:
		return drawText(rnd, "abzé019 .\"'\\#:~-", rnd.IntN(9))
	case 1:
		return rnd.IntN(2) == 0
	case 2:
		return []int{0, 1, -1, rnd.IntN(1000), int(rnd.Uint64()), math.MinInt, math.MaxInt}[rnd.IntN(7)]
	case 3:
		return 0.225 + 1000*rnd.Float64()
	case 4:
		items := []any{}
		for range rnd.IntN(4) {
			items = append(items, drawValue(rnd, depth+1))
		}
		return items
	default:
		return drawMap(rnd, depth+1)
	}
}

// drawText draws a number of characters of an alphabet.
func drawText(rnd *rand.Rand, alphabet string, n int) string {
	letters := []rune(alphabet)
	var b strings.Builder
	for range n {
		b.WriteRune(letters[rnd.IntN(len(letters))])
	}
	return b.String()
}

// Flow writes a value of a tree in the notation with braces and brackets that JSON, YAML
// and TOML share, apart from what stands between key and value: ": ", or " = " for TOML.
// Keys are sorted.
func Flow(value any, colon string) string {
	switch v := value.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, Entry(key, v[key], colon))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = Flow(one, colon)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quote(v)
	case float64:
		text, _ := json.Marshal(v) // A finite number.
		if !strings.ContainsAny(string(text), ".e") {
			return string(text) + ".0"
		}
		return string(text)
	default:
		text, _ := json.Marshal(v) // A number or a truth value.
		return string(text)
	}
}

// Entry writes a key and its value as [Flow] does.
func Entry(key string, value any, colon string) string {
	return quote(key) + colon + Flow(value, colon)
}

// quote writes a text with the escapes that the formats share.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
