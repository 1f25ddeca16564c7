// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/knadh/koanf/v2"
)

// Layers that are no files: a layer asks its provider, in bounded time, and takes what that gives apart by the rules of
// files (values). Watching is in watch.go.

// readTimeout bounds how long a provider may take for an answer. koanf's interface has no context.
const readTimeout = 10 * time.Second

// Provider is a layer of settings that a provider of koanf has: flags, the values of a program, a key of etcd. The
// providers of a [Loader] lie over its files, each over those before it, and the environment over all of them.
//
// A text that is read without a parser becomes what its setting needs, as that of a variable does: such providers often
// know nothing but text. All other values must have the type of their setting. Lists may be of any type, and what is a
// [time.Duration] or can write itself as text counts as text. A provider without any setting is an empty layer.
type Provider struct {
	// Name stands in faults where the path of a file stands. It is not empty, and no other provider of the loader
	// has it.
	Name string

	// Source has groups as maps; see [Flat] and [Document] for stores of keys. It is asked when the settings are
	// loaded or reloaded, from one goroutine at a time. It has ten seconds for an answer, and is asked no further
	// question before it has answered. What it gives must not change afterwards.
	Source koanf.Provider

	// Parser reads the bytes that Source gives. Nil: Source gives the settings as maps.
	Parser koanf.Parser
}

// providerReader asks one provider. All Files of one loading share it.
type providerReader struct {
	Provider

	turn chan struct{} // Holds one element while the provider owes an answer.
}

// newProviderReaders returns what asks providers.
func newProviderReaders(providers []Provider) ([]*providerReader, Errors) {
	var readers []*providerReader
	var faults Errors
	for i, p := range providers {
		named := func(o Provider) bool { return o.Name == p.Name }
		switch {
		case p.Name == "" || p.Source == nil:
			faults = append(faults, &Error{File: p.Name, Reason: fmt.Sprintf("provider %d has no name or no source", i+1), Err: ErrRead})
		case slices.ContainsFunc(providers[:i], named):
			faults = append(faults, &Error{File: p.Name, Reason: "two providers have this name", Err: ErrRead})
		}
		readers = append(readers, &providerReader{Provider: p, turn: make(chan struct{}, 1)})
	}
	return readers, faults
}

// answer is what a provider answered.
type answer struct {
	doc    document
	faults Errors
}

// read asks the provider, and waits for its answer until the context ends.
func (l *providerReader) read(ctx context.Context, timeout time.Duration) (document, Errors) {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case l.turn <- struct{}{}:
	case <-limit.C:
		return document{}, l.unread(fmt.Sprintf("has not answered the question before within %v", timeout))
	case <-ctx.Done():
		return document{}, l.unread("is not waited for any more")
	}
	answers := make(chan answer, 1)
	// Owned by the provider: nothing can end its Read. It sends once, and the channel has room for that.
	go func() {
		defer func() { <-l.turn }()
		answers <- l.ask()
	}()
	select {
	case a := <-answers:
		return a.doc, a.faults
	case <-limit.C:
		return document{}, l.unread(fmt.Sprintf("did not answer within %v", timeout))
	case <-ctx.Done():
		return document{}, l.unread("is not waited for any more")
	}
}

func (l *providerReader) unread(reason string) Errors {
	return Errors{{File: l.Name, Reason: oneLine(reason), Err: ErrRead}}
}

// ask asks the provider on the goroutine of the caller.
func (l *providerReader) ask() (a answer) {
	defer func() {
		if v := recover(); v != nil {
			a = answer{faults: l.unread(fmt.Sprintf("the provider panicked: %v", v))}
		}
	}()
	v := values{reader: l, lines: map[string]int{}}
	tree, faults := l.tree()
	if len(faults) > 0 {
		return answer{faults: faults}
	}
	doc := document{name: l.Name, lines: v.lines, text: l.Parser == nil}
	doc.tree, _ = v.plain(reflect.ValueOf(tree), nil).(map[string]any)
	doc.data = fmt.Appendf(nil, "%#v", doc.tree) // Maps are printed in the order of their keys.
	if len(v.faults) > 0 {
		return answer{faults: v.faults}
	}
	faults = doc.takeIncludes()
	if len(doc.includes) > 0 {
		faults = append(faults, &Error{File: l.Name, Key: includeKey, Reason: "only a file can include files", Err: ErrSyntax})
	}
	return answer{doc, faults}
}

// tree returns what the provider gives.
func (l *providerReader) tree() (map[string]any, Errors) {
	if l.Parser == nil {
		tree, err := l.Source.Read()
		if err != nil {
			return nil, l.unread(err.Error())
		}
		return tree, nil
	}
	data, err := l.Source.ReadBytes()
	switch {
	case err != nil:
		return nil, l.unread(err.Error())
	case len(data) > maxSizeBytes:
		return nil, l.unread(fmt.Sprintf("is larger than %d bytes", maxSizeBytes))
	case !utf8.Valid(data):
		return nil, Errors{{File: l.Name, Reason: "is not UTF-8 text", Err: ErrSyntax}}
	}
	tree, err := l.Parser.Unmarshal(data)
	switch {
	case err != nil:
		return nil, Errors{{File: l.Name, Reason: oneLine(err.Error()), Err: ErrSyntax}}
	case len(tree) == 0:
		return nil, Errors{{File: l.Name, Reason: "is empty", Err: ErrSyntax}}
	}
	return tree, nil
}

// values makes of the values of a provider what a file has: maps, lists, text, bool, int, uint64 and float64. It shares
// no memory with them, and records in lines what there is.
type values struct {
	reader *providerReader
	lines  map[string]int
	faults Errors
}

func (v *values) fault(path []string, reason string) any {
	v.faults = append(v.faults, &Error{File: v.reader.Name, Key: display(path), Reason: reason, Err: ErrSyntax})
	return nil
}

// plain returns a value as a file would have it.
func (v *values) plain(value reflect.Value, path []string) any {
	if len(v.lines) > maxValues {
		if len(v.faults) == 0 {
			return v.fault(nil, fmt.Sprintf("more than %d keys and list items are given", maxValues))
		}
		return nil
	}
	if v.lines[strings.Join(path, separator)] = 0; len(path) > MaxDepth {
		return v.fault(path[:1], tooDeep())
	}
	for value.IsValid() && (value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer) && !isText(value) {
		value = value.Elem()
	}
	if !value.IsValid() {
		return nil
	}
	if isText(value) {
		return v.text(value, path)
	}
	switch value.Kind() {
	case reflect.Map:
		return v.group(value, path)
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return v.checked(fmt.Sprintf("%s", value.Interface()), path)
		}
		list := make([]any, 0, min(value.Len(), maxValues))
		for i := range value.Len() {
			if list = append(list, v.plain(value.Index(i), item(path, i))); len(v.faults) > 0 {
				return nil // One fault is enough: of a large list each item may have one.
			}
		}
		return list
	default:
		return v.single(value, path)
	}
}

// single returns a value that is neither a map nor a list.
func (v *values) single(value reflect.Value, path []string) any {
	switch value.Kind() {
	case reflect.String:
		return v.checked(value.String(), path)
	case reflect.Bool:
		return value.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return int(value.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return value.Uint()
	case reflect.Float32, reflect.Float64:
		if f := value.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return v.fault(path, "is not a number")
	default:
		return v.fault(path, fmt.Sprintf("is a %v, of which no setting can be", value.Type()))
	}
}

// group returns a map, whose keys are text.
func (v *values) group(value reflect.Value, path []string) any {
	group := make(map[string]any, min(value.Len(), maxValues))
	for _, key := range sortedMapKeys(value) {
		name := key
		for name.Kind() == reflect.Interface {
			name = name.Elem()
		}
		if name.Kind() != reflect.String {
			return v.fault(path, "has keys that are no text")
		}
		if reason := badKey(name.String()); reason != "" || !utf8.ValidString(name.String()) {
			return v.fault(path, fmt.Sprintf("the key %q is empty, holds a control character or is not UTF-8", short(name.String())))
		}
		group[name.String()] = v.plain(value.MapIndex(key), extend(path, name.String()))
	}
	return group
}

// sortedMapKeys returns the keys of a map in the order of their texts, so that the same values give the same faults.
func sortedMapKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return keys
}

// isText reports whether a value writes itself as text, which a duration does too.
func isText(value reflect.Value) bool {
	if !value.CanInterface() || value.Kind() == reflect.Pointer && value.IsNil() {
		return false
	}
	switch value.Interface().(type) {
	case time.Duration, encoding.TextMarshaler:
		return value.Kind() != reflect.Interface
	default:
		return false
	}
}

// text returns the text of a value for which isText is true.
func (v *values) text(value reflect.Value, path []string) any {
	if d, ok := reflect.TypeAssert[time.Duration](value); ok {
		return d.String()
	}
	marshaler, ok := reflect.TypeAssert[encoding.TextMarshaler](value)
	if !ok {
		return nil
	}
	text, err := marshaler.MarshalText()
	if err != nil {
		return v.fault(path, oneLine(err.Error()))
	}
	return v.checked(string(text), path)
}

// checked returns a text that a setting could have.
func (v *values) checked(text string, path []string) any {
	switch {
	case !utf8.ValidString(text):
		return v.fault(path, "is not UTF-8 text")
	case len(text) > maxSizeBytes:
		return v.fault(path, fmt.Sprintf("the value is larger than %d bytes", maxSizeBytes))
	}
	return text
}

// Koanf returns the provider of what an instance of koanf has, under a name for faults. All of that counts as settings,
// so that what is no setting is refused: give a part of a larger configuration, such as k.Cut("cluster").
func Koanf(name string, k *koanf.Koanf) Provider {
	if k == nil {
		return Provider{Name: name}
	}
	return Provider{Name: name, Source: instance{k}}
}

// instance is an instance of koanf as a provider.
type instance struct{ *koanf.Koanf }

// ReadBytes returns an error: an instance has maps.
func (instance) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// Read returns a copy of what the instance has.
func (i instance) Read() (map[string]any, error) { return i.Raw(), nil }
