// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// parseJSON reads one JSON document. It walks over the tokens itself, because decoding
// into a map would keep the last of two equal keys, lose the lines, and make every
// number a floating-point one.
func parseJSON(name string, data []byte) (map[string]any, map[string]int, Errors) {
	fault := func(line int, reason string) Errors {
		return Errors{{File: name, Line: line, Reason: reason, Err: ErrSyntax}}
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 || string(text) == "null" {
		return nil, nil, nil
	}
	breaks := lineBreaks(data)
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil { // After this check the tokens below are well-formed.
		line := 0
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			line = breaks.line(int(bad.Offset) - 1)
		}
		return nil, nil, fault(line, "not valid JSON: "+oneLine(err.Error()))
	}
	if text[0] != '{' {
		return nil, nil, fault(breaks.line(bytes.IndexByte(data, text[0])), `the top of the file must be an object of sections, such as {"node": {}}`)
	}
	w := jsonWalker{Places{name: name, breaks: breaks, lines: map[string]int{}}, json.NewDecoder(bytes.NewReader(data))}
	w.tokens.UseNumber()
	tree, _ := w.value(nil).(map[string]any)
	if len(w.faults) > 0 {
		return nil, nil, w.faults
	}
	return tree, w.lines, nil
}

// jsonWalker collects values, lines and faults. Its text is well-formed, so that no
// token is missing.
type jsonWalker struct {
	Places

	tokens *json.Decoder
}

// here returns the line of the last token; a token is never longer than a line.
func (w *jsonWalker) here() int { return w.Line(int(w.tokens.InputOffset()) - 1) }

// next returns the next token; nil for null and at the end.
func (w *jsonWalker) next() json.Token {
	token, err := w.tokens.Token()
	if err != nil {
		return nil
	}
	return token
}

// value reads the value at path and returns it as plain Go.
func (w *jsonWalker) value(path []string) any {
	token := w.next()
	line := w.here()
	if len(path) > 0 {
		w.Note(path, line) // An item of a list; keys are noted before.
	}
	switch token := token.(type) {
	case json.Delim:
		if len(path) > MaxDepth {
			w.Fault(line, path[:1], tooDeep())
			w.skip()
			return nil
		}
		if token == '[' {
			return w.array(path)
		}
		return w.object(path)
	case json.Number:
		n, ok := number(token)
		if !ok {
			w.Fault(line, path, "the number "+short(token.String())+" is out of range")
		}
		return n
	default:
		return token
	}
}

// skip reads to the end of the object or array that has just begun.
func (w *jsonWalker) skip() {
	for depth := 1; depth > 0; {
		switch w.next() {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

func (w *jsonWalker) array(path []string) any {
	items := []any{}
	for !w.full && w.tokens.More() {
		items = append(items, w.value(item(path, len(items))))
	}
	w.next()
	return items
}

func (w *jsonWalker) object(path []string) any {
	tree, seen := map[string]any{}, map[string]int{}
	for !w.full && w.tokens.More() {
		key, _ := w.next().(string)
		line := w.here()
		at := extend(path, key)
		if reason := badKey(key); reason != "" {
			w.Fault(line, path, reason)
			w.value(path)
			continue
		}
		if first, found := seen[key]; found {
			w.Fault(line, at, twice(first))
			w.value(at)
			continue
		}
		seen[key] = line
		w.Note(at, line)
		tree[key] = w.value(at)
	}
	w.next()
	return tree
}

// number returns whole numbers as integers, as the other formats do.
func number(n json.Number) (value any, ok bool) {
	if i, err := strconv.Atoi(n.String()); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u, true
	}
	f, err := n.Float64()
	return f, err == nil
}
