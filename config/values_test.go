// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
)

// The values of settings, where they were written, and what is not shown of them.

type valued struct {
	Name    string                  `koanf:"name"`
	Wait    time.Duration           `koanf:"wait" reload:"yes"`
	Roles   []string                `koanf:"roles"`
	Inner   valuedInner             `koanf:"inner" reload:"yes"`
	Plugins map[string]valuedPlugin `koanf:"plugins"`
	Rules   []valuedInner           `koanf:"rules"`
	Maybe   *valuedInner            `koanf:"maybe"`
}

type valuedInner struct {
	Count int    `koanf:"count"`
	Unit  string `koanf:"unit"`
	Steps []struct {
		At string `koanf:"at"`
	} `koanf:"steps"`
}

type valuedPlugin struct {
	Path     string            `koanf:"path"`
	Env      map[string]string `koanf:"environment" hidden:"yes"`
	Settings any               `koanf:"settings"`
}

// covers the kinds of settings, layers and references.
func TestValuesSayWhereTheyWereWritten(t *testing.T) {
	file, dir, err := referring(t, strings.Join([]string{
		"include: [base.yaml]", "name: ${file:token}", "maybe: null", "inner: {steps: [{at: '5'}]}", "roles: [a, '${env:ZONE}']", "plugins:",
		"  witness: {path: /opt/w, environment: {TOKEN: plain}, settings: {deep: {secret: 5}, list: [1]}}", "rules: [{count: 1}, {unit: s}]",
	}, "\n"), []string{"ZONE=eu", "QUORATE_INNER__UNIT=km"}, map[string]string{"token": "s3cret\n", "base.yaml": "inner: {count: 3}\nmaybe: {count: 3}\n"})
	require.NoError(t, err)
	into := valued{Name: "none", Wait: time.Second, Inner: valuedInner{Unit: "m"}}
	require.NoError(t, file.Decode("", &into))
	values, err := file.Values("", &into)
	require.NoError(t, err)
	main, base := filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "base.yaml")
	require.Equal(t, []config.Value{
		{Key: "inner.count", Text: "3", Source: base + ":1", Reload: true},
		{Key: "inner.steps[0].at", Text: "5", Source: main + ":4", Reload: true},
		{Key: "inner.unit", Text: "km", Source: "$QUORATE_INNER__UNIT", Reload: true},
		{Key: "maybe", Text: "none", Source: main + ":3"},
		{Key: "name", Text: "${file:token}", Hidden: true, Source: main + ":2"},
		{Key: "plugins.witness.environment.TOKEN", Hidden: true, Source: main + ":7"},
		{Key: "plugins.witness.path", Text: "/opt/w", Source: main + ":7"},
		{Key: "plugins.witness.settings.deep.secret", Hidden: true, Source: main + ":7"},
		{Key: "plugins.witness.settings.list", Hidden: true, Source: main + ":7"},
		{Key: "roles", Text: "${env:ZONE}", Hidden: true, Source: main + ":5"},
		{Key: "rules[0].count", Text: "1", Source: main + ":8"},
		{Key: "rules[0].unit", Text: `""`},
		{Key: "rules[1].count", Text: "0"},
		{Key: "rules[1].unit", Text: "s", Source: main + ":8"},
		{Key: "wait", Text: "1s", Reload: true},
	}, fromElsewhere(t, values))

	inner, err := file.Values("inner", into.Inner)
	require.NoError(t, err)
	require.Equal(t, []config.Value{{Key: "inner.count", Text: "3", Source: base + ":1"}, {Key: "inner.steps[0].at", Text: "5", Source: main + ":4"}, {Key: "inner.unit", Text: "km", Source: "$QUORATE_INNER__UNIT"}}, fromElsewhere(t, inner))
	inCode, err := new(config.File).Values("", into)
	require.NoError(t, err)
	for _, v := range inCode {
		require.Empty(t, v.Source, v.Key)
	}
}

// fromElsewhere returns values as another process gets them.
func fromElsewhere(t *testing.T, values []config.Value) (came []config.Value) {
	t.Helper()
	b, err := json.Marshal(values)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &came))
	return came
}

func TestDifferencesOfValues(t *testing.T) {
	values := func(text string) []config.Value {
		file, _, err := referring(t, text, nil, map[string]string{"a": "1", "b": "2"})
		require.NoError(t, err)
		var into valued
		require.NoError(t, file.Decode("", &into))
		values, err := file.Values("", into)
		require.NoError(t, err)
		return values
	}
	from := values("wait: 1s\nname: ${file:a}\nplugins: {w: {path: x, settings: {a: 1, b: 1}}}")
	to := values("wait: 2s\nname: ${file:b}\nplugins: {w: {path: x, settings: {a: 1, b: 2}}, v: {path: y}}")
	keys := func(all []config.Difference) (keys []string) {
		for _, d := range all {
			keys = append(keys, d.Key)
		}
		return keys
	}
	differ, unknown := config.Compare(from, to)
	require.Equal(t, []string{"name", "plugins.v.path", "plugins.v.settings", "plugins.w.settings.b", "wait"}, keys(differ))
	require.Empty(t, unknown)
	require.True(t, differ[4].Reload())
	require.Equal(t, "1s to 2s", differ[4].From.Text+" to "+differ[4].To.Text)
	require.Nil(t, differ[1].From)
	require.False(t, differ[1].Reload())

	differ, unknown = config.Compare(from, fromElsewhere(t, to))
	require.Equal(t, []string{"plugins.v.path", "plugins.v.settings", "wait"}, keys(differ))
	require.Equal(t, []string{"name", "plugins.w.settings.a", "plugins.w.settings.b"}, unknown)
	differ, unknown = config.Compare(from, from)
	require.Empty(t, differ)
	require.Empty(t, unknown)
}

func TestValuesOfWhatIsNoStruct(t *testing.T) {
	for _, bad := range []any{nil, 7, struct {
		C chan int `koanf:"c"`
	}{}} {
		_, err := new(config.File).Values("", bad)
		require.ErrorContains(t, err, "config: values of")
	}
	var anything any
	values, err := new(config.File).Values("own", &anything)
	require.NoError(t, err)
	require.Empty(t, values)
	anything = map[string]any{"token": "s3cret"}
	values, err = new(config.File).Values("own", &anything)
	require.NoError(t, err)
	require.Equal(t, []config.Value{{Key: "own.token", Hidden: true}}, fromElsewhere(t, values))
}

func TestNoValueShowsASecret(t *testing.T) {
	for _, text := range []string{"name: x${file:token}x", "roles: ['${file:token}']", "plugins: {w: {settings: {a: ['${file:token}', {b: '${file:token}'}]}}}", "plugins: {'${file:token}': {path: '${file:token}'}}"} {
		file, _, err := referring(t, text, nil, map[string]string{"token": "s3cret"})
		require.NoError(t, err)
		var into valued
		require.NoError(t, file.Decode("", &into))
		values, err := file.Values("", into)
		require.NoError(t, err)
		for _, v := range values {
			require.NotContains(t, v.Key+v.Text, "s3cret", text)
		}
	}
}
