// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// whole is a document with one section.
type whole struct {
	Node struct {
		Address string `koanf:"address"`
	} `koanf:"node"`
}

// twins is a section beside whole.
type twins struct {
	Names  []string      `koanf:"names"`
	Repeat time.Duration `koanf:"repeat"`
	Most   int           `koanf:"most"`
}

// Validate refuses more than nine twins.
func (t twins) Validate() error {
	if t.Most > 9 {
		return &pointed{"most", "is above 9"}
	}
	return nil
}

// pointed is a fault of a key.
type pointed struct{ key, text string }

// Error describes the fault.
func (p *pointed) Error() string { return p.key + ": " + p.text }

// Field returns the key.
func (p *pointed) Field() string { return p.key }

// loaded reads a document in a file, with an environment.
func loaded(t *testing.T, text string, environ ...string) *config.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := config.Loader{Environ: environ}.Load(path)
	require.NoError(t, err)
	return f
}

// A section beside the struct is filled over its defaults, from the file and from the
// environment; a section of type any takes any content.
func TestASectionBesideTheOthersIsFilled(t *testing.T) {
	f := loaded(t, "node: {address: a}\ntwins: {names: [x]}\nother: {a: [1]}\n", "QUORATE_TWINS__MOST=7")
	var w whole
	var other any
	mine := twins{Repeat: time.Second, Most: 3}
	require.NoError(t, f.DecodeAll(&w, config.Section{Name: "twins", Into: &mine}, config.Section{Name: "other", Into: &other}))
	require.Equal(t, "a", w.Node.Address)
	require.Equal(t, twins{Names: []string{"x"}, Repeat: time.Second, Most: 7}, mine)
	require.Equal(t, map[string]any{"a": []any{1}}, other)
}

// The faults of all sections come together, each with line, key and the nearest name,
// and no target is changed.
func TestASectionBesideTheOthersIsStrict(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		environ []string
		want    string
	}{
		"unknown key":     {"twins:\n  repaet: 1s\n", nil, `a.yaml:2: twins.repaet: unknown key; did you mean "repeat"?`},
		"unknown section": {"twinz: {}\n", nil, `a.yaml:1: twinz: unknown section; did you mean "twins"?`},
		"bad value":       {"twins: {repeat: soon}\n", nil, "a.yaml:1: twins.repeat: "},
		"refused value":   {"twins: {most: 10}\n", nil, "a.yaml:1: twins.most: is above 9"},
		"no group":        {"twins: 3\n", nil, "a.yaml:1: twins: "},
		"variable":        {"node: {}\n", []string{"QUORATE_TWINS__MOST=10"}, "$QUORATE_TWINS__MOST: twins.most: is above 9"},
		"stray variable":  {"node: {}\n", []string{"QUORATE_TWINS_MOST=1"}, `$QUORATE_TWINS_MOST: twins.most: the levels of a key are separated by two underscores; did you mean "QUORATE_TWINS__MOST"?`},
		"two sections":    {"node: {addr: a}\ntwins: {most: 10}\n", nil, "a.yaml:1: node.addr: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			var w whole
			mine := twins{Most: 3}
			err := loaded(t, test.text, test.environ...).DecodeAll(&w, config.Section{Name: "twins", Into: &mine})
			var faults config.Errors
			require.ErrorAs(t, err, &faults)
			require.ErrorContains(t, err, test.want)
			require.Equal(t, twins{Most: 3}, mine)
			require.Zero(t, w)
		})
	}
}

// A section that the program declares wrongly is an ordinary error.
func TestASectionThatCannotBeIsRefused(t *testing.T) {
	mine := func() *twins { return new(twins) }
	tests := []struct {
		want     string
		sections []config.Section
	}{
		{`two sections with the name "node"`, []config.Section{{Name: "node", Into: mine()}}},
		{`two sections with the name "twins"`, []config.Section{{Name: "twins", Into: mine()}, {Name: "twins", Into: mine()}}},
		{`"include" cannot be the name`, []config.Section{{Name: "include", Into: mine()}}},
		{`"Twins" cannot be the name`, []config.Section{{Name: "Twins", Into: mine()}}},
		{`"" cannot be the name`, []config.Section{{Into: mine()}}},
		{"a pointer to a struct or map is needed", []config.Section{{Name: "twins", Into: twins{}}}},
		{"a pointer to a struct or map is needed", []config.Section{{Name: "twins"}}},
		{"unsupported type", []config.Section{{Name: "twins", Into: new(struct {
			F func() `koanf:"f"`
		})}}},
	}
	for _, test := range tests {
		err := loaded(t, "node: {}\n").DecodeAll(new(whole), test.sections...)
		require.ErrorContains(t, err, test.want)
		var faults config.Errors
		require.NotErrorAs(t, err, &faults)
	}
	require.ErrorContains(t, loaded(t, "node: {}\n").DecodeAll(new(map[string]any), config.Section{Name: "twins", Into: mine()}), "beside those of a struct")
}
