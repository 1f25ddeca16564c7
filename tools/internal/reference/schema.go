// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/config/manual"
)

// A schema is built group by group ([group]), each setting is put under the keys of its
// groups ([place]), and the type and range of its value become keywords of JSON Schema
// ([value], [bounded]).

// SchemaID is where editors find the schema of the main branch.
const SchemaID = "https://raw.githubusercontent.com/quorate/quorate/main/docs/cluster.schema.json"

// object is a part of a JSON Schema.
type object = map[string]any

// Schema returns a JSON Schema (draft 2020-12) of configuration files. It describes the
// form of one file: types, names, ranges. It does not demand required keys, since several
// files make one configuration, nor does it check settings against each other. The
// descriptions are those of [Build] for the same defaults.
func Schema(described []manual.Setting, defaults any) (map[string]any, error) {
	settings, err := config.Settings(defaults)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	meanings := map[string]string{}
	for _, s := range described {
		meanings[s.Key] = s.Meaning
	}
	root := group()
	root["$schema"], root["$id"], root["title"] = "https://json-schema.org/draft/2020-12/schema", SchemaID, "Quorate configuration"
	root["type"] = "object"
	top := root["properties"].(object) // As made by group.
	top["include"] = object{"type": "array", "items": object{"type": "string"}, "description": "Files of this directory that are laid under this file, the later over the earlier."}
	top["$schema"] = object{"type": "string", "description": "This schema, for editors; it is ignored."}
	root["patternProperties"] = object{
		"^discovery-": object{
			"type":        []string{"object", "null"},
			"description": "Settings of the method of discovery with this name, which the program links; quorate config check knows those of the project.",
		},
		"^lease-": object{
			"type":        []string{"object", "null"},
			"description": "Settings of the store of leases with this name, which the program links; quorate config check knows those of the project.",
		},
	}
	nodes := map[string]object{"": root}
	for _, s := range settings {
		node := value(s)
		node["description"] = meanings[s.Key()]
		place(nodes, s, node)
	}
	return root, nil
}

// WithPlugins adds to a schema what plugins say of their settings, by their names: a JSON Schema each, which a host has
// read. Each becomes a document within the document, so that what it refers to stays its own.
func WithPlugins(schema map[string]any, settings map[string][]byte) error {
	if len(settings) == 0 {
		return nil
	}
	plugins := schema["properties"].(object)["plugins"].(object) // As made by Schema of the whole configuration.
	each, named := plugins["additionalProperties"].(object), object{}
	for name, text := range settings {
		var of any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&of); err != nil {
			return fmt.Errorf("reference: the schema of plugins.%s.settings: %w", name, err)
		}
		if s, ok := of.(object); ok { // Else it is true or false.
			s["$id"] = SchemaID + "/plugins/" + url.PathEscape(name)
		}
		own, its := maps.Clone(each), maps.Clone(each["properties"].(object))
		its["settings"], own["properties"], named[name] = of, its, own
	}
	plugins["properties"] = named
	return nil
}

// place puts the schema of a setting into that of the group around it.
func place(nodes map[string]object, s config.Setting, node object) {
	path := strings.Join(s.Path, "\x00")
	last := s.Path[len(s.Path)-1]
	parent := nodes[strings.Join(s.Path[:len(s.Path)-1], "\x00")]
	nodes[path] = node
	switch last {
	case "*":
		parent["additionalProperties"] = node
	case "[]":
		parent["items"] = node
	default:
		parent["properties"].(object)[last] = node // As made by group.
	}
}

// group returns the schema of a group without settings. A section may be empty in a file,
// and then means its defaults.
func group() object {
	return object{
		"type":       []string{"object", "null"},
		"properties": object{}, "additionalProperties": false,
	}
}

// value returns the schema of a setting.
func value(s config.Setting) object {
	switch s.Type {
	case config.TypeGroup:
		return group()
	case config.TypeMap:
		return object{"type": []string{"object", "null"}, "additionalProperties": scalar(s, s.Item)}
	case config.TypeList:
		return object{"type": "array", "items": scalar(s, s.Item)}
	default:
		node := scalar(s, s.Type)
		if preset := preset(s); preset != nil {
			node["default"] = preset
		}
		return node
	}
}

// scalar returns the schema of a value that is no group.
func scalar(s config.Setting, kind config.Type) object {
	switch kind {
	case config.TypeText:
		return text(s)
	case config.TypeTexts:
		several := object{"type": "array", "items": text(s), "minItems": 1, "uniqueItems": true}
		return object{"anyOf": []object{text(s), several}}
	case config.TypeBool:
		return object{"type": "boolean"}
	case config.TypeWhole:
		return bounded(object{"type": "integer"}, s.Range)
	case config.TypeNumber:
		return bounded(object{"type": "number"}, s.Range)
	case config.TypeDuration:
		return object{"anyOf": []object{{"type": "string", "pattern": field.DurationPattern}, {"const": 0}}}
	default:
		return object{}
	}
}

func text(s config.Setting) object {
	switch {
	case len(s.OneOf) > 0:
		return object{"enum": s.OneOf}
	case len(s.Known) > 0:
		return object{"anyOf": []object{{"enum": s.Known}, {"type": "string"}}}
	default:
		return object{"type": "string"}
	}
}

// bounded adds a range to the schema of a number.
func bounded(node object, text string) object {
	r, err := field.ParseRange(text)
	if err != nil {
		return node
	}
	maps.Copy(node, r.Keywords())
	return node
}

// preset returns the default as a JSON value, nil for none.
func preset(s config.Setting) any {
	switch {
	case s.Default == "" || s.Default == "none":
		return nil
	case s.Type == config.TypeBool:
		return s.Default == "true"
	case s.Type == config.TypeWhole || s.Type == config.TypeNumber:
		return json.Number(s.Default)
	case s.Default == `""`:
		return ""
	}
	return s.Default
}
