// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The test program stands in for the program that starts busy loops.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "spin" {
		Spin(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// tree writes files below a new directory, and opens it.
func tree(t *testing.T, files map[string]string) *Workspace {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	w, err := Open(root)
	require.NoError(t, err)
	return w
}

func TestPackagesAreFoundByTheirTags(t *testing.T) {
	w := tree(t, map[string]string{
		"go.work":                  "go 1.26.0\n\nuse (\n\t./a\n\t./a/b\n)\n",
		"a/a_test.go":              "package a\n\nimport (\n\t\"testing/synctest\"\n)\n\nfunc TestA(t *testing.T) {}\nfunc FuzzA(f *testing.F) {}\n",
		"a/x/x_test.go":            "//go:build process && unix\n\npackage x\n\nfunc TestX(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\n",
		"a/y/y_test.go":            "//go:build !process\n\npackage y\n\nfunc TestY(t *testing.T) {}\n",
		"a/b/b_test.go":            "package b\n",
		"a/testdata/z/z_test.go":   "package z\n",
		"a/.tmp/z_test.go":         "package z\n",
		"a/node_modules/z_test.go": "package z\n",
		"a/s/s_test.go":            "package s\n\nvar _ = simulationtest.Times\n",
		"other/z_test.go":          "package z\n",
	})
	require.Equal(t, []string{"a", "a/b", "a/s", "a/x", "a/y"}, w.All())
	require.Equal(t, []string{"a", "a/b", "a/s", "a/y"}, w.Plain())
	require.Equal(t, []string{"a/s"}, w.Seeds())
	require.Equal(t, []string{"a/x", "a/y"}, w.Tagged("process"))
	require.Equal(t, []string{"a"}, w.Bubbles())
	require.Equal(t, []string{"a FuzzA"}, w.Targets())
	require.Equal(t, "-run=^(TestX|TestY)$", w.Names("process", "chromium"))
	require.Equal(t, []string{"a", "a/s", "a/x", "a/y"}, w.In("a", w.All()))
	require.Equal(t, []Step{{Packages: []string{"a/b"}}}, w.Restrict([]Step{{Packages: []string{"a", "a/b"}}, {Command: []string{"make"}}, {Packages: []string{"a"}}}, "a/b"))

	name, err := w.Module("./a/b/")
	require.NoError(t, err)
	require.Equal(t, "a/b", name)
	_, err = w.Module("c")
	require.EqualError(t, err, `there is no module "c"; the modules are: a, a/b`)
}

// What a run prints of packages that pass, fail, do not build, and cannot be judged.
func TestARunIsTold(t *testing.T) {
	const head = "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n"
	w := tree(t, map[string]string{
		"go.work":            "go 1.26.0\n\nuse (\n\t./m\n)\n",
		"m/go.mod":           "module github.com/quorate/quorate/m\n\ngo 1.26.0\n",
		"m/good/p_test.go":   head + "func TestGood(t *testing.T) {}\n",
		"m/bad/p_test.go":    head + "func TestBad(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Error(\"it is bad\") }) }\nfunc TestGood(t *testing.T) {}\n",
		"m/never/p_test.go":  head + "func TestNever(t *testing.T) { t.Error(\"late\"); t.Log(\"not judged: the process did not run\") }\n",
		"m/later/p_test.go":  head + "func TestLater(t *testing.T) {\n\tif os.Mkdir(\"seen\", 0o755) == nil {\n\t\tt.Error(\"late\")\n\t\tt.Log(\"not judged: the process did not run\")\n\t}\n}\n",
		"m/mixed/p_test.go":  head + "func TestLate(t *testing.T) { t.Error(\"late\"); t.Log(\"not judged: it\") }\nfunc TestWrong(t *testing.T) { t.Error(\"wrong\") }\n",
		"m/panics/p_test.go": head + "func TestGood(t *testing.T) {}\nfunc TestPanics(t *testing.T) { panic(\"it cannot go on\") }\n",
		"m/broken/p_test.go": "package p\n\nvar x int = \"\"\n",
	})
	var out bytes.Buffer
	r := Runner{Root: w.Root, Out: &out}
	err := r.Run(t.Context(), "test", []Step{
		{Packages: w.All(), Args: []string{"-p=2", "-timeout=5m"}, Env: []string{"GOFLAGS="}},
		{LeftOut: "what is not there"},
	})
	require.ErrorIs(t, err, ErrFailed)
	text := out.String()
	for _, want := range []string{
		"== test: 7 packages\n", "m/good\n", "FAIL m/bad\n", "it is bad", "panic: it cannot go on", "cannot use \"\"",
		"   judged when it was run again alone: m/later TestLater\n",
		"   not judged in 3 tries, since the machine stood still: m/never TestNever\n",
		"   left out: what is not there\n",
		"   GOFLAGS= go test -count=1 -run='^(TestBad)$' ./m/bad\n",
		"   GOFLAGS= go test -count=1 -run='^(TestLate|TestWrong)$' ./m/mixed\n",
		"   GOFLAGS= go test -count=1 ./m/broken\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "-count=1 -run='^(TestNever)$'")
	for line := range strings.SplitSeq(text, "\n") {
		ours := strings.HasPrefix(line, "[") || strings.HasPrefix(line, "==")
		require.True(t, len(line) <= 80 || !ours, line)
	}

	// The last line of a failed run repeats what failed; one that passes says so.
	require.Regexp(t, `\n {3}GOFLAGS= go test \S+ .*\n$`, text)
	out.Reset()
	require.NoError(t, r.Run(t.Context(), "test", []Step{{Packages: []string{"m/good"}, Env: []string{"GOFLAGS="}}}))
	require.Contains(t, out.String(), "== test: ok, 1 package in")
	require.ErrorIs(t, r.Run(t.Context(), "test", []Step{{Command: []string{"false"}}}), ErrFailed)
}

// Every fuzz target of the tree is in one part of the lane, and one of each part is fuzzed for longer.
func TestEachFuzzTargetHasItsTurn(t *testing.T) {
	t.Setenv("FUZZTIME", "")
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	w, err := Open(root)
	require.NoError(t, err)
	found := map[string]int{}
	for part := 1; part <= fuzzParts; part++ {
		longer := 0
		for _, s := range fuzz(t.Context(), w, part) {
			found[s.Packages[0]+" "+strings.Trim(strings.TrimPrefix(s.Args[1], "-fuzz="), "^$")]++
			if s.Args[2] == "-fuzztime=40s" {
				longer++
			}
		}
		require.Equal(t, 1, longer)
	}
	files, err := w.Git(t.Context(), "grep", "-E", "^func Fuzz[A-Z]", "--", "*_test.go")
	require.NoError(t, err)
	require.Greater(t, len(files), 80)
	for _, line := range files {
		file, function, _ := strings.Cut(line, ":func ")
		name, _, _ := strings.Cut(function, "(")
		require.Equal(t, 1, found[filepath.Dir(file)+" "+name], line)
	}
	require.Len(t, found, len(files))
}

// The fuzzer of Go 1.26 may say that its time ended in the words of a failure. What it has found is one.
func TestAFuzzTargetThatOnlyEndedIsNotRed(t *testing.T) {
	ran := func(outputs ...string) *packageRun {
		c := newCollector()
		for _, output := range outputs {
			require.Nil(t, c.add(event{Package: "p", Test: "FuzzA", Action: "output", Output: output}))
		}
		require.Nil(t, c.add(event{Package: "p", Test: "FuzzA", Action: "fail"}))
		return c.add(event{Package: "p", Action: "fail"})
	}
	ended := ran("--- FAIL: FuzzA (3.04s)\n", "    context deadline exceeded\n")
	require.False(t, ended.failed)
	require.True(t, ended.explains())
	require.True(t, ran("    context deadline exceeded\n", "    Failing input written to testdata/fuzz/FuzzA/1\n").failed)
	require.True(t, ran("    panic: it is bad\n").failed)
}

// Whatever the number of a run, each unit is due once in six runs in a row.
func TestEachUnitHasItsTurn(t *testing.T) {
	var whole time.Duration
	for _, u := range units() {
		whole += u.Lane.Time
	}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(0, 1000).Draw(t, "first")
		due := map[string]int{}
		for run := range maxRuns {
			var takes time.Duration
			others := false
			for _, u := range turn(units(), first+run, nil) {
				if u.Waited == 0 {
					due[u.Name()]++
					takes += u.Lane.Time
					require.False(t, others, "what is due comes first")
				}
				others = others || u.Waited > 0
			}
			require.InDelta(t, whole.Seconds()/maxRuns, takes.Seconds(), 60, "no run has much more than another")
		}
		for _, u := range units() {
			require.Equal(t, 1, due[u.Name()], u.Name())
		}
	})
}

func TestWhatWasTouchedComesBeforeTheRest(t *testing.T) {
	order := turn(units(), 3, []string{"management/page/src/app.ts"})
	next := slices.IndexFunc(order, func(u Unit) bool { return u.Waited > 0 })
	require.Equal(t, "pages", order[next].Name())
	for i := next + 2; i < len(order); i++ {
		require.LessOrEqual(t, order[i].Waited, order[i-1].Waited)
	}
}

func TestSessionsAreApartByAPause(t *testing.T) {
	at := func(minutes int, commit string) string { return fmt.Sprintf("%d %s", 1_790_000_000+60*minutes, commit) }
	run, base := session([]string{at(140, "e"), at(100, "d"), at(59, "c"), at(40, "b"), at(0, "a")})
	require.Equal(t, 1, run)
	require.Equal(t, "c", base)
	run, base = session([]string{at(0, "a")})
	require.Zero(t, run)
	require.Empty(t, base)
}

func TestABusyMachineBeginsNothingMore(t *testing.T) {
	due, other := Unit{Lane: Lane{Time: 4 * time.Minute}}, Unit{Lane: Lane{Time: 4 * time.Minute}, Waited: 2}
	require.True(t, due.Begins(30*time.Minute, 25*time.Minute, 35*time.Minute))
	require.False(t, due.Begins(35*time.Minute, 25*time.Minute, 35*time.Minute))
	require.True(t, other.Begins(21*time.Minute, 25*time.Minute, 35*time.Minute))
	require.False(t, other.Begins(22*time.Minute, 25*time.Minute, 35*time.Minute))
}

// Every package of this repository that has tests is in `make test`, in a gate or in a lane, and what
// the tables name is there.
func TestNoPackageIsForgotten(t *testing.T) {
	w, err := Open(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	run := gates()
	tests := Tests(w, false)
	require.Len(t, tests, 1)
	run = append(run, tests[0].Packages...)
	tests = Tests(w, true)
	require.ElementsMatch(t, run[len(gates()):], slices.Concat(tests[0].Packages, tests[1].Packages))
	for _, reads := range []string{"cluster", "tools/cmd/quorate", "tools/internal/akka"} {
		require.Contains(t, tests[0].Packages, reads)
	}
	require.NotContains(t, tests[0].Packages, "sharding")
	for _, l := range Lanes() {
		for _, s := range l.Steps(t.Context(), w, 0) {
			run = append(run, s.Packages...)
		}
	}
	require.Empty(t, without(w.All(), run))
	require.Empty(t, without(slices.Concat(gates(), Sequential()), w.All()))
	for _, dir := range Apart() {
		require.FileExists(t, filepath.Join(w.Root, dir, "go.mod"))
	}
	_, err = Find("nope")
	require.EqualError(t, err, `there is no lane "nope"; the lanes are: race, process, mutants, seeds, fuzz, consumer, servers, languages, databases, pages`)
}

// A test that reads a document of another module is tested anew when a document has changed, until it has passed.
func TestChangedDocumentsAreReadAgain(t *testing.T) {
	w := tree(t, map[string]string{
		"go.work":       "go 1.26.0\n\nuse (\n\t./m\n\t./n\n)\n",
		".gitignore":    "/.tmp\n",
		"docs/page.md":  "a page",
		"m/m_test.go":   "package m\n\nvar page = \"../docs/page.md\"\n",
		"m/a/a_test.go": "package a\n\nvar page = filepath.Join(\"..\", \"..\", \"docs\", \"page.md\")\n",
		"m/b/b_test.go": "package b\n\nvar near, none, above = \"../m_test.go\", \"../../docs/none.md\", \"../../..\"\n",
		"n/n_test.go":   "//go:build process\n\npackage n\n\nvar page = \"../docs/page.md\"\n",
	})
	require.Equal(t, []string{"m", "m/a"}, w.Outside())
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		_, err := w.Git(t.Context(), args...)
		require.NoError(t, err)
	}
	look := func() Documents {
		d, err := w.Documents(t.Context())
		require.NoError(t, err)
		return d
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.Root, ".tmp", "log"), 0o755))
	first := look()
	require.True(t, first.Changed())
	require.NoError(t, first.Passed())
	require.False(t, look().Changed())
	require.NoError(t, os.WriteFile(filepath.Join(w.Root, "m/m_test.go"), []byte("package m\n"), 0o600))
	require.False(t, look().Changed(), "go sees that by itself")
	require.NoError(t, os.WriteFile(filepath.Join(w.Root, "docs/page.md"), []byte("another page"), 0o600))
	require.True(t, look().Changed())
	require.NoError(t, os.Remove(filepath.Join(w.Root, "docs/page.md")))
	require.True(t, look().Changed())
}

// A run beside busy loops does not pass by what an earlier one has found.
func TestResultsAreNotRemembered(t *testing.T) {
	w := tree(t, map[string]string{
		"go.work":           "go 1.26.0\n\nuse (\n\t./m\n)\n",
		"m/go.mod":          "module github.com/quorate/quorate/m\n\ngo 1.26.0\n",
		"m/p/plain_test.go": "package p\n\nimport \"testing\"\n\nfunc TestPlain(t *testing.T) {}\n",
	})
	for _, uncached := range []bool{false, true} {
		var out bytes.Buffer
		r := Runner{Root: w.Root, Out: &out, Uncached: uncached}
		for range 2 {
			out.Reset()
			require.NoError(t, r.Run(t.Context(), "test", []Step{{Packages: w.All(), Env: []string{"GOFLAGS="}}}))
		}
		require.Equal(t, !uncached, strings.Contains(out.String(), "cached"), out.String())
	}
}

func TestBusyLoopsEnd(t *testing.T) {
	l, err := StartLoad(t.Context(), 2)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
