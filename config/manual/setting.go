// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/quorate/quorate/config"
)

// Setting is the description of one key.
type Setting struct {
	// Key is the dotted key. "*" stands for a name that users choose, "[]" for any
	// item of a list.
	Key string `json:"key"`
	// Variable is the environment variable that overrides the key; empty when
	// there is none.
	Variable string `json:"variable,omitempty"`
	// Type is the type of the value in plain words: "duration", "list of text".
	Type string `json:"type"`
	// Default is the default as it would be written in a file; empty for groups and
	// for required keys.
	Default string `json:"default,omitempty"`
	// Unit is what a number counts; "duration" for durations, whose unit is
	// written with the number.
	Unit string `json:"unit,omitempty"`
	// Range bounds a number: low..high, with > or < before an excluded bound.
	Range string `json:"range,omitempty"`
	// OneOf are the only values that are allowed.
	OneOf []string `json:"oneOf,omitempty"`
	// Known are values with a special meaning; other values are allowed.
	Known []string `json:"known,omitempty"`
	// Required says that the key has no default and must be set.
	Required bool `json:"required,omitempty"`
	// Reload says that the key may change while the node runs.
	Reload bool `json:"reload"`
	// Meaning says what the setting does, and what goes wrong at the ends of its
	// range.
	Meaning string `json:"meaning"`
}

// Group reports whether the key is a group of keys, without a value of its own.
func (s Setting) Group() bool { return s.Type == "group" }

// Section describes a section and its settings. Defaults is the struct of the section,
// or a pointer to it, with its defaults; meaning is the purpose of the section. The
// error is that of [config.Settings].
func Section(name, meaning string, defaults any) ([]Setting, error) {
	declared, err := config.Settings(defaults)
	if err != nil {
		return nil, fmt.Errorf("manual: section %s: %w", name, err)
	}
	group := config.Setting{Path: []string{name}, Type: config.TypeGroup, Struct: reflect.TypeOf(defaults)}
	settings := []Setting{Describe(group, meaning)}
	for _, d := range declared {
		d.Path = append([]string{name}, d.Path...)
		settings = append(settings, Describe(d, ""))
	}
	return settings, nil
}

// Describe puts a setting into words. If meaning is empty, the setting's tag is used.
func Describe(d config.Setting, meaning string) Setting {
	s := Setting{
		Key: d.Key(), Type: d.Type.String(), Default: d.Default, Unit: d.Unit, Range: d.Range,
		OneOf: d.OneOf, Known: d.Known, Required: d.Required, Reload: d.Reload, Meaning: cmp.Or(meaning, d.Meaning),
	}
	switch d.Type {
	case config.TypeList:
		s.Type = "list of " + several(d.Item)
	case config.TypeMap:
		s.Type = "map from names to " + several(d.Item)
	default:
	}
	if ValueKind(d) == config.TypeDuration {
		s.Unit = "duration"
	}
	if name := strings.Join(d.Path, "__"); d.Type != config.TypeGroup && d.Type != config.TypeMap && !strings.ContainsAny(name, "*[") {
		s.Variable = config.Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	}
	return s
}

// several returns the name of a type in the plural.
func several(k config.Type) string {
	switch k {
	case config.TypeText, config.TypeBool:
		return k.String()
	default:
		return k.String() + "s"
	}
}

// ValueKind returns the type of the values to which unit and range apply: for lists
// and maps, the type of their items.
func ValueKind(d config.Setting) config.Type {
	if d.Type == config.TypeList || d.Type == config.TypeMap {
		return d.Item
	}
	return d.Type
}

// Under returns the settings at and below a key; all settings for "".
func Under(settings []Setting, key string) []Setting {
	var under []Setting
	for _, s := range settings {
		if IsUnder(s.Key, key) {
			under = append(under, s)
		}
	}
	return under
}

// IsUnder reports whether a key is another one, or that of a setting in its group, map or list. All keys are under "".
func IsUnder(key, above string) bool {
	return above == "" || key == above || strings.HasPrefix(key, above+".") || strings.HasPrefix(key, above+"[")
}

// Find returns the description of a key as files have it, with names in the place of "*" and numbers in the place of
// "[]", and false if there is none. Of what lies below a map without a description of its entries it is that of the
// map.
func Find(settings []Setting, key string) (Setting, bool) {
	parts := strings.Split(item.ReplaceAllString(key, "[]"), ".")
	for n := len(parts); n > 0; n-- {
		i := slices.IndexFunc(settings, func(s Setting) bool { return matches(strings.Split(s.Key, "."), parts[:n]) })
		if i >= 0 && (n == len(parts) || strings.HasPrefix(settings[i].Type, "map ")) {
			return settings[i], true
		}
	}
	return Setting{}, false
}

// item is the number of an item of a list.
var item = regexp.MustCompile(`\[\d+\]`)

// matches reports whether the parts of a key are those of a described key.
func matches(described, parts []string) bool {
	return slices.EqualFunc(described, parts, func(d, p string) bool { return d == p || d == "*" })
}
