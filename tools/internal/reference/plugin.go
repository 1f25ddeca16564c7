// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/config/manual"
)

// The settings of a plugin are described by the JSON Schema that it hands out ([Plugin]). What schema.go writes of the
// settings of Quorate is read here again, group by group ([schemaReader.group]).

// schemaSetting is what is read of the schema of a setting.
type schemaSetting struct {
	Ref         string                   `json:"$ref"`
	Type        any                      `json:"type"`
	Description string                   `json:"description"`
	Default     any                      `json:"default"`
	Enum        []any                    `json:"enum"`
	Examples    []any                    `json:"examples"`
	Pattern     string                   `json:"pattern"`
	Unit        string                   `json:"x-unit"`
	Range       string                   `json:"x-range"`
	Low         *float64                 `json:"minimum"`
	High        *float64                 `json:"maximum"`
	Above       *float64                 `json:"exclusiveMinimum"`
	Below       *float64                 `json:"exclusiveMaximum"`
	Properties  map[string]schemaSetting `json:"properties"`
	Required    []string                 `json:"required"`
	Entries     json.RawMessage          `json:"additionalProperties"`
	Items       *schemaSetting           `json:"items"`
	Defs        map[string]schemaSetting `json:"$defs"`
}

// Plugin describes the settings of a plugin by their JSON Schema, which a host has read. They stand below a key, whose
// own meaning is given. What a schema says beside types, ranges and descriptions is left out, and so is what lies in a
// group that is in itself.
func Plugin(key, meaning string, schema []byte) ([]manual.Setting, error) {
	var root schemaSetting
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("reference: the schema of %s cannot be shown: %w", key, err)
	}
	r := schemaReader{defs: root.Defs, settings: []manual.Setting{{Key: key, Type: "group", Reload: true, Meaning: meaning}}}
	r.group(key, r.resolved(root), []string{root.Ref})
	return r.settings, nil
}

// schemaReader collects settings.
type schemaReader struct {
	defs     map[string]schemaSetting
	settings []manual.Setting
}

// resolved returns the definition to which a schema refers, with what stands beside the reference.
func (r *schemaReader) resolved(p schemaSetting) schemaSetting {
	to, ok := r.defs[strings.TrimPrefix(p.Ref, "#/$defs/")]
	if !ok {
		return p
	}
	to.Description, to.Default = p.Description, p.Default
	return to
}

// group adds the settings of a group. Within are the references that lead to it.
func (r *schemaReader) group(key string, group schemaSetting, within []string) {
	for _, name := range slices.Sorted(maps.Keys(group.Properties)) {
		r.setting(key+"."+name, group.Properties[name], slices.Contains(group.Required, name), within)
	}
}

// setting adds a setting, and those in it.
func (r *schemaReader) setting(key string, at schemaSetting, required bool, within []string) {
	p := r.resolved(at)
	of, ref, place := p, at.Ref, key // What the values are: the setting itself, or its items.
	s := manual.Setting{Key: key, Type: p.kind(), Required: required, Reload: true, Meaning: p.Description}
	if item, step := p.item(); item != nil {
		of, ref, place = r.resolved(*item), item.Ref, key+step
		s.Type += several(of.kind())
	}
	s.Unit, s.Range, s.OneOf, s.Known = p.Unit, of.bounds(), texts(of.Enum), texts(of.Examples)
	if !required && !s.Group() {
		s.Default = presetText(p.Default)
	}
	r.settings = append(r.settings, s)
	if ref == "" || !slices.Contains(within, ref) {
		r.group(place, of, append(slices.Clone(within), ref))
	}
}

// item returns the schema of the items of a list, or of the entries of a map, and what a key has for each of them.
func (p schemaSetting) item() (item *schemaSetting, step string) {
	var entry schemaSetting
	switch {
	case p.Items != nil:
		return p.Items, "[]"
	case len(p.Properties) == 0 && len(p.Entries) > 0 && p.Entries[0] == '{' && json.Unmarshal(p.Entries, &entry) == nil:
		return &entry, ".*"
	default:
		return nil, ""
	}
}

// kind returns the type in the words of package config; of a list or a map, what stands before the type of its items.
func (p schemaSetting) kind() string {
	_, step := p.item()
	name, _ := p.Type.(string)
	words := map[string]string{"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number", "array": "list", "object": "group"}
	switch {
	case step == ".*":
		return "map from names to "
	case step == "[]":
		return "list of "
	case p.Pattern == field.DurationPattern || p.Range != "":
		return "duration"
	case words[name] != "":
		return words[name]
	case len(p.Enum) > 0:
		return "text"
	default:
		return "any value"
	}
}

// several returns the name of a type in the plural.
func several(kind string) string {
	switch {
	case kind == "text" || kind == "true or false":
		return kind
	case strings.HasPrefix(kind, "list "):
		return "lists"
	case strings.HasPrefix(kind, "map "):
		return "maps"
	default:
		return kind + "s"
	}
}

// bounds returns the range of a number or a duration in the form of [field.ParseRange], without the bounds of numbers
// of 64 bits.
func (p schemaSetting) bounds() string {
	low, high := bound(p.Low, p.Above, ">"), bound(p.High, p.Below, "<")
	if p.Range != "" || low == "" && high == "" {
		return p.Range
	}
	return low + ".." + high
}

func bound(closed, open *float64, sign string) string {
	switch {
	case open != nil:
		return sign + presetText(*open)
	case closed != nil && math.Abs(*closed) < 1<<62:
		return presetText(*closed)
	default:
		return ""
	}
}

// texts returns values as they are written in a file.
func texts(values []any) []string {
	var all []string
	for _, v := range values {
		all = append(all, presetText(v))
	}
	return all
}

// presetText returns a value as it would be written in a file, empty for nil.
func presetText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if v != "" {
			return v
		}
	case []any:
		return "[" + strings.Join(texts(v), ", ") + "]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}
