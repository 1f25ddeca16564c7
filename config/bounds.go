// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bound is one end of a [Range].
type Bound struct {
	// Text is the bound as it stands in the tag: "4096", "0.5", "10ms". Empty: the
	// range has no end on this side.
	Text string
	// Value is the bound as a number; of a duration, in nanoseconds.
	Value float64
	// Open says that the bound itself is not in the range.
	Open bool
}

// Range is the range of the values of a setting.
type Range struct {
	Min, Max Bound
}

// ParseRange reads the form of the tag range: two bounds around two dots. Either
// may be absent, and one with > or < before it is not itself in the range:
//
//	1..65536    10ms..    >0..1    1..<300
//
// An empty text is the range without bounds.
func ParseRange(text string) (Range, error) {
	if text == "" {
		return Range{}, nil
	}
	low, high, ok := strings.Cut(text, "..")
	if !ok || low == "" && high == "" {
		return Range{}, fmt.Errorf("%q is not a range, write low..high", text)
	}
	var r Range
	var err error
	if r.Min, err = parseBound(low, ">"); err != nil {
		return Range{}, err
	}
	if r.Max, err = parseBound(high, "<"); err != nil {
		return Range{}, err
	}
	if r.Min.Text != "" && r.Max.Text != "" && r.Min.Value > r.Max.Value {
		return Range{}, fmt.Errorf("%q is not a range, its ends are the wrong way round", text)
	}
	return r, nil
}

func parseBound(text, open string) (Bound, error) {
	if text == "" {
		return Bound{}, nil
	}
	b := Bound{Text: strings.TrimPrefix(text, open), Open: strings.HasPrefix(text, open)}
	if d, err := time.ParseDuration(b.Text); err == nil {
		b.Value = float64(d)
		return b, nil
	}
	var err error
	if b.Value, err = strconv.ParseFloat(b.Text, 64); err != nil {
		return Bound{}, fmt.Errorf("%q is neither a number nor a duration", text)
	}
	return b, nil
}

// String says the range in words: "from 1 to 65536", "above 0, up to 1". It is
// empty for the range without bounds.
func (r Range) String() string {
	closed, open := "from ", "above "
	if r.Max.Text == "" {
		closed = "at least "
	}
	var parts []string
	if r.Min.Text != "" {
		parts = append(parts, word(r.Min, closed, open))
	}
	if r.Max.Text != "" {
		closed = "at most "
		if r.Min.Text != "" {
			closed = "to "
			if r.Min.Open {
				closed = "up to "
			}
		}
		parts = append(parts, word(r.Max, closed, "below "))
	}
	if len(parts) == 2 && r.Min.Open != r.Max.Open {
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts, " ")
}

func word(b Bound, closed, open string) string {
	if b.Open {
		return open + b.Text
	}
	return closed + b.Text
}
