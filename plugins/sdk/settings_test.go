// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/plugins"
)

// Settings arrive as JSON and are decoded into the type of a strategy: first those that are
// right, and defaults; then faults with their keys; last settings at random.

type retry struct {
	Interval time.Duration
	Max      uint8
}

type common struct {
	Zone string
}

type settings struct {
	common
	URL     string
	Timeout time.Duration
	Strict  bool
	Weight  float64
	Hosts   []string
	Limits  map[string]int
	Retry   retry
	Second  *retry
	Address netip.Addr
	Renamed int `json:"count,omitempty"`
	Skipped int `json:"-"`
}

func (s *settings) SetDefaults() { s.Timeout, s.Retry.Max = 2*time.Second, 3 }

// fault is an error with the key of a setting, as those of configurations are.
type fault struct{ key, text string }

func (f *fault) Error() string { return f.key + ": " + f.text }

func (f *fault) Field() string { return f.key }

func (s *settings) Validate() error {
	var errs []error
	if s.URL == "" {
		errs = append(errs, &fault{"url", "is empty"})
	}
	if s.Weight < 0 {
		errs = append(errs, errors.New("a weight is negative"))
	}
	return errors.Join(errs...)
}

func TestSettingsAreDecodedIntoTheirType(t *testing.T) {
	got, err := decodeSettings[settings]([]byte(`{
		"url": "http://w", "timeout": "3s", "strict": true, "weight": 1.5, "hosts": ["a", "b"], "limits": {"x": 1},
		"retry": {"interval": "500ms"}, "second": {"max": 255}, "address": "10.0.0.1", "count": 7, "zone": "z"}`))
	require.NoError(t, err)
	require.Equal(t, settings{
		common: common{Zone: "z"}, URL: "http://w", Timeout: 3 * time.Second, Strict: true, Weight: 1.5, Hosts: []string{"a", "b"},
		Limits: map[string]int{"x": 1}, Retry: retry{Interval: 500 * time.Millisecond, Max: 3}, Second: &retry{Max: 255},
		Address: netip.MustParseAddr("10.0.0.1"), Renamed: 7,
	}, got)
}

func TestDefaultsRemainWhereNothingIsGiven(t *testing.T) {
	got, err := decodeSettings[settings]([]byte(`{"url": "x"}`))
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, got.Timeout)
	none, err := decodeSettings[struct{}](nil)
	require.NoError(t, err)
	require.Zero(t, none)
}

// Each fault is named with its key, and all are reported together.
func TestFaultsOfSettingsNameTheirKeys(t *testing.T) {
	for text, want := range map[string]plugins.SettingErrors{
		`{"ur": 1}`:                      {{Key: "ur", Reason: "is unknown; there are address, count, hosts, limits, retry, second, strict, timeout, url, weight, zone"}},
		`{"retry": {"intervall": "1s"}}`: {{Key: "retry.intervall", Reason: "is unknown; there are interval, max"}},
		`{"timeout": 3}`:                 {{Key: "timeout", Reason: "3 is no duration such as 3s or 500ms"}},
		`{"timeout": "3 s"}`:             {{Key: "timeout", Reason: `"3 s" is no duration such as 3s or 500ms`}},
		`{"url": 1}`:                     {{Key: "url", Reason: "1 is no text"}},
		`{"url": null}`:                  {{Key: "url", Reason: "has no value"}},
		`{"strict": "yes"}`:              {{Key: "strict", Reason: `"yes" is no true or false`}},
		`{"weight": {}}`:                 {{Key: "weight", Reason: "{} is no number"}},
		`{"retry": {"max": 256}}`:        {{Key: "retry.max", Reason: "256 is no whole number of 8 bits from 0"}},
		`{"count": 1.5}`:                 {{Key: "count", Reason: "1.5 is no whole number of 64 bits"}},
		`{"hosts": "a"}`:                 {{Key: "hosts", Reason: `"a" is no list`}},
		`{"hosts": ["a", 2]}`:            {{Key: "hosts[1]", Reason: "2 is no text"}},
		`{"limits": [1]}`:                {{Key: "limits", Reason: "[1] is no group of names"}},
		`{"limits": {"x": true}}`:        {{Key: "limits.x", Reason: "true is no whole number of 64 bits"}},
		`{"retry": []}`:                  {{Key: "retry", Reason: "[] is no group of settings"}},
		`{"second": {"max": -1}}`:        {{Key: "second.max", Reason: "-1 is no whole number of 8 bits from 0"}},
		`{"address": 1}`:                 {{Key: "address", Reason: "1 is no text"}},
		`{"skipped": 1, "common": 1}`:    {{Key: "common"}, {Key: "skipped"}},
		`{"weight": -1}`:                 {{Key: "url", Reason: "is empty"}, {Reason: "a weight is negative"}},
		`{} {}`:                          {{Reason: "the settings are followed by something else"}},
		`{"timeout": "` + strings.Repeat("9", 200) + `"}`: {{Key: "timeout", Reason: `"` + strings.Repeat("9", 99) + "... is no duration such as 3s or 500ms"}},
	} {
		_, err := decodeSettings[settings]([]byte(text))
		var got plugins.SettingErrors
		require.ErrorAs(t, err, &got, text)
		require.Len(t, got, len(want), text)
		for i := range want {
			require.Equal(t, want[i].Key, got[i].Key, text)
			if want[i].Reason != "" {
				require.Equal(t, want[i].Reason, got[i].Reason, text)
			}
		}
	}
	for _, text := range []string{"[]", "{", "null x", `"a"`, "\xff"} {
		_, err := decodeSettings[struct{}]([]byte(text))
		require.ErrorIs(t, err, plugins.ErrSettings, text)
	}
}

// Tags say which values a setting may have, with the words and in the form of the settings of Quorate itself.
func TestTagsHoldSettings(t *testing.T) {
	type held struct {
		Mode  string         `oneof:"fast|safe" required:"yes"`
		Modes []string       `oneof:"fast|safe"`
		Pause time.Duration  `range:"10ms..1h"`
		Ports map[string]int `range:"1024.."`
		Part  float64        `range:">0..1"`
	}
	for text, want := range map[string]string{
		`{}`:               "mode: must be set",
		`{"mode": "slow"}`: `mode: "slow" is none of fast, safe`,
		`{"mode": "safe", "modes": ["fast", "slow"]}`:    `modes[1]: "slow" is none of fast, safe`,
		`{"mode": "safe", "pause": "1ms", "part": 0}`:    `part: 0 is not above 0, up to 1; pause: "1ms" is not from 10ms to 1h`,
		`{"mode": "safe", "ports": {"a": 80, "b": 2e3}}`: "ports.a: 80 is not at least 1024",
	} {
		_, err := decodeSettings[held]([]byte(text))
		require.EqualError(t, err, want)
	}
	got, err := decodeSettings[held]([]byte(`{"mode": "fast", "ports": {"a": 2e3}}`))
	require.NoError(t, err)
	require.Equal(t, 2000, got.Ports["a"])
	require.Panics(t, func() {
		_, _ = decodeSettings[struct {
			N int `range:"1"`
		}]([]byte(`{"n": 1}`))
	})
}

// The fields of an embedded pointer are a group of their own.
func TestAnEmbeddedPointerIsAGroup(t *testing.T) {
	got, err := decodeSettings[struct{ *Leaf }]([]byte(`{"leaf": {"weight": 3}}`))
	require.NoError(t, err)
	require.Equal(t, int8(3), got.Weight)
	_, err = decodeSettings[struct{ *Leaf }]([]byte(`{"weight": 3}`))
	require.EqualError(t, err, "weight: is unknown; there are leaf")
}

func TestFaultsOfTheStrategyAreFaultsOfTheSettings(t *testing.T) {
	wrapped := errors.Join(&fault{"url", "cannot be parsed"}, errors.New("cannot work"))
	require.Equal(t, plugins.SettingErrors{{Key: "url", Reason: "cannot be parsed"}, {Reason: "cannot work"}}, settingErrors(wrapped))
	own := plugins.SettingErrors{{Key: "k", Reason: "r"}}
	require.Equal(t, own, settingErrors(own))
}

func TestKeysAreInLowerCaseWithHyphens(t *testing.T) {
	for name, want := range map[string]string{
		"URL": "url", "BaseURL": "base-url", "HTTPTimeout": "http-timeout", "MaxIdleConns": "max-idle-conns", "A": "a", "X9": "x9", "IDs": "i-ds",
	} {
		require.Equal(t, want, kebab(name))
	}
}

// Settings at random are decoded, or refused with the error for settings.
func TestAnySettingsAreDecodedOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		text := randomJSON(rnd, 0)
		_, err := decodeSettings[settings]([]byte(text))
		if err != nil && !errors.Is(err, plugins.ErrSettings) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

// randomJSON draws a JSON value; the keys of its objects are often those of settings.
func randomJSON(rnd *rand.Rand, depth int) string {
	policies := 7
	if depth > 3 {
		policies = 5
	}
	switch n := rnd.IntN(policies); {
	case depth == 0 || n == 6:
		var parts []string
		for range rnd.IntN(5) {
			key := []string{"url", "timeout", "retry", "second", "limits", "hosts", "max", "interval", "other", "weight"}[rnd.IntN(10)]
			parts = append(parts, `"`+key+`":`+randomJSON(rnd, depth+1))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case n == 5:
		return "[" + randomJSON(rnd, depth+1) + "]"
	default:
		return []string{"null", "true", `"3s"`, "-7", "1e400"}[n]
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"url": "x", "retry": {"max": 3}, "hosts": ["a"], "timeout": "3s"}`))
	f.Add([]byte(`{"limits": {"": 1}, "second": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decodeSettings[settings](text); err != nil {
			require.ErrorIs(t, err, plugins.ErrSettings)
		}
	})
}
