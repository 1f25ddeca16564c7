// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/configtest"
)

// FuzzConfig feeds any text as a file of each format and as a variable. Each text gives a
// value, or a list of one-line errors, the same for the same input. A refused document
// changes nothing. covers B54, B55, B56.
func FuzzConfig(f *testing.F) {
	for _, seed := range [][2]string{
		{"node: {name: a, roles: [b]}\n", "QUORATE_NODE__WEIGHT=3"},
		{"membership:\n  fence: 1d\n  gosip: 1\n", "QUORATE_NODE__ROLES=a,b"},
		{"a: &a [*a]\n", "QUORATE_NODE__ROLES=[a, \"b,c\"]"},
		{"plugins: {1: {settings: {2: 3}}}\n", "QUORATE_PLUGINS__1__SETTINGS=~"},
		{"? {a: b}\n: c\n", "QUORATE_A__B__C=1"},
		{"node: {limit: ~, offset: 0x7fff}\n---\n", "QUORATE_NODE=1"},
		{"membership: {seed-nodes: [[1]], failure-detector: {threshold: .nan}}\n", "QUORATE_MEMBERSHIP_FENCE=1s"},
		{"\ufeffnode:\r\n  name: 2001-01-01\r\n", "QUORATE_PLUGINS=x"},
		{"node:\n  name: a\n  name: b\n", "QUORATE___=1"},
		{"{\"node\": {\"weight\": 1e2, \"name\": null, \"name\": \"\\ud800\"}}", ""},
		{"{\"include\": [\"a\"], \"a\": [[], {}, 18446744073709551615, -0.0]}", ""},
		{"include: [fuzz_test.go, ../x]\n", ""},
	} {
		f.Add([]byte(seed[0]), seed[1])
	}
	f.Fuzz(func(t *testing.T, data []byte, variable string) {
		for _, name := range []string{"fuzz.yaml", "fuzz.json"} {
			check(t, name, data)
		}
		environ := []string{variable, "QUORATE_NODE__NAME=x"}
		file, err := config.Loader{Environ: environ}.Load("testdata/base.yaml")
		if err != nil {
			configtest.CheckFaults(t, err)
			return
		}
		got := defaults()
		if err := file.Decode("", &got); err != nil {
			configtest.CheckFaults(t, err)
		}
	})
}

func check(t *testing.T, name string, data []byte) {
	t.Helper()
	file, err := config.Parse(name, data)
	if err != nil {
		configtest.CheckFaults(t, err)
		return
	}
	first, second := defaults(), defaults()
	err = file.Decode("", &first)
	again := file.Decode("", &second)
	if err == nil {
		return
	}
	configtest.CheckFaults(t, err)
	if again == nil || err.Error() != again.Error() {
		t.Fatalf("two decodes differ:\n%v\n%v", err, again)
	}
	if len(first.Plugins) != 1 || first.Node.Weight != 1 || len(first.Node.Roles) != 1 {
		t.Fatalf("a refused document changed its target: %+v", first)
	}
}
