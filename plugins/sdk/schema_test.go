// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// The schema that is made of a type of settings, against the decoder of the same type: what one takes, the other takes.

// tree is in itself, in three ways.
type tree struct {
	Name  string
	Left  *tree
	Among []tree
	By    map[string]tree
}

// Leaf is embedded as a pointer.
type Leaf struct {
	Weight int8 `range:"-5.."`
}

// everything has every kind of setting.
type everything struct {
	common
	*Leaf
	Address netip.Addr
	Mode    string            `oneof:"fast|safe" meaning:"How it goes about it."`
	Modes   []string          `oneof:"fast|safe"`
	Pause   time.Duration     `range:"10ms..<1h"`
	Free    time.Duration     `json:"any-time"`
	Small   uint8             `range:"..1000" unit:"things"`
	Large   int64             `range:">0.."`
	Huge    uint64            //
	Part    float64           `range:"0..1"`
	Single  float32           //
	Strict  *bool             //
	Ports   map[string]uint16 `range:"1024.."`
	Tree    *tree             //
	Must    retried           //
	Either  any               //
	Word    string            `known:"auto|none"`
}

type retried struct {
	Count int `required:"yes"`
}

func (e *everything) SetDefaults() {
	e.Pause, e.Mode, e.Modes, e.Part = 2*time.Minute, "safe", []string{"fast"}, 0.5
}

// The schema of a type says the keys, the types, the ranges, the defaults and what each is for.
func TestASchemaSaysWhatTheDecoderTakes(t *testing.T) {
	text, err := schemaOf[everything]()
	require.NoError(t, err)
	var schema struct {
		AdditionalProperties bool                       `json:"additionalProperties"`
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	require.False(t, schema.AdditionalProperties)
	require.Empty(t, schema.Required)
	for key, want := range map[string]string{
		"mode":     `{"type": "string", "enum": ["fast", "safe"], "default": "safe", "description": "How it goes about it."}`,
		"modes":    `{"type": "array", "items": {"type": "string", "enum": ["fast", "safe"]}, "default": ["fast"]}`,
		"pause":    `{"type": "string", "pattern": "^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$", "x-range": "10ms..<1h", "default": "2m"}`,
		"small":    `{"type": "integer", "minimum": 0, "maximum": 255, "x-unit": "things", "default": 0}`,
		"part":     `{"type": "number", "minimum": 0, "maximum": 1, "default": 0.5}`,
		"strict":   `{"type": "boolean"}`,
		"ports":    `{"type": "object", "additionalProperties": {"type": "integer", "minimum": 1024, "maximum": 65535}}`,
		"address":  `{"type": "string"}`,
		"must":     `{"type": "object", "additionalProperties": false, "required": ["count"], "properties": {"count": {"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807}}}`,
		"word":     `{"type": "string", "default": "", "examples": ["auto", "none"]}`,
		"leaf":     `{"type": "object", "additionalProperties": false, "properties": {"weight": {"type": "integer", "minimum": -5, "maximum": 127, "default": 0}}}`,
		"tree":     `{"$ref": "#/$defs/group-1"}`,
		"zone":     `{"type": "string", "default": ""}`,
		"any-time": `{"type": "string", "pattern": "^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$", "default": "0s"}`,
	} {
		require.JSONEq(t, want, string(schema.Properties[key]), key)
	}
	require.Len(t, schema.Properties, 18)
	none, err := schemaOf[struct{}]()
	require.NoError(t, err)
	require.JSONEq(t, `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}, "additionalProperties": false}`, string(none))
}

// written is settings with a schema of their author.
type written struct{ Any int }

func (written) JSONSchema() []byte { return []byte(`{"maxProperties": 0}`) }

func TestAnAuthorMayWriteTheSchema(t *testing.T) {
	text, err := schemaOf[written]()
	require.NoError(t, err)
	require.Equal(t, `{"maxProperties": 0}`, string(text))
}

// For settings at random, what the schema takes and what the decoder takes are the same, and so are the keys of which
// they complain. covers F56.
func TestSchemaAndDecoderAgree(t *testing.T) {
	text, err := schemaOf[everything]()
	require.NoError(t, err)
	schema, err := host.ReadSchema(text)
	require.NoError(t, err)
	var taken, refused int
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 50 {
			given := randomSettings(rnd)
			_, decoded := decodeSettings[everything]([]byte(given))
			reader := json.NewDecoder(strings.NewReader(given))
			reader.UseNumber()
			var settings map[string]any
			if err := reader.Decode(&settings); err != nil {
				t.Fatalf("%s: %v", given, err)
			}
			checked := schema.Check(settings)
			require.Equal(t, keysOf(t, decoded), keysOf(t, checked), "%s\nthe decoder says %v\nthe schema says %v", given, decoded, checked)
			if decoded == nil {
				taken++
			} else {
				refused++
			}
		}
	})
	require.Greater(t, taken, 100)
	require.Greater(t, refused, 100)
}

// keysOf returns the keys of faults, each once.
func keysOf(t *rapid.T, err error) map[string]bool {
	keys := map[string]bool{}
	if err == nil {
		return keys
	}
	faults, ok := errors.AsType[plugins.SettingErrors](err)
	if !ok {
		t.Fatalf("%v is no fault of settings", err)
	}
	for _, f := range faults {
		keys[f.Key] = true
	}
	return keys
}

// randomSettings draws some settings, most of which fit.
func randomSettings(rnd *rand.Rand) string {
	values := map[string][]string{
		"zone": {`"z"`}, "leaf": {`{}`, `{"weight": -5}`, `{"weight": -6}`, `{"weight": 128}`, `[]`}, "address": {`"10.0.0.1"`, `7`},
		"mode": {`"fast"`, `"slow"`, `3`}, "modes": {`["fast", "safe"]`, `["slow"]`, `"fast"`, `[["fast"]]`, `[]`},
		"pause": {`"10ms"`, `"9ms"`, `"1h"`, `"59m59s"`, `"-1s"`, `3`}, "any-time": {`"0"`, `"1.5h"`, `"3"`, `"9999999999h"`, `"-0"`},
		"small": {`255`, `256`, `2e2`, `1.5`, `2.0`, `-1`, `"3"`}, "large": {`1`, `0`, `9223372036854775807`, `9223372036854775808`},
		"huge": {`18446744073709551615`, `18446744073709551616`, `-0`}, "part": {`0`, `1`, `1.1`, `1e400`}, "single": {`1e38`, `1e39`},
		"strict": {`true`, `"true"`}, "ports": {`{"a": 1024}`, `{"a": 1023, "b": 65536}`, `{}`, `[1]`},
		"tree": {
			`{"name": "a", "left": {"among": [{"name": "b"}, {"by": {"x": {}}}]}}`, `{"left": {"left": {"nme": 1}}}`, `{"among": [{}, 7]}`, `{"by": {"x": {"name": 1}}}`,
		},
		"must": {`{"count": 1}`, `{}`, `{"count": null}`, `{"cont": 1}`}, "either": {`{"a": null}`, `[null, 1]`, `""`}, "word": {`"other"`, `1`},
		"unknown": {`1`}, "Zone": {`"z"`}, "weight": {`1`},
	}
	var parts []string
	for _, key := range sortedKeys(values) {
		if rnd.IntN(6) > 0 {
			continue
		}
		value := values[key][rnd.IntN(len(values[key]))]
		if rnd.IntN(12) == 0 {
			value = []string{"null", "[]", "{}", "true", `"x"`, "7"}[rnd.IntN(6)]
		}
		if key == "address" && value == `"x"` { // The schema does not know what its method UnmarshalText refuses.
			continue
		}
		parts = append(parts, `"`+key+`": `+value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
