// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package configtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// entries is a format of lines "key: value" in the notation of JSON, with a fault of its
// own.
type entries struct {
	fault string
	reads *atomic.Int64
	again chan struct{} // Closed when the second reading begins.
}

func (f entries) Extension() string {
	switch f.fault {
	case "built in":
		return ".yml"
	case "no dot":
		return "entries"
	default:
		return ".entries"
	}
}

// Parse reads each line as an entry of one object.
func (f entries) Parse(text []byte, places *config.Places) map[string]any {
	reads := f.reads.Add(1)
	if f.fault == "one reading at a time" && reads == 1 {
		<-f.again
		return nil
	}
	if reads == 2 {
		close(f.again)
	}
	tree, offset := map[string]any{}, 0
	for line := range bytes.Lines(text) {
		at := places.Line(offset)
		offset += len(line)
		one := map[string]any{}
		decoder := json.NewDecoder(strings.NewReader("{" + string(line) + "}"))
		decoder.UseNumber()
		if err := decoder.Decode(&one); err != nil {
			if f.fault == "damage is told each time otherwise" {
				err = fmt.Errorf("%d: %w", reads, err)
			}
			places.Fault(at, nil, err.Error())
			return nil
		}
		if f.fault == "lines from 0" {
			at--
		}
		for key, value := range one {
			tree[key] = f.value(value, f.key(places, nil, key, at), places, at)
		}
		if places.Refused() {
			return nil
		}
	}
	if f.fault == "loses a key" && len(tree) > 1 {
		delete(tree, slices.Sorted(maps.Keys(tree))[0])
	}
	return tree
}

// key records a key.
func (f entries) key(places *config.Places, path []string, key string, line int) []string {
	if f.fault == "any depth" {
		path = nil
	}
	if f.fault == "any number" {
		return []string{key}
	}
	return places.Key(path, key, line)
}

// value returns a value with numbers as the loader wants them.
func (f entries) value(value any, path []string, places *config.Places, line int) any {
	if path == nil {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			v[key] = f.value(one, f.key(places, path, key, line), places, line)
		}
	case []any:
		for i, one := range v {
			at := places.Item(path, i)
			if len(at) > config.MaxDepth && f.fault != "any depth" {
				places.Fault(line, path[:1], "is nested too deep")
				return nil
			}
			if f.fault != "any number" {
				places.Note(at, line)
			}
			v[i] = f.value(one, at, places, line)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil && f.fault != "numbers are parts" {
			return int(n)
		}
		n, _ := v.Float64()
		return n
	}
	return value
}

func (f entries) write(tree map[string]any) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		b.WriteString(Entry(key, tree[key], ": ") + "\n")
	}
	return b.String()
}

// witness is a testing.TB that keeps a failure instead of reporting it.
type witness struct {
	testing.TB

	failed atomic.Bool
}

func (w *witness) Helper()               {}
func (w *witness) Errorf(string, ...any) { w.failed.Store(true) }

func (w *witness) Fatalf(string, ...any) {
	w.failed.Store(true)
	runtime.Goexit()
}

// Each fault of a format is found by the part that is there for it, and the format without
// a fault passes all.
func TestSuiteFindsFaults(t *testing.T) {
	for fault, by := range map[string]string{
		"":                                   "",
		"built in":                           "the end of the names is its own",
		"no dot":                             "the end of the names is its own",
		"loses a key":                        "a tree is read as in JSON",
		"numbers are parts":                  "a tree is read as in JSON",
		"one reading at a time":              "goroutines read at the same time",
		"lines from 0":                       "a fault is shown in its line",
		"any depth":                          "a tree that is too deep is refused",
		"any number":                         "a tree with too many keys is refused",
		"damage is told each time otherwise": "a damaged text is a list of faults",
	} {
		t.Run(fault, func(t *testing.T) {
			f := entries{fault, new(atomic.Int64), make(chan struct{})}
			for _, part := range parts() {
				if by != "" && by != part.name {
					continue
				}
				w := &witness{TB: t}
				done := make(chan struct{})
				// The goroutine ends with the part, or with its Goexit; the test waits.
				go func() {
					defer close(done)
					part.check(w, subject{f, f.write})
				}()
				<-done
				require.Equal(t, by != "", w.failed.Load(), "%s", part.name)
			}
		})
	}
}
