// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// Setting is what is to be known of one key.
type Setting struct {
	// Key is the dotted key. "*" stands for a name that users choose, "[]" for any
	// item of a list.
	Key string `json:"key"`
	// Variable is the environment variable that overrides the key; empty when
	// there is none.
	Variable string `json:"variable,omitempty"`
	// Type is the kind of the value in plain words: "duration", "list of text".
	Type string `json:"type"`
	// Default is the default as it would stand in a file; empty for groups and for
	// required keys.
	Default string `json:"default,omitempty"`
	// Unit is what a number counts; "duration" for durations, whose unit is
	// written with the number.
	Unit string `json:"unit,omitempty"`
	// Range bounds a number: low..high, with > or < before an end that is itself
	// not allowed.
	Range string `json:"range,omitempty"`
	// OneOf are the only values that are allowed.
	OneOf []string `json:"oneOf,omitempty"`
	// Known are values with a meaning, among others.
	Known []string `json:"known,omitempty"`
	// Required says that the key has no default and must be set.
	Required bool `json:"required,omitempty"`
	// Reload says that the key may change while the node runs.
	Reload bool `json:"reload"`
	// Meaning says what the setting does, and what goes wrong at its ends.
	Meaning string `json:"meaning"`
}

// Group reports whether the key holds others, and has no value of its own.
func (s Setting) Group() bool { return s.Type == "group" }

//go:embed reference.json
var committed []byte

// Read returns the reference of the program: groups before what is in them, in
// the order of their declaration.
func Read() ([]Setting, error) {
	var settings []Setting
	if err := json.Unmarshal(committed, &settings); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return settings, nil
}

// Under returns the settings at and below a key; all for "".
func Under(settings []Setting, key string) []Setting {
	var under []Setting
	for _, s := range settings {
		if key == "" || s.Key == key || strings.HasPrefix(s.Key, key+".") || strings.HasPrefix(s.Key, key+"[") {
			under = append(under, s)
		}
	}
	return under
}
