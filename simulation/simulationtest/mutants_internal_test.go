// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted are defects of the counter, all of which are found. All but the first are built
// into one copy of it, the text of the third being in that of the second.
var counted = []Mutant{
	{Name: "no bound", Edits: []Edit{{"counter.go", "c.n >= c.most", "c.n < 0"}}},
	{Name: "the last step counts twice", Edits: []Edit{{"counter.go", "	c.n++\n", "	if c.n++; c.n == c.most && mutant(NAME) || mutant(\"two at a time\") {\n		c.n++\n	}\n"}}},
	{Name: "two at a time"},
	{Name: "a step ends all", Panics: true, Edits: []Edit{{"counter.go", "	return true\n", "	if mutant(NAME) {\n		panic(\"end\")\n	}\n	return true\n"}}},
}

// in has the tests of the counter look for a defect.
func in(m Mutant, tests ...string) Mutant {
	m.Package, m.Tests, m.Env = "testdata/counter", tests, []string{"COUNTER_WORLD=" + m.Name}
	return m
}

func TestDefectsThatChecksFindAreFound(t *testing.T) {
	var mutants []Mutant
	for _, m := range counted {
		mutants = append(mutants, in(m, "TestNothing", "TestTheBound"))
	}
	RequireFound(t, "testdata/counter", mutants)
}

func TestDefectsThatNoCheckFindsAreErrors(t *testing.T) {
	b := &builder{dir: "testdata/counter", tmp: t.TempDir(), shared: map[string]binary{}, switched: counted[1:]}
	for _, c := range []struct {
		mutant Mutant
		want   string
	}{
		{in(counted[1], "TestNothing"), "TestNothing: green with the defect"},
		{in(Mutant{Name: "nobody asks"}, "TestTheBound"), "green with the defect"},
		{in(Mutant{Name: "a step ends all", Edits: counted[3].Edits}, "TestTheBound"), "no check has failed, but the program"},
		{in(Mutant{Name: "not there", Edits: []Edit{{"counter.go", "c.m++", ""}}}, "TestTheBound"), "\"not there\" no longer fits counter.go: its text is there 0 times"},
		{in(Mutant{Name: "twice", Edits: []Edit{{"counter.go", "c.n", ""}}}, "TestTheBound"), "its text is there 2 times"},
		{in(Mutant{Name: "no file", Edits: []Edit{{"clock.go", "c.n", ""}}}, "TestTheBound"), "clock.go"},
		{in(Mutant{Name: "no code", Edits: []Edit{{"counter.go", "c.n++", "c.n--)"}}}, "TestTheBound"), "do not build"},
	} {
		t.Run(c.mutant.Name, func(t *testing.T) {
			binary, err := b.binary(t.Context(), c.mutant)
			if err == nil {
				_, err = c.mutant.find(t.Context(), binary)
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDefectsThatDoNotFitTogetherAreErrors(t *testing.T) {
	step := Mutant{Name: "again", Edits: []Edit{{"counter.go", "	c.n++\n", "	c.n += mutant(NAME)\n"}}}
	for _, c := range []struct {
		mutants []Mutant
		want    string
	}{
		{counted, ""},
		{[]Mutant{step, {Name: "and again", Edits: step.Edits}}, "\"and again\" no longer fits counter.go: its text is there 0 times"},
		{[]Mutant{step}, "does not compile with the defects"},
	} {
		b := &builder{dir: "testdata/counter", tmp: t.TempDir()}
		for _, m := range c.mutants {
			if m.switched() {
				b.switched = append(b.switched, m)
			}
		}
		if err := b.compiles(t.Context()); c.want != "" {
			require.ErrorContains(t, err, c.want)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestTheWordsOfAFindingAreThoseOfTheCheck(t *testing.T) {
	require.Equal(t, "Error:  Should be zero\nMessages: two homes\nreplay: QUORATE_SEED=3",
		Mutant{}.finding("--- FAIL: TestX\n    Error Trace: x.go:3\n    Error:  Should be zero\n    Messages: two homes\n  replay: QUORATE_SEED=3\n"))
	require.Equal(t, "x.go:3: within 1m0s it was not so: it is closed", Mutant{}.finding("--- FAIL: TestX\n    x.go:3: within 1m0s it was not so: it is closed\n"))
	require.Empty(t, Mutant{}.finding("panic: end\n"))
	require.Equal(t, "panic: end", Mutant{Panics: true}.finding("panic: end\n\n    Error: none\n"))
}

// The parts of all mutants are all of them, each once.
func TestPartsOfTheMutantsAreAllOfThem(t *testing.T) {
	all := []Mutant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	for n := 1; n <= 7; n++ {
		var names []string
		for k := 1; k <= n; k++ {
			part, err := parted(all, fmt.Sprintf("%d/%d", k, n))
			require.NoError(t, err)
			for _, m := range part {
				names = append(names, m.Name)
			}
		}
		require.ElementsMatch(t, []string{"a", "b", "c", "d", "e"}, names, "%d parts", n)
	}
	whole, err := parted(all, "")
	require.NoError(t, err)
	require.Equal(t, all, whole)
	for _, wrong := range []string{"0/3", "4/3", "1", "1/0", "a/b", "/", "-1/2"} {
		_, err := parted(all, wrong)
		require.ErrorContains(t, err, "QUORATE_MUTANTS="+wrong)
	}
}
