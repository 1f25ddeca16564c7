// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/field"
)

// span is a section whose values have to fit one another.
type span struct {
	Least int      `koanf:"least"`
	Most  int      `koanf:"most"`
	Names []string `koanf:"names"`
}

// Validate refuses a span that ends before it begins, and one without names.
func (s span) Validate() error {
	var faults field.Faults
	faults.Refuse(s.Most < 0, "most", "is below 0")
	faults.Relate(s.Least > s.Most, "least", "most", "is above most")
	faults.Refuse(len(s.Names) == 0, "names", "is empty")
	return faults.Err()
}

// spans is a document with a rule over its sections.
type spans struct {
	A span `koanf:"a"`
	B span `koanf:"b"`
}

// Validate refuses spans that overlap.
func (s spans) Validate() error {
	if s.A.Most >= s.B.Least {
		return field.Relate(field.Errorf("b.least", "begins within a"), "a.most")
	}
	return nil
}

// One mistake is one fault: nothing more is said of a value that was refused, and a fault about two values stands at
// the one that is set.
func TestOneMistakeIsOneFault(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                    {"a: {most: 2}\nb: {least: 3}", nil},
		"where the other one is set": {"a:\n  most: 7\n", []string{"c:2: b.least: begins within a"}},
		"of two sections":            {"a: {most: 7}\nb:\n  least: 5\n", []string{"c:3: b.least: begins within a"}},
		"the other has no type":      {"a: {most: many}", []string{"c:1: a.most: must be a whole number, not the text \"many\""}},
		"the other is out of bounds": {"a: {most: -1, least: -2}\nb: {least: -5}", []string{"c:1: a.most: is below 0"}},
		"a name is misspelt":         {"a: {naems: [x]}", []string{"c:1: a.naems: unknown key; did you mean \"names\"?"}},
		"an item of a list":          {"a: {names: [[x]]}", []string{"c:1: a.names[0]: must be text, not a list"}},
		"two mistakes":               {"a: {least: 9, most: 5}\nb: {least: 3}", []string{"c:1: a.least: is above most", "c:2: b.least: begins within a"}},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := config.Parse("c", []byte(test.text))
			require.NoError(t, err)
			got := spans{A: span{Least: 0, Most: 2}, B: span{Least: 5, Most: 9, Names: []string{"b"}}}
			if name != "a name is misspelt" {
				got.A.Names = []string{"a"}
			}
			err = file.Decode("", &got)
			if test.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, test.want, faults(t, err))
		})
	}
}

// A fault of a section that is not there stands where the section is chosen.
func TestASectionThatIsNotThereIsRefusedWhereItIsChosen(t *testing.T) {
	file, err := config.Parse("c", []byte("node:\n  address: x\n"))
	require.NoError(t, err)
	var w whole
	err = file.DecodeAll(&w, config.Section{Name: "a", Into: &span{}, Chosen: []string{"node.store", "node.address"}})
	require.Equal(t, []string{"c:2: a.names: is empty"}, faults(t, err))
}
