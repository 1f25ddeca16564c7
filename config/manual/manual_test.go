// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config/manual"
)

// Keys begin with the name of the section, also in the environment variables.
func TestASectionIsDescribedUnderItsName(t *testing.T) {
	settings, err := manual.Section("my-twins", "Twins.", &struct {
		Name string `koanf:"full-name" required:"yes" oneof:"a|b" meaning:"What it is called."`
	}{})
	require.NoError(t, err)
	require.Equal(t, []manual.Setting{
		{Key: "my-twins", Type: "group", Meaning: "Twins."},
		{
			Key: "my-twins.full-name", Variable: "QUORATE_MY_TWINS__FULL_NAME", Type: "text", OneOf: []string{"a", "b"},
			Required: true, Meaning: "What it is called.",
		},
	}, settings)
	require.Equal(t, "must be set", settings[1].Preset())
	require.Equal(t, "one of a, b", settings[1].Values())
}

// A type that no file could fill cannot be described, and the error names the section.
func TestASectionThatNoFileFillsIsRefused(t *testing.T) {
	_, err := manual.Section("twins", "", 3)
	require.ErrorContains(t, err, "section twins")
	require.ErrorContains(t, err, "a struct is needed")
}

func TestAKeyOfAFileIsFound(t *testing.T) {
	all := []manual.Setting{
		{Key: "node"},
		{Key: "node.roles", Type: "list of text"},
		{Key: "plugins", Type: "map from names to groups"},
		{Key: "plugins.*", Type: "group"},
		{Key: "plugins.*.path"},
		{Key: "plugins.*.settings", Type: "map from names to any values"},
		{Key: "rules", Type: "list of groups"},
		{Key: "rules[].count"},
	}
	for key, want := range map[string]string{
		"node.roles": "node.roles", "plugins.witness.path": "plugins.*.path", "plugins.witness.settings.deep.a": "plugins.*.settings", "rules[3].count": "rules[].count",
		"plugins.witness": "plugins.*", "node.rols": "", "rules[3].unit": "", "": "",
	} {
		found, ok := manual.Find(all, key)
		require.Equal(t, want, found.Key, key)
		require.Equal(t, want != "", ok, key)
	}
	require.True(t, manual.IsUnder("rules[0].count", "rules"))
	require.False(t, manual.IsUnder("node.roles", "no"))
}
