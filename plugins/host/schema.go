// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/message"

	"github.com/quorate/quorate/plugins"

	"github.com/quorate/quorate/config/field"
)

// The schema of a plugin's settings is text of another process: it is measured ([measure]) and compiled without a look
// at any other document ([ReadSchema]); before settings are held to it, what that costs is bounded ([budget]). What
// does not fit becomes faults of settings in schema_faults.go.

const (
	// maxSchemaValues and maxSchemaDepth bound the JSON of a schema: to compile one takes the square of its values.
	maxSchemaValues = 8192
	maxSchemaDepth  = 32
	// maxExponent bounds the exponents of its numbers, which the validator computes exactly.
	maxExponent = 400
	// maxWork bounds what one check of settings may cost, in steps of up to a microsecond: a schema may apply another
	// one twice, and that one the next.
	maxWork = 1 << 21
)

// Schema is the JSON Schema of a plugin's settings. It is safe for concurrent use.
type Schema struct {
	text []byte
	root *jsonschema.Schema
}

// ReadSchema reads a JSON Schema, of draft 2020-12 where it names no other. The error says why a host cannot use it: it
// is no schema, is beyond a limit of the contract, or refers to another document.
func ReadSchema(text []byte) (*Schema, error) {
	if len(text) > plugins.MaxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(text), plugins.MaxSchemaBytes)
	}
	if err := measure(text); err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	s := &Schema{text: bytes.Clone(text)}
	err = guarded(func() (err error) {
		const place = "quorate:settings"
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseLoader(loader{})
		c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "quorate:durations", Compile: compileDurations})
		c.AssertVocabs()
		if err := c.AddResource(place, document); err != nil {
			return err
		}
		s.root, err = c.Compile(place)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("it is no JSON Schema: %.*s", shownOfSchemaFault, strings.Join(strings.Fields(err.Error()), " "))
	}
	return s, nil
}

// shownOfSchemaFault is how much is shown of what the compiler says, which quotes the schema.
const shownOfSchemaFault = 400

// guarded turns a panic into an error: no schema may end the node.
func guarded(run func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the validator panics: %v", cause)
		}
	}()
	return run()
}

// loader is asked for other documents.
type loader struct{}

// Load refuses every document.
func (loader) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %q, and no other document is read", field.Clip(url))
}

// measure reports JSON that is beyond the limits of a schema.
func measure(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	depth, values := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no JSON: %w", err)
		}
		switch token := token.(type) {
		case json.Delim:
			if depth--; token == '{' || token == '[' {
				depth += 2
			}
		case json.Number:
			if _, exponent, ok := strings.Cut(strings.ToLower(token.String()), "e"); ok {
				if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
					return fmt.Errorf("it has the number %s", field.Clip(token.String()))
				}
			}
		}
		if values++; values > 2*maxSchemaValues { // A key is a token too, and so are both ends of a group.
			return fmt.Errorf("it has more than %d values", maxSchemaValues)
		}
		if depth > maxSchemaDepth {
			return fmt.Errorf("its values lie in more than %d others", maxSchemaDepth)
		}
	}
}

// Text returns the schema as the plugin has written it.
func (s *Schema) Text() []byte { return s.text }

// Check returns the faults of settings, an error of type [plugins.SettingErrors], in the order of their keys; nil if
// there are none. Another error says why the schema could not be used on these settings.
func (s *Schema) Check(settings map[string]any) error {
	if settings == nil {
		settings = map[string]any{}
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return plugins.SettingErrors{{Reason: "the settings have no form in JSON: " + err.Error()}}
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return plugins.SettingErrors{{Reason: "the settings are no JSON: " + err.Error()}}
	}
	var faults plugins.SettingErrors
	err = guarded(func() error {
		b := budget{left: maxWork, met: map[string]*jsonschema.Schema{}}
		if b.apply(s.root, tree); b.refused != nil {
			return b.refused
		}
		invalid, ok := errors.AsType[*jsonschema.ValidationError](s.root.Validate(tree))
		if ok {
			faults = settingFaults(invalid, tree, b.met)
		}
		return nil
	})
	if err == nil && len(faults) > 0 {
		return faults
	}
	return err
}

// budget counts at least as many steps as the validator takes, over the same schemas and values.
type budget struct {
	left    int
	depth   int
	refused error
	met     map[string]*jsonschema.Schema // The schemas that were applied, by their places.
}

// take takes steps; it reports whether there were enough.
func (b *budget) take(n int) bool {
	if b.left -= n; b.left < 0 && b.refused == nil {
		b.refused = fmt.Errorf("to hold these settings to it would take more than %d steps", maxWork)
	}
	return b.refused == nil
}

// apply counts a schema that is applied to a value.
func (b *budget) apply(s *jsonschema.Schema, v any) {
	if s == nil || !b.take(1+weight(s, v)) {
		return
	}
	if b.depth++; b.depth > maxWorkDepth {
		b.refused = errors.New("it refers to itself without end")
	}
	defer func() { b.depth-- }()
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		b.refused = errors.New("it has a $dynamicRef, which is not followed")
	}
	if b.refused != nil {
		return
	}
	b.met[s.Location] = s
	for _, all := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Ref, s.Not, s.If, s.Then, s.Else}} {
		for _, other := range all {
			b.apply(other, v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		b.object(s, v)
	case []any:
		b.array(s, v)
	}
}

// maxWorkDepth bounds how many schemas lie around another one that is applied.
const maxWorkDepth = 4096

// weight is what the keywords of a schema cost by themselves: patterns, and lists of values.
func weight(s *jsonschema.Schema, v any) int {
	n := len(s.Required)
	if s.Enum != nil {
		n += len(s.Enum.Values)
	}
	switch v := v.(type) {
	case string:
		n += len(v) / matched
		if s.Pattern != nil {
			n += len(v) * len(s.Pattern.String()) / matched
		}
	case map[string]any:
		n += len(v)
		for pattern := range s.PatternProperties {
			for name := range v {
				n += 1 + len(name)*len(pattern.String())/matched
			}
		}
	case []any:
		n += len(v)
	}
	return n
}

// matched is how many characters of a text times those of a pattern are matched in one step.
const matched = 256

// object counts what is applied to the entries of an object.
func (b *budget) object(s *jsonschema.Schema, v map[string]any) {
	for _, other := range s.DependentSchemas {
		b.apply(other, v)
	}
	for _, other := range s.Dependencies {
		b.apply(schemaOf(other), v)
	}
	for name, value := range v {
		b.apply(s.Properties[name], value)
		for _, other := range s.PatternProperties {
			b.apply(other, value)
		}
		b.apply(schemaOf(s.AdditionalProperties), value)
		b.apply(s.UnevaluatedProperties, value)
		b.apply(s.PropertyNames, name)
	}
}

// array counts what is applied to the items of a list.
func (b *budget) array(s *jsonschema.Schema, v []any) {
	if s.UniqueItems && !b.take(size(v)) {
		return
	}
	for i, value := range v {
		if i < len(s.PrefixItems) {
			b.apply(s.PrefixItems[i], value)
		}
		if places, ok := s.Items.([]*jsonschema.Schema); ok && i < len(places) {
			b.apply(places[i], value)
		}
		for _, other := range []*jsonschema.Schema{schemaOf(s.Items), schemaOf(s.AdditionalItems), s.Items2020, s.Contains, s.UnevaluatedItems} {
			b.apply(other, value)
		}
	}
}

// schemaOf returns a schema that stands in a field with other types.
func schemaOf(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

// size is how many values there are in a value.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += size(value)
		}
	case []any:
		for _, value := range v {
			n += size(value)
		}
	}
	return n
}

// durations holds texts to be durations, and to a range: the keyword x-range, and the pattern of durations, which by
// itself takes longer ones than there are.
type durations struct{ within field.Range }

func compileDurations(_ *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
	within, ranged := schema["x-range"]
	if !ranged && schema["pattern"] != field.DurationPattern {
		return nil, nil
	}
	text, ok := within.(string)
	r, err := field.ParseRange(text)
	if err == nil && ranged && !ok {
		err = errors.New("is no text")
	}
	if err != nil {
		return nil, fmt.Errorf("x-range: %w", err)
	}
	return durations{r}, nil
}

// Validate reports a text that is no duration, or one out of the range.
func (d durations) Validate(ctx *jsonschema.ValidatorContext, v any) {
	text, ok := v.(string)
	if !ok {
		return
	}
	length, err := time.ParseDuration(text)
	switch {
	case err != nil:
		ctx.AddError(durationFault(noDuration))
	case !d.within.Has(float64(length)):
		ctx.AddError(durationFault("is not " + d.within.String()))
	}
}

// durationFault says what is wrong about a duration.
type durationFault string

// KeywordPath names the keyword.
func (durationFault) KeywordPath() []string { return []string{"x-range"} }

// LocalizedString returns the fault, in English.
func (f durationFault) LocalizedString(*message.Printer) string { return string(f) }
