// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/config"
)

// What Settings lists of a struct with every type of setting (daemon), and of entries with
// defaults of their own; then which settings Changes finds, and how ranges are said in
// words.

// worker is an entry with defaults of its own.
type worker struct {
	Path  string        `koanf:"path"`
	Pause time.Duration `koanf:"pause" range:"1ms.."`
}

func (w *worker) SetDefaults() { w.Pause = 5 * time.Second }

// texts may be written as one text or as a list.
type texts []string

func (s *texts) UnmarshalText(text []byte) error {
	*s = texts{string(text)}
	return nil
}

// daemon is a struct with every type of setting.
type daemon struct {
	common `koanf:",squash"`
	Limits struct {
		Size  int     `koanf:"size" unit:"bytes" range:"1..100"`
		Share float64 `koanf:"share" unit:"part" range:">0..1"`
	} `koanf:"limits" reload:"yes"`
	Mode    string            `koanf:"mode" oneof:"fast|safe"`
	Plan    string            `koanf:"plan" known:"auto" required:"yes"`
	Seeds   []string          `koanf:"seeds"`
	Workers map[string]worker `koanf:"workers" reload:"yes"`
	Pool    []worker          `koanf:"pool"`
	Extra   map[string]any    `koanf:"extra"`
	Most    *int              `koanf:"most" unit:"items" range:"0.."`
	Wait    time.Duration     `koanf:"wait" range:"0s.."`
	Strict  bool              `koanf:"strict"`
	Sums    texts             `koanf:"sums"`
	Hook    func()
}

func preset() daemon {
	var d daemon
	d.Name, d.Limits.Size, d.Limits.Share, d.Mode, d.Wait = "x", 10, 0.5, "safe", 90*time.Minute
	d.Seeds = []string{"a", "b"}
	return d
}

func TestSettingsListEveryKeyWithWhatIsKnownOfIt(t *testing.T) {
	settings, err := config.Settings(preset())
	require.NoError(t, err)
	type row struct {
		key, typ, preset string
		reload           bool
	}
	var got []row
	for _, s := range settings {
		got = append(got, row{s.Key(), s.Type.String(), s.Default, s.Reload})
	}
	require.Equal(t, []row{
		{"name", "text", "x", false},
		{"limits", "group", "", true},
		{"limits.size", "whole number", "10", true},
		{"limits.share", "number", "0.5", true},
		{"mode", "text", "safe", false},
		{"plan", "text", "", false},
		{"seeds", "list", "[a, b]", false},
		{"workers", "map", "{}", true},
		{"workers.*", "group", "", true},
		{"workers.*.path", "text", `""`, true},
		{"workers.*.pause", "duration", "5s", true},
		{"pool", "list", "[]", false},
		{"pool[]", "group", "", false},
		{"pool[].path", "text", `""`, false},
		{"pool[].pause", "duration", "5s", false},
		{"extra", "map", "{}", false},
		{"most", "whole number", "none", false},
		{"wait", "duration", "1h30m", false},
		{"strict", "true or false", "false", false},
		{"sums", "text or list of text", `""`, false},
	}, got)
	size := settings[2]
	require.Equal(t, "bytes", size.Unit)
	require.Equal(t, "1..100", size.Range)
	require.Equal(t, "Size", size.Field)
	require.Equal(t, []string{"fast", "safe"}, settings[4].OneOf)
	require.Equal(t, []string{"auto"}, settings[5].Known)
	require.True(t, settings[5].Required)
	require.Equal(t, config.TypeText, settings[6].Item)
	require.Equal(t, config.TypeAny, settings[15].Item)
	require.Equal(t, "Type(99)", config.Type(99).String())

	for _, bad := range []any{nil, 3, (*daemon)(nil), struct {
		F func() `koanf:"f"`
	}{}, struct {
		N int `koanf:"n" range:"1-2"`
	}{}} {
		_, err := config.Settings(bad)
		require.Error(t, err)
	}
}

func TestEntriesBeginWithTheirOwnDefaults(t *testing.T) {
	file, err := config.Parse("c", []byte("workers: {a: {path: x}, b: {pause: 1s}}\npool: [{path: y}]\n"))
	require.NoError(t, err)
	got := preset()
	require.NoError(t, file.Decode("", &got))
	require.Equal(t, map[string]worker{"a": {"x", 5 * time.Second}, "b": {"", time.Second}}, got.Workers)
	require.Equal(t, []worker{{"y", 5 * time.Second}}, got.Pool)
}

func TestChangesNameEveryKeyThatDiffers(t *testing.T) {
	from, to := preset(), preset()
	from.Workers = map[string]worker{"kept": {Path: "a"}, "gone": {}}
	to.Workers = map[string]worker{"kept": {Path: "b"}, "new": {}}
	from.Extra, to.Extra = map[string]any{"deep": map[string]any{"x": 1}}, map[string]any{"deep": map[string]any{"x": 2}}
	from.Seeds, to.Seeds = []string{"a"}, []string{"a", "b"}
	from.Pool, to.Pool = nil, []worker{}
	to.Limits.Size, to.Strict, to.Name = 11, true, "y"
	three := 3
	to.Most = &three
	got, err := config.Changes(from, &to)
	require.NoError(t, err)
	require.Equal(t, []config.Change{
		{"extra.deep", false},
		{"limits.size", true},
		{"most", false},
		{"name", false},
		{"seeds", false},
		{"strict", false},
		{"workers.gone", true},
		{"workers.kept.path", true},
		{"workers.new", true},
	}, got)
	four := 3
	from = to
	from.Most = &four
	got, err = config.Changes(from, to)
	require.NoError(t, err)
	require.Empty(t, got)
	for _, pair := range [][2]any{{nil, nil}, {from, defaults()}, {1, 2}, {from, (*daemon)(nil)}} {
		_, err = config.Changes(pair[0], pair[1])
		require.Error(t, err)
	}
}

// A configuration that was decoded from a tree differs from the defaults exactly in
// the keys of the tree.
func TestChangesAreWhatWasSet(t *testing.T) {
	keys := map[string]string{
		"name: other": "name", "limits: {size: 99}": "limits.size", "mode: fast": "mode", "seeds: [z]": "seeds",
		"workers: {w: {path: p}}": "workers.w", "most: 0": "most", "wait: 1ns": "wait", "strict: true": "strict",
	}
	rapid.Check(t, func(t *rapid.T) {
		var text string
		var want []string
		for _, line := range []string{"limits: {size: 99}", "mode: fast", "most: 0", "name: other", "seeds: [z]", "strict: true", "wait: 1ns", "workers: {w: {path: p}}"} {
			if rapid.Bool().Draw(t, line) {
				text += line + "\n"
				want = append(want, keys[line])
			}
		}
		file, err := config.Parse("c", []byte(text+"extra: {}\n"))
		require.NoError(t, err)
		to := preset()
		require.NoError(t, file.Decode("", &to))
		changes, err := config.Changes(preset(), to)
		require.NoError(t, err)
		var got []string
		for _, c := range changes {
			got = append(got, c.Key)
		}
		require.Equal(t, want, got)
	})
}
