// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Values as text, for people who look at them: numbers as they are, sets as [a b], maps as
// {a: 1, b: 2}. Strings are quoted. The text is no encoding.

// String returns the sum.
func (g GCounter) String() string { return strconv.FormatUint(g.Value(), 10) }

// String returns the sum.
func (p PNCounter) String() string { return strconv.FormatInt(p.Value(), 10) }

// String returns true or false.
func (f Flag) String() string { return strconv.FormatBool(f.Enabled()) }

// String returns the elements.
func (g GSet[E]) String() string { return textOfSet(g.All()) }

// String returns the elements.
func (s ORSet[E]) String() string { return textOfSet(s.All()) }

// String returns the values that were written concurrently, mostly one.
func (m MVRegister[V]) String() string { return textOfSet(slices.Values(m.Values())) }

// String returns the value, "" if there is none.
func (l LWWRegister[V]) String() string {
	v, ok := l.Value()
	if !ok {
		return ""
	}
	return textOf(v)
}

// String returns keys and values.
func (m LWWMap[K, V]) String() string { return textOfMap(m.All()) }

// String returns keys and values.
func (m ORMap[K, V]) String() string { return textOfMap(m.All()) }

// String returns the keys, each as often as it has elements, and the elements.
func (m ORMultiMap[K, E]) String() string { return textOfMap(m.All()) }

// String returns keys and sums.
func (m PNCounterMap[K]) String() string { return textOfMap(m.All()) }

// String returns origins and counts.
func (v VersionVector) String() string { return textOfMap(v.All()) }

func textOfSet[E any](all iter.Seq[E]) string {
	var b strings.Builder
	b.WriteByte('[')
	for e := range all {
		if b.Len() > 1 {
			b.WriteByte(' ')
		}
		b.WriteString(textOf(e))
	}
	b.WriteByte(']')
	return b.String()
}

func textOfMap[K, V any](all iter.Seq2[K, V]) string {
	var b strings.Builder
	b.WriteByte('{')
	for k, v := range all {
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		b.WriteString(textOf(k) + ": " + textOf(v))
	}
	b.WriteByte('}')
	return b.String()
}

// textOf returns an element as text.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []byte:
		return strconv.Quote(string(v))
	default:
		return fmt.Sprint(v)
	}
}
