// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Single values: setScalar converts a value from a file or a variable to the Go type
// of its setting, or returns in words why it does not fit. The functions for whole
// numbers go through sign and magnitude, so that no value of either format overflows
// on the way.

// setScalar stores one plain value. Text from the environment is parsed as the
// target's type; a value from a file must already have that type, because a number
// that was meant as text has often lost something in the file format (1.10 is 1.1). It
// returns why the value does not fit, or "".
func setScalar(target reflect.Value, value any, asText bool) string {
	if target.Type() == durationType {
		d, reason := duration(value)
		if reason == "" { // After a fault the default stays, so that later checks do not complain of a zero that is not in the file.
			target.SetInt(int64(d))
		}
		return reason
	}
	text, isText := value.(string)
	switch target.Kind() {
	case reflect.String:
		if !isText {
			return wrongType("text", value) + quoted(value)
		}
		target.SetString(text)
	case reflect.Bool:
		b, ok := value.(bool)
		if isText && asText {
			b, ok = text == "true", text == "true" || text == "false"
		}
		if !ok {
			return wrongType("true or false", value)
		}
		target.SetBool(b)
	case reflect.Float32, reflect.Float64:
		return setFloat(target, value, asText)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return setUint(target, value, asText)
	default:
		return setInt(target, value, asText)
	}
	return ""
}

// whole returns a value as sign and magnitude, which can hold every integer of YAML.
func whole(value any, asText bool) (negative bool, n uint64, ok bool) {
	switch v := value.(type) {
	case int:
		return signed(int64(v))
	case int64:
		return signed(v)
	case uint64:
		return false, v, true
	case uint:
		return false, uint64(v), true
	case string:
		if !asText {
			return false, 0, false
		}
		if i, err := strconv.ParseInt(v, 10, 64); err == nil {
			return signed(i)
		}
		u, err := strconv.ParseUint(v, 10, 64)
		return false, u, err == nil
	}
	return false, 0, false
}

func signed(v int64) (negative bool, n uint64, ok bool) {
	if v < 0 {
		return true, uint64(-(v + 1)) + 1, true
	}
	return false, uint64(v), true
}

func setInt(target reflect.Value, value any, asText bool) string {
	negative, n, ok := whole(value, asText)
	if !ok {
		return notWhole(value)
	}
	bits := target.Type().Bits()
	limit := uint64(1) << (bits - 1)
	if n > limit || !negative && n == limit {
		return fmt.Sprintf("%v is out of range, from -%d to %d", value, limit, limit-1)
	}
	if negative {
		target.SetInt(-int64(n-1) - 1)
	} else {
		target.SetInt(int64(n))
	}
	return ""
}

func setUint(target reflect.Value, value any, asText bool) string {
	negative, n, ok := whole(value, asText)
	if !ok {
		return notWhole(value)
	}
	limit := uint64(math.MaxUint64) >> (64 - target.Type().Bits())
	if negative || n > limit {
		return fmt.Sprintf("%v is out of range, from 0 to %d", value, limit)
	}
	target.SetUint(n)
	return ""
}

// notWhole says why a value is no whole number.
func notWhole(value any) string {
	if x, ok := value.(float64); ok && x == math.Trunc(x) && !math.IsInf(x, 0) {
		if math.Abs(x) >= 1<<53 {
			return fmt.Sprintf("%.0f is out of range", x)
		}
		return fmt.Sprintf("is not a whole number as written: write %.0f, without a point and an exponent", x)
	}
	return wrongType("a whole number", value) + unquoted(value)
}

// quoted is the cure for a text that is written as something else, empty for what no quotes make one.
func quoted(value any) string {
	switch value.(type) {
	case map[string]any, []any:
		return ""
	}
	return ", put it in quotes"
}

// unquoted is the cure for a number that is written as a text, empty for everything else.
func unquoted(value any) string {
	if text, ok := value.(string); ok && decimal.MatchString(text) && text != "" {
		return ", take the quotes away"
	}
	return ""
}

func setFloat(target reflect.Value, value any, asText bool) string {
	var x float64
	switch v := value.(type) {
	case float64:
		x = v
	case string:
		parsed, err := strconv.ParseFloat(v, 64)
		if !asText || err != nil {
			return wrongType("a number", value) + unquoted(value)
		}
		x = parsed
	default:
		negative, n, ok := whole(value, asText)
		if !ok {
			return wrongType("a number", value)
		}
		if x = float64(n); negative {
			x = -x
		}
	}
	// NaN would pass every comparison that a Validate method makes.
	if math.IsNaN(x) || math.IsInf(x, 0) || target.OverflowFloat(x) {
		return fmt.Sprintf("%v is not a finite number of this size", value)
	}
	target.SetFloat(x)
	return ""
}

// durationSyntax is what is a duration but for its size.
var durationSyntax = regexp.MustCompile(`^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

const durationForm = `write a number and a unit of ns, us, ms, s, m or h, such as "500ms" or "1h30m"`

// duration reads a Go duration. A bare number other than 0 is refused, since its
// unit would be a guess.
func duration(value any) (time.Duration, string) {
	text, ok := value.(string)
	if !ok {
		if _, n, isWhole := whole(value, false); isWhole && n == 0 {
			return 0, ""
		}
		return 0, fmt.Sprintf("%s is not a duration: %s", describe(value), durationForm)
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err == nil {
		return d, ""
	}
	if durationSyntax.MatchString(strings.TrimSpace(text)) {
		return 0, fmt.Sprintf("%q is too large: durations end at %v", short(text), time.Duration(math.MaxInt64).Truncate(time.Hour))
	}
	reason := fmt.Sprintf("%q is not a duration: %s", short(text), durationForm)
	if strings.ContainsAny(text, "dDwy") {
		reason += " (there is no unit for days, one day is 24h)"
	}
	return 0, reason
}

// wrongType says which type of value is needed, and which was found.
func wrongType(need string, value any) string {
	return fmt.Sprintf("must be %s, not %s", need, describe(value))
}

func describe(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf("the text %q", short(v))
	case bool:
		return fmt.Sprintf("the truth value %v", v)
	case int, int64, uint, uint64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any, map[any]any:
		return "a map"
	case time.Time:
		return "a date"
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("a %T", value)
}

// short cuts a long value, so that it does not fill the report.
func short(text string) string {
	const limit = 60
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
