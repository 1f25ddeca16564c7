// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package field_test

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/field"
)

func TestRangesAreReadAndSaidInWords(t *testing.T) {
	for text, want := range map[string]string{
		"":          "",
		"1..65536":  "from 1 to 65536",
		"10ms..":    "at least 10ms",
		">0..":      "above 0",
		"..5":       "at most 5",
		"..<5":      "below 5",
		">0..1":     "above 0, up to 1",
		"1..<1000":  "from 1, below 1000",
		">0..<1":    "above 0, below 1",
		"0.5..1e3":  "from 0.5 to 1e3",
		"1ms..1h":   "from 1ms to 1h",
		">-1..-0.5": "above -1, up to -0.5",
	} {
		r, err := field.ParseRange(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r.String(), text)
	}
	r, err := field.ParseRange(">1ms..2s")
	require.NoError(t, err)
	require.Equal(t, field.Range{
		Min: field.Bound{Text: "1ms", Value: 1e6, Open: true}, Max: field.Bound{Text: "2s", Value: 2e9},
	}, r)
	for _, bad := range []string{"..", "1", "1-2", "a..b", "1..x", "2..1", "<1..2"} {
		_, err := field.ParseRange(bad)
		require.Error(t, err, bad)
	}
}

func TestValuesAreHeldToTheirRanges(t *testing.T) {
	type nested struct {
		Size int `koanf:"size" range:"1.."`
	}
	type settings struct {
		Text  string         `koanf:"text"`
		Part  float64        `koanf:"part" range:">0..<1"`
		Limit uint16         `koanf:"limit" range:"2..9"`
		Wait  time.Duration  `koanf:"wait,omitempty" range:"1ms..8760h"`
		Of    map[string]int `koanf:"of" range:"1.."`
		In    nested         `koanf:"in"`
	}
	good := settings{Part: 0.5, Limit: 9, Wait: time.Millisecond, Of: map[string]int{"a": 1}}
	require.NoError(t, field.Ranges(good))
	for want, bad := range map[string]func(c *settings){
		"part: 0 is not above 0, below 1":                       func(c *settings) { c.Part = 0 },
		"part: NaN is not above 0, below 1":                     func(c *settings) { c.Part = math.NaN() },
		"part: 1 is not above 0, below 1":                       func(c *settings) { c.Part = 1 },
		"limit: 10 is not from 2 to 9":                          func(c *settings) { c.Limit = 10 },
		"limit: 1 is not from 2 to 9":                           func(c *settings) { c.Limit = 1 },
		"wait: 8760h0m1s is not from 1ms to 8760h":              func(c *settings) { c.Wait = 8760*time.Hour + time.Second },
		"wait: 999.999µs is not from 1ms to 8760h":              func(c *settings) { c.Wait = time.Millisecond - 1 },
		"of.a: 0 is not at least 1\nof.c: -1 is not at least 1": func(c *settings) { c.Of = map[string]int{"c": -1, "a": 0, "b": 7} },
	} {
		c := good
		bad(&c)
		require.EqualError(t, field.Ranges(c), want)
	}
	require.Panics(t, func() {
		_ = field.Ranges(struct {
			N int `range:"1"`
		}{})
	})
}

// The pattern of durations takes a text exactly if package time reads it.
func TestThePatternOfDurationsIsThatOfPackageTime(t *testing.T) {
	pattern := regexp.MustCompile(field.DurationPattern)
	for _, text := range []string{
		"0", "-0", "+0", "3s", "-1.5h", "1h30m", ".5s", "1.s", "1us", "1µs", "1μs", "+1ns",
		"", "00", "3", "s", ".s", "3 s", "3d", "3S", "--3s", "1h-3m", "3s\n", "0x3s",
	} {
		_, err := time.ParseDuration(text)
		require.Equal(t, err == nil, pattern.MatchString(text), "%q", text)
	}
}

func TestRangesAreKeywordsOfSchemas(t *testing.T) {
	for text, want := range map[string]string{"": "{}", "1..": `{"minimum":1}`, ">0..<1e3": `{"exclusiveMaximum":1e3,"exclusiveMinimum":0}`, "..0.5": `{"maximum":0.5}`} {
		r, err := field.ParseRange(text)
		require.NoError(t, err)
		got, err := json.Marshal(r.Keywords())
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}
