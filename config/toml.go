// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"sort"
	"strings"

	tomlparser "github.com/knadh/koanf/parsers/toml/v2"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads one TOML document. The expressions give the places, the
// library gives the values and knows which tables contradict one another.
func parseTOML(name string, data []byte) (map[string]any, map[string]int, Errors) {
	fault := func(line int, reason string) Errors {
		return Errors{{File: name, Line: line, Reason: reason, Err: ErrSyntax}}
	}
	breaks := lineBreaks(data)
	if offset := nestedTooDeep(data); offset >= 0 {
		return nil, nil, fault(breaks.line(offset), "not valid TOML: a value "+tooDeep())
	}
	w := tomlWalker{
		places: places{name: name, lines: map[string]int{}}, data: data, breaks: breaks, owners: map[string]int{}, items: map[string]int{},
	}
	w.parser.Reset(data)
	for !w.full && w.parser.NextExpression() {
		w.expression(w.parser.Expression())
	}
	if bad, ok := errors.AsType[*unstable.ParserError](w.parser.Error()); ok {
		w.fault(breaks.line(int(w.parser.Range(bad.Highlight).Offset)), nil, tomlReason(bad))
	}
	if len(w.faults) > 0 { // The library must not see keys of unbounded depth.
		return nil, nil, w.faults
	}
	tree, err := tomlparser.Parser().Unmarshal(data)
	if err != nil {
		return nil, nil, fault(w.faultLine(err), tomlReason(err))
	}
	if len(w.starts) == 0 {
		return nil, nil, nil
	}
	return native(tree).(map[string]any), w.lines, nil //nolint:forcetypeassert // A map stays one.
}

// tomlReason makes an error of the library a reason.
func tomlReason(err error) string {
	return "not valid TOML: " + oneLine(strings.TrimPrefix(err.Error(), "toml: "))
}

// native gives whole numbers the type that the other formats give them.
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

// tomlWalker collects places and faults.
type tomlWalker struct {
	places

	data   []byte
	breaks breaks
	parser unstable.Parser

	table  []string       // the path of the table that the expressions stand in
	starts []int          // the offset of each expression
	owners map[string]int // the line of each value and each table that has been written
	items  map[string]int // the number of items of each array of tables
}

// expression notes one line of the form key = value, or the head of a table.
func (w *tomlWalker) expression(n *unstable.Node) {
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
func (w *tomlWalker) head(n *unstable.Node) {
	var path []string
	line := w.breaks.line(keyOffset(n))
	for key := n.Key(); key.Next(); {
		if len(path) > 0 {
			path = w.inLastItem(path)
		}
		if path = w.key(path, key.Node(), line); path == nil {
			w.table = []string{"?"} // The fault is noted; what follows has to stand somewhere.
			return
		}
	}
	joined := strings.Join(path, separator)
	if n.Kind == unstable.ArrayTable {
		path = item(path, w.items[joined])
		w.items[joined]++
		joined = strings.Join(path, separator)
	}
	if first, found := w.owners[joined]; found {
		w.fault(line, path, twice(first))
	}
	w.owners[joined] = line
	w.note(path, line)
	w.table = path
}

// inLastItem returns path, or the path of its last item when it is an array of
// tables.
func (w *tomlWalker) inLastItem(path []string) []string {
	if n := w.items[strings.Join(path, separator)]; n > 0 {
		return item(path, n-1)
	}
	return path
}

// key appends one part to a path, and notes its line if it is new. It returns
// nil for a part that cannot be a key.
func (w *tomlWalker) key(path []string, n *unstable.Node, line int) []string {
	if reason := badKey(string(n.Data)); reason != "" {
		w.fault(line, path, reason)
		return nil
	}
	if len(path) > depthMax {
		w.fault(line, path[:1], tooDeep())
		return nil
	}
	path = extend(path, string(n.Data))
	w.note(path, line)
	return path
}

// keyValue notes a key with its value, in a table or in braces.
func (w *tomlWalker) keyValue(n *unstable.Node, path []string) {
	line := w.breaks.line(keyOffset(n))
	for key := n.Key(); key.Next(); {
		if path = w.key(path, key.Node(), line); path == nil {
			return
		}
	}
	joined := strings.Join(path, separator)
	if first, found := w.owners[joined]; found {
		w.fault(line, path, twice(first))
		return
	}
	w.owners[joined] = line
	w.value(n.Value(), path, line)
}

// value notes what stands in brackets or braces. Dates have no setting, and
// plain Go has no time without a day.
func (w *tomlWalker) value(n *unstable.Node, path []string, line int) {
	if n.Raw.Length > 0 {
		line = w.breaks.line(int(n.Raw.Offset))
	}
	switch n.Kind {
	case unstable.Array:
		children := n.Children()
		for i := 0; !w.full && children.Next(); {
			child := children.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			at := item(path, i)
			if child.Raw.Length > 0 {
				line = w.breaks.line(int(child.Raw.Offset))
			}
			w.note(at, line)
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
		w.fault(line, path, "must not be a date or a time: if it is text, put it in quotes")
	default:
	}
}

// faultLine returns the line of an error of the library, 0 if it cannot be
// told. The library says of its errors of form where they are; of tables that
// contradict one another it does not. The expression that brought the fault is
// then the first with which the text up to its end is refused.
func (w *tomlWalker) faultLine(err error) int {
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := decode.Position()
		return line
	}
	i := sort.Search(len(w.starts)-1, func(i int) bool {
		_, err := tomlparser.Parser().Unmarshal(w.data[:w.lineStart(w.starts[i+1])])
		return err != nil
	})
	if i < 0 || i >= len(w.starts) {
		return 0
	}
	return w.breaks.line(w.starts[i])
}

// lineStart returns where the line of an offset begins.
func (w *tomlWalker) lineStart(offset int) int { return bytes.LastIndexByte(w.data[:offset], '\n') + 1 }

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
			if depth++; depth > depthMax {
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
