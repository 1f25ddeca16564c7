// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// The schema of a plugin's settings, which is text of another process: what no host can use; then the faults of
// settings, in the words of settings; last schemas that would cost too much.

// A schema that cannot be used is refused with the reason.
func TestSchemasThatNoHostCanUseAreRefused(t *testing.T) {
	deep := strings.Repeat(`{"not": `, 40) + `{}` + strings.Repeat(`}`, 40)
	for text, want := range map[string]string{
		`{`:                        "is no JSON",
		`{} {`:                     "is no JSON",
		`[]`:                       "is no JSON Schema",
		`7`:                        "is no JSON Schema",
		`{"type": "strin"}`:        "is no JSON Schema",
		`{"properties": []}`:       "is no JSON Schema",
		`{"pattern": "("}`:         "is no JSON Schema",
		`{"minimum": 1e999999999}`: "the number 1e999999999",
		`{"minimum": 1e-999999}`:   "the number 1e-999999",
		`{"$ref": "https://example.com/schema.json"}`:       "no other document is read",
		`{"$ref": "file:///etc/passwd"}`:                    "no other document is read",
		`{"$id": "https://a.example/b", "$ref": "c"}`:       "no other document is read",
		`{"$schema": "https://example.com/meta"}`:           "no other document is read",
		`{"$ref": "#/$defs/absent"}`:                        "is no JSON Schema",
		`{"type": "string", "x-range": "9..1"}`:             "x-range",
		`{"type": "string", "x-range": 7}`:                  "x-range",
		deep:                                                "lie in more than 32 others",
		`{"enum": [` + strings.Repeat("1,", 20_000) + `1]}`: "more than 8192 values",
		`{"title": "` + strings.Repeat("x", 1<<20) + `"}`:   "the limit is 65536",
		strings.Repeat(`[`, 60_000):                         "lie in more than 32 others",
	} {
		_, err := host.ReadSchema([]byte(text))
		require.ErrorContains(t, err, want, "%.100s", text)
		require.Less(t, len(err.Error()), 600)
	}
}

// Each wrong setting is one fault, with its key, in the words in which plugins refuse settings themselves.
func TestFaultsThatASchemaFindsAreThoseOfSettings(t *testing.T) {
	schema, err := host.ReadSchema([]byte(`{
		"type": "object", "additionalProperties": false, "required": ["url"], "dependentRequired": {"user": ["password"]},
		"properties": {
			"url": {"type": "string", "pattern": "^https?://", "minLength": 8},
			"mode": {"enum": ["fast", "safe", 3]},
			"pause": {"type": "string", "pattern": "` + strings.ReplaceAll(field.DurationPattern, `\`, `\\`) + `", "x-range": "10ms..<1h"},
			"count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
			"part": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
			"hosts": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
			"retry": {"type": "object", "properties": {"interval": {"type": "string"}}, "additionalProperties": false},
			"labels": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
			"target": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"port": {"type": "integer"}}}]},
			"one": {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
			"user": true, "password": true, "never": false, "not": {"not": {"const": 7}}, "is": {"const": "it"}
		}}`))
	require.NoError(t, err)
	require.NoError(t, schema.Check(map[string]any{"url": "https://a", "mode": 3, "pause": "10ms", "hosts": []any{"a"}}))
	const known = "there are count, hosts, is, labels, mode, never, not, one, part, password, pause, retry, target, url, user"
	for settings, want := range map[string]string{
		`{}`:                    "url: must be set",
		`{"ur": 1, "Url": 1}`:   "Url: is unknown; " + known + "|ur: is unknown; " + known + "|url: must be set",
		`{"url": 7}`:            "url: 7 is no text",
		`{"url": null}`:         "url: has no value",
		`{"url": "ftp:"}`:       `url: "ftp:" does not match the pattern ^https?://`,
		`"mode": "slow"`:        `mode: "slow" is none of fast, safe, 3`,
		`"pause": 3`:            `pause: 3 is no duration such as 3s or 500ms`,
		`"pause": "3"`:          `pause: "3" is no duration such as 3s or 500ms`,
		`"pause": "9999999h"`:   `pause: "9999999h" is no duration such as 3s or 500ms`,
		`"pause": "1ms"`:        `pause: "1ms" is not from 10ms, below 1h`,
		`"pause": "1h"`:         `pause: "1h" is not from 10ms, below 1h`,
		`"count": 0`:            "count: 0 is not at least 1",
		`"count": 10`:           "count: 10 is not below 10",
		`"count": 1.5`:          "count: 1.5 is no whole number",
		`"part": 0, "count": 7`: "part: 0 is not above 0",
		`"part": 0.7`:           "part: 0.7 is not at most 0.5",
		`"hosts": ["a", 2, 3]`:  "hosts[1]: 2 is no text|hosts[2]: 3 is no text",
		`"hosts": ["a", "a"]`:   `hosts: ["a","a"]: items at 0 and 1 are equal`,
		`"retry": {"intervall": "1s", "interval": 3}`: "retry.interval: 3 is no text|retry.intervall: is unknown; there are interval",
		`"labels": {"A": 1}`:                          `"A" is no name that is permitted`,
		`"target": 7`:                                 "target: 7 is no text, and 7 is no group of settings",
		`"target": {"port": "x"}`:                     `target.port: "x" is no whole number`,
		`"one": 1`:                                    "one: fits more than one of its forms",
		`"user": "u"`:                                 "password: must be set, since user is",
		`"never": 1`:                                  "never: 1 is not permitted",
		`"not": 7`:                                    "not: 7 is not permitted",
		`"is": 7`:                                     `is: 7 is not "it"`,
	} {
		if !strings.HasPrefix(settings, "{") {
			settings = `{"url": "https://a", ` + settings + "}"
		}
		var given map[string]any
		require.NoError(t, json.Unmarshal([]byte(settings), &given))
		var faults plugins.SettingErrors
		require.ErrorAs(t, schema.Check(given), &faults, settings)
		require.Equal(t, strings.ReplaceAll(want, "|", "; "), faults.Error(), settings)
	}
}

// No settings are an empty object, and many faults are cut to as many as a plugin may say itself.
func TestFaultsThatASchemaFindsAreBounded(t *testing.T) {
	schema, err := host.ReadSchema([]byte(`{"additionalProperties": {"const": "x"}}`))
	require.NoError(t, err)
	require.NoError(t, schema.Check(nil))
	many := map[string]any{}
	for i := range 1000 {
		many[fmt.Sprint(i, strings.Repeat("k", 1000))] = strings.Repeat("v", 1000)
	}
	var faults plugins.SettingErrors
	require.ErrorAs(t, schema.Check(many), &faults)
	require.Len(t, faults, 100)
	for _, f := range faults {
		require.LessOrEqual(t, len(f.Key), 256)
		require.LessOrEqual(t, len(f.Reason), 1024)
	}
}

// A schema that costs more than a bound for these settings is not applied: that is its own fault, and not one of the
// settings. One that is in itself is applied as deep as the settings are.
func TestTheWorkOfASchemaIsBounded(t *testing.T) {
	var doubling strings.Builder
	for i := range 60 {
		fmt.Fprintf(&doubling, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"not": {"$ref": "#/$defs/d%d"}}]}, `, i, i+1, i+1)
	}
	text, list := strings.Repeat("x", 1<<19), make([]any, 100_000)
	for name, c := range map[string]struct {
		schema   string
		settings map[string]any
		want     string
	}{
		"twice of twice of twice": {`{"$defs": {` + doubling.String() + `"d60": {"const": 7}}, "$ref": "#/$defs/d0"}`, nil, "more than"},
		"itself":                  {`{"$ref": "#"}`, nil, "without end"},
		"itself by turns":         {`{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}`, nil, "without end"},
		"a dynamic reference":     {`{"$dynamicAnchor": "a", "properties": {"a": {"$dynamicRef": "#a"}}}`, map[string]any{"a": 1}, "dynamicRef"},
		"a long pattern":          {`{"additionalProperties": {"pattern": "` + strings.Repeat("(a|b)*", 1000) + `$"}}`, map[string]any{"a": text}, "more than"},
		"many patterns of names":  {`{"patternProperties": {` + strings.Repeat(`"(a|b)*x": true, `, 1) + `"` + strings.Repeat("a*", 3000) + `": true}}`, map[string]any{text: 1}, "more than"},
		"a long list many times":  {`{"properties": {"a": {"allOf": [` + strings.Repeat(`{"items": {"allOf": [true, true]}}, `, 50) + `{}]}}}`, map[string]any{"a": list}, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			schema, err := host.ReadSchema([]byte(c.schema))
			require.NoError(t, err)
			err = schema.Check(c.settings)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, plugins.ErrSettings)
		})
	}
	itself, err := host.ReadSchema([]byte(`{"properties": {"a": {"$ref": "#"}, "n": {"type": "integer"}}}`))
	require.NoError(t, err)
	settings := map[string]any{"n": "x"}
	for range 1000 {
		settings = map[string]any{"a": settings}
	}
	require.ErrorIs(t, itself.Check(settings), plugins.ErrSettings)
}

// Whatever a plugin says is its schema, and whatever the settings are, the host goes on.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"properties": {"a": {"type": "string", "x-range": "1s..2s"}}, "additionalProperties": false}`), []byte(`{"a": "3s", "b": [1]}`))
	f.Add([]byte(`{"anyOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"items": {"$ref": "#"}}}}`), []byte(`{}`))
	f.Fuzz(func(_ *testing.T, text, given []byte) {
		schema, err := host.ReadSchema(text)
		if err != nil {
			return
		}
		var settings map[string]any
		if json.Unmarshal(given, &settings) == nil {
			_ = schema.Check(settings)
		}
	})
}
