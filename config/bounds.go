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
	// Text is the bound as it is written in the tag: "4096", "0.5", "10ms". Empty: the
	// range has no bound on this side.
	Text string
	// Value is the bound as a number; for a duration, in nanoseconds.
	Value float64
	// Open says that the bound itself is not in the range.
	Open bool
}

// Range is the range of the values of a setting.
type Range struct {
	Min, Max Bound
}

// ParseRange parses the tag range: two bounds around two dots. Either may be absent,
// and a bound with > or < before it is not itself in the range:
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

// String returns the range in words: "from 1 to 65536", "above 0, up to 1". It is
// empty for the range without bounds.
func (r Range) String() string {
	low, high := "", ""
	switch {
	case r.Min.Text == "":
	case r.Min.Open:
		low = "above " + r.Min.Text
	case r.Max.Text == "":
		low = "at least " + r.Min.Text
	default:
		low = "from " + r.Min.Text
	}
	switch {
	case r.Max.Text == "":
		return low
	case r.Max.Open:
		high = "below " + r.Max.Text
	case low == "":
		high = "at most " + r.Max.Text
	case !r.Min.Open:
		return low + " to " + r.Max.Text
	default:
		high = "up to " + r.Max.Text
	}
	if low == "" {
		return high
	}
	return low + ", " + high
}
