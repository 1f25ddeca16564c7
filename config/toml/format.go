// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package toml

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/quorate/quorate/config"
)

// TOML. The walker goes over the expressions of a document, which give the lines, and
// records keys and faults; the library then gives the values. Before both, the depth
// of brackets is bounded. A fault of the library without a position is located at the
// end.

// format reads TOML. It has no state.
type format struct{}

var _ config.Format = format{}

// Format returns TOML, for files whose names end in ".toml".
func Format() config.Format { return format{} }

// Extension returns the end of the names of files.
func (format) Extension() string { return ".toml" }

// Parse reads one document. The lines come from the expressions; the values, and which
// tables contradict one another, from the library.
func (format) Parse(text []byte, places *config.Places) map[string]any {
	if offset := nestedTooDeep(text); offset >= 0 {
		places.Fault(places.Line(offset), nil, fmt.Sprintf("not valid TOML: a value is nested deeper than %d levels", config.MaxDepth))
		return nil
	}
	w := walker{Places: places, data: text, owners: map[string]int{}, items: map[string]int{}}
	w.parser.Reset(text)
	for !w.Full() && w.parser.NextExpression() {
		w.expression(w.parser.Expression())
	}
	if bad, ok := errors.AsType[*unstable.ParserError](w.parser.Error()); ok {
		w.Fault(w.Line(int(w.parser.Range(bad.Highlight).Offset)), nil, reason(bad))
	}
	if w.Refused() { // The library must not see keys of unbounded depth.
		return nil
	}
	tree, err := unmarshal(text)
	if err != nil {
		w.Fault(w.faultLine(err), nil, reason(err))
		return nil
	}
	if len(w.starts) == 0 {
		return nil
	}
	return native(tree).(map[string]any) // A map stays one.
}

// unmarshal reads a text with the library.
func unmarshal(text []byte) (tree map[string]any, err error) {
	err = toml.Unmarshal(text, &tree)
	return tree, err
}

// reason returns an error of the library as the reason of a fault.
func reason(err error) string { return "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ") }

// native returns a value in which whole numbers have the type that the other formats
// give them.
func native(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			v[key] = native(one)
		}
	case []any:
		for i, one := range v {
			v[i] = native(one)
		}
	case int64:
		if n := int(v); int64(n) == v {
			return n
		}
	}
	return value
}

// walker collects lines and faults.
type walker struct {
	*config.Places

	data   []byte
	parser unstable.Parser

	table  []string       // the path of the table that the expressions stand in
	starts []int          // the offset of each expression
	owners map[string]int // the line of each value and each table that has been written
	items  map[string]int // the number of items of each array of tables
}

// expression notes one line of the form key = value, or the head of a table.
func (w *walker) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.KeyValue:
		w.starts = append(w.starts, keyOffset(n))
		w.keyValue(n, w.table)
	case unstable.Table, unstable.ArrayTable:
		w.starts = append(w.starts, keyOffset(n))
		w.head(n)
	default: // A comment.
	}
}

// keyOffset returns where the key of an expression begins.
func keyOffset(n *unstable.Node) int {
	key := n.Key()
	key.Next()
	return int(key.Node().Raw.Offset)
}

// head enters a table. A table under an array of tables is in its last item.
func (w *walker) head(n *unstable.Node) {
	var path []string
	line := w.Line(keyOffset(n))
	for key := n.Key(); key.Next(); {
		if len(path) > 0 {
			path = w.inLastItem(path)
		}
		if path = w.Key(path, string(key.Node().Data), line); path == nil {
			w.table = []string{"?"} // The fault is noted; what follows has to stand somewhere.
			return
		}
	}
	joined := strings.Join(path, separator)
	if n.Kind == unstable.ArrayTable {
		path = w.Item(path, w.items[joined])
		w.items[joined]++
		joined = strings.Join(path, separator)
	}
	if first, found := w.owners[joined]; found {
		w.Twice(line, path, first)
	}
	w.owners[joined] = line
	w.Note(path, line)
	w.table = path
}

// inLastItem returns path, or the path of its last item when it is an array of
// tables.
func (w *walker) inLastItem(path []string) []string {
	if n := w.items[strings.Join(path, separator)]; n > 0 {
		return w.Item(path, n-1)
	}
	return path
}

// keyValue notes a key with its value, in a table or in braces.
func (w *walker) keyValue(n *unstable.Node, path []string) {
	line := w.Line(keyOffset(n))
	for key := n.Key(); key.Next(); {
		if path = w.Key(path, string(key.Node().Data), line); path == nil {
			return
		}
	}
	joined := strings.Join(path, separator)
	if first, found := w.owners[joined]; found {
		w.Twice(line, path, first)
		return
	}
	w.owners[joined] = line
	w.value(n.Value(), path, line)
}

// value notes what stands in brackets or braces. Dates have no setting, and
// plain Go has no time without a day.
func (w *walker) value(n *unstable.Node, path []string, line int) {
	if n.Raw.Length > 0 {
		line = w.Line(int(n.Raw.Offset))
	}
	switch n.Kind {
	case unstable.Array:
		children := n.Children()
		for i := 0; !w.Full() && children.Next(); {
			child := children.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			at := w.Item(path, i)
			if child.Raw.Length > 0 {
				line = w.Line(int(child.Raw.Offset))
			}
			w.Note(at, line)
			w.value(child, at, line)
			i++
		}
	case unstable.InlineTable:
		for children := n.Children(); children.Next(); {
			if child := children.Node(); child.Kind == unstable.KeyValue {
				w.keyValue(child, path)
			}
		}
	case unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		w.Fault(line, path, "must not be a date or a time: if it is text, put it in quotes")
	default:
	}
}

// faultLine returns the line of an error of the library, 0 if it cannot be
// told. The library says of its errors of form where they are; of tables that
// contradict one another it does not. The expression that brought the fault is
// then the first with which the text up to its end is refused.
func (w *walker) faultLine(err error) int {
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := decode.Position()
		return line
	}
	i := sort.Search(len(w.starts)-1, func(i int) bool {
		_, err := unmarshal(w.data[:w.lineStart(w.starts[i+1])])
		return err != nil
	})
	if i < 0 || i >= len(w.starts) {
		return 0
	}
	return w.Line(w.starts[i])
}

// lineStart returns where the line of an offset begins.
func (w *walker) lineStart(offset int) int { return bytes.LastIndexByte(w.data[:offset], '\n') + 1 }

// nestedTooDeep returns the offset at which brackets and braces are nested too
// deep, or -1. The library reads them by recursion, without a bound, and a stack
// that is used up ends the process; so they are counted first. What the count
// takes for text or comment is what the library does: both read from the
// beginning, and the library stops at the first fault.
func nestedTooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '#':
			i = skipTo(data, i, "\n")
		case '"', '\'':
			i = skipString(data, i, c)
		case '[', '{':
			if depth++; depth > config.MaxDepth {
				return i
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return -1
}

// skipString returns the offset of the last byte of the string that begins at i.
func skipString(data []byte, i int, quote byte) int {
	if long := strings.Repeat(string(quote), 3); bytes.HasPrefix(data[i:], []byte(long)) {
		for i += len(long); i < len(data); i++ {
			switch {
			case data[i] == '\\' && quote == '"':
				i++
			case bytes.HasPrefix(data[i:], []byte(long)):
				end := i + len(long) // Up to two quotes more belong to the text.
				return end + len(data[end:]) - len(bytes.TrimLeft(data[end:], string(quote))) - 1
			}
		}
		return i
	}
	for i++; i < len(data) && data[i] != quote && data[i] != '\n'; i++ {
		if data[i] == '\\' && quote == '"' {
			i++
		}
	}
	return i
}

// skipTo returns the offset of the end of text at or after i, or of the end of
// data.
func skipTo(data []byte, i int, text string) int {
	if n := bytes.Index(data[i:], []byte(text)); n >= 0 {
		return i + n
	}
	return len(data)
}

// separator joins the parts of a path. No key holds it: control characters are refused.
const separator = "\x1f"
