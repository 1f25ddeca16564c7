// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"

	"github.com/quorate/quorate/config/field"
)

// What the validator reports is a tree by keywords; an operator reads one fault a setting, in the words in which
// plugins refuse settings themselves.

// noDuration says of a value that it is none.
const noDuration = "is no duration such as 3s or 500ms"

// schemaFaults collects faults.
type schemaFaults struct {
	tree any                           // The settings.
	met  map[string]*jsonschema.Schema // The schemas that were applied, by their places.
}

// settingFaults returns one fault for each setting that the validator refuses, in the order of their keys.
func settingFaults(invalid *jsonschema.ValidationError, tree any, met map[string]*jsonschema.Schema) plugins.SettingErrors {
	f := schemaFaults{tree, met}
	all := f.of(invalid)
	slices.SortStableFunc(all, func(a, b plugins.SettingError) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	all = slices.CompactFunc(all, func(a, b plugins.SettingError) bool { return a.Key == b.Key })
	for i := range all {
		all[i].Key, all[i].Reason = wire.Line(all[i].Key, wire.MaxSettingKeyBytes), wire.Line(all[i].Reason, wire.MaxTextBytes)
	}
	return all[:min(len(all), wire.MaxSettingErrors)]
}

// of returns the faults in an error of the validator.
func (f schemaFaults) of(e *jsonschema.ValidationError) plugins.SettingErrors {
	key, value := f.at(e.InstanceLocation)
	one := func(format string, args ...any) plugins.SettingErrors {
		return plugins.SettingErrors{{Key: key, Reason: fmt.Sprintf(format, args...)}}
	}
	below := func(names []string, reason string) (all plugins.SettingErrors) {
		for _, name := range names {
			all = append(all, plugins.SettingError{Key: under(key, name), Reason: reason})
		}
		return all
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var all plugins.SettingErrors
		for _, cause := range e.Causes {
			all = append(all, f.of(cause)...)
		}
		return all
	case *kind.AdditionalProperties:
		return below(k.Properties, "is unknown; "+f.known(e.SchemaURL))
	case *kind.Required:
		return below(k.Missing, "must be set")
	case *kind.DependentRequired:
		return below(k.Missing, "must be set, since "+under(key, k.Prop)+" is")
	case *kind.PropertyNames:
		// The validator does not keep its place.
		return plugins.SettingErrors{{Reason: shown(k.Property) + " is no name that is permitted"}}
	case *kind.AnyOf, *kind.OneOf:
		return f.alternatives(key, len(e.InstanceLocation), e.Causes)
	case *kind.Type:
		if value == nil {
			return one("has no value")
		}
		if s := f.met[e.SchemaURL]; s != nil && s.Pattern != nil && s.Pattern.String() == field.DurationPattern {
			return one("%s %s", shown(value), noDuration)
		}
		return one("%s is no %s", shown(value), typeWords(k.Want))
	case *kind.Enum:
		return one("%s is none of %s", shown(value), listed(k.Want))
	case *kind.Const:
		return one("%s is not %s", shown(value), shown(k.Want))
	case *kind.Pattern:
		if k.Want == field.DurationPattern {
			return one("%s %s", shown(value), noDuration)
		}
		return one("%s does not match the pattern %s", shown(value), field.Clip(k.Want))
	case durationFault:
		return one("%s %s", shown(value), string(k))
	case *kind.Minimum:
		return one("%s is not at least %s", shown(value), decimal(k.Want))
	case *kind.Maximum:
		return one("%s is not at most %s", shown(value), decimal(k.Want))
	case *kind.ExclusiveMinimum:
		return one("%s is not above %s", shown(value), decimal(k.Want))
	case *kind.ExclusiveMaximum:
		return one("%s is not below %s", shown(value), decimal(k.Want))
	case *kind.Not, *kind.FalseSchema:
		return one("%s is not permitted", shown(value))
	default:
		return one("%s: %s", shown(value), field.Clip(k.LocalizedString(message.NewPrinter(language.English))))
	}
}

// alternatives returns one fault for a value that fits none of several forms: that of the form which it fits
// furthest, or all reasons if it fits none at all.
func (f schemaFaults) alternatives(key string, depth int, causes []*jsonschema.ValidationError) plugins.SettingErrors {
	var reasons []string
	for _, cause := range causes {
		for _, fault := range f.of(cause) {
			if deeper(cause, depth) {
				return plugins.SettingErrors{fault}
			}
			if !slices.Contains(reasons, fault.Reason) {
				reasons = append(reasons, fault.Reason)
			}
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"fits more than one of its forms"}
	}
	return plugins.SettingErrors{{Key: key, Reason: strings.Join(reasons, ", and ")}}
}

// deeper reports whether an error is about something in the value, and not about the value itself.
func deeper(e *jsonschema.ValidationError, depth int) bool {
	if len(e.Causes) == 0 {
		return len(e.InstanceLocation) > depth
	}
	return slices.ContainsFunc(e.Causes, func(cause *jsonschema.ValidationError) bool { return deeper(cause, depth) })
}

// at returns the key of a place, and what is there.
func (f schemaFaults) at(place []string) (key string, value any) {
	value = f.tree
	for _, name := range place {
		switch v := value.(type) {
		case []any:
			key += "[" + name + "]"
			i, err := strconv.Atoi(name)
			if value = nil; err == nil && i >= 0 && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			key, value = under(key, name), v[name]
		}
	}
	return key, value
}

func under(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// known says which settings there are in the group of a schema.
func (f schemaFaults) known(place string) string {
	s := f.met[place]
	if s == nil || len(s.Properties) == 0 {
		return "there are no settings here"
	}
	return "there are " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")
}

// typeWords names types for people who do not write JSON.
func typeWords(types []string) string {
	words := map[string]string{
		"string": "text", "boolean": "true or false", "integer": "whole number", "number": "number", "array": "list", "object": "group of settings",
	}
	var all []string
	for _, t := range types {
		if word, ok := words[t]; ok {
			all = append(all, word)
		}
	}
	return strings.Join(all, " or ")
}

// decimal writes a bound.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return field.Clip(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// listed writes the values that a setting may have.
func listed(values []any) string {
	var all []string
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			text = shown(v)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// shown prints a value as it was given, shortened.
func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a value of type %T", v)
	}
	return field.Clip(string(text))
}
