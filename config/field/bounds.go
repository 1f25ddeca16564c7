// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The range of a setting is stated once, in the tag of its field: [Ranges] holds values to it, and pages and schemas
// are made of it.

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

// DurationPattern is the regular expression of the texts that [time.ParseDuration] reads, for schemas; it does not see
// what is beyond the range of a [time.Duration].
const DurationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// Keywords returns the bounds of a range of numbers as keywords of JSON Schema, such as minimum and exclusiveMaximum.
func (r Range) Keywords() map[string]any {
	keywords := map[string]any{}
	add := func(b Bound, closed, open string) {
		switch {
		case b.Text == "":
		case b.Open:
			keywords[open] = json.Number(b.Text)
		default:
			keywords[closed] = json.Number(b.Text)
		}
	}
	add(r.Min, "minimum", "exclusiveMinimum")
	add(r.Max, "maximum", "exclusiveMaximum")
	return keywords
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

// Ranges returns a fault for each field of a struct whose value is not in the range of its tag: fields of whole
// numbers, other numbers and durations, and maps to them, each of whose values is to be in the range. Other fields,
// with those of structs in it, are left out. The key of a field is that of its tag koanf. It panics on a tag that is
// no range.
func Ranges(settings any) error {
	var faults Faults
	v := reflect.ValueOf(settings)
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		text, is := tag.Lookup("range")
		if !is {
			continue
		}
		r, err := ParseRange(text)
		if err != nil {
			panic(err)
		}
		key, _, _ := strings.Cut(tag.Get("koanf"), ",")
		f := v.Field(i)
		if f.Kind() != reflect.Map {
			faults.Refuse(!r.has(f), key, "%v is not %v", f.Interface(), r)
			continue
		}
		of := f.MapKeys()
		slices.SortFunc(of, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range of {
			faults.Refuse(!r.has(f.MapIndex(name)), key+"."+name.String(), "%v is not %v", f.MapIndex(name).Interface(), r)
		}
	}
	return faults.Err()
}

// has reports whether a value that is a number or a duration is in the range; what is no number is not.
func (r Range) has(v reflect.Value) bool {
	switch {
	case v.CanInt():
		return r.Has(float64(v.Int()))
	case v.CanUint():
		return r.Has(float64(v.Uint()))
	default:
		return r.Has(v.Float())
	}
}

// Has reports whether a number, or a duration in nanoseconds, is in the range; NaN is in none that has a bound.
func (r Range) Has(n float64) bool {
	above := r.Min.Text == "" || n > r.Min.Value || n == r.Min.Value && !r.Min.Open
	below := r.Max.Text == "" || n < r.Max.Value || n == r.Max.Value && !r.Max.Open
	return above && below
}
