// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package configtest

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/internal/patience"
)

// The suite: parts lists what a format must do, with a sentence for each. What the parts
// read they have written before: trees that are drawn (tree.go), and those that no loader
// takes. At the end is what holds for any text.

// rounds is how many random trees each part of the suite uses.
const rounds = 200

// Limit is how long the suite lets a format read one text. It is far above what the largest
// takes. Time in which the process of the test did not run does not count.
const Limit = time.Minute

// TestFormat runs the conformance suite. The function write returns a tree in the notation
// of the format: maps, lists, text, bool, int and float64. It puts each key at the top of
// the tree into a line of its own.
//
//   - The end of the names is in lower case, begins with a dot and is not built in.
//   - A tree is read as the same tree in JSON is, whichever goroutine reads.
//   - The line of a key is the one that has it.
//   - A tree that is nested too deep, or has too many keys, is refused, the largest within
//     [Limit].
//   - A text that cannot be read is a list of faults, as [CheckText] has it.
func TestFormat(t *testing.T, format config.Format, write func(tree map[string]any) string) {
	t.Helper()
	for _, part := range parts() {
		t.Run(part.name, func(t *testing.T) { part.check(t, subject{format, write}) })
	}
}

// subject is a format under test.
type subject struct {
	format config.Format
	write  func(map[string]any) string
}

// part is one demand on a format.
type part struct {
	name  string
	check func(testing.TB, subject)
}

func parts() []part {
	return []part{
		{"the end of the names is its own", checkExtension},
		{"a tree is read as in JSON", checkTrees},
		{"goroutines read at the same time", checkConcurrency},
		{"a fault is shown in its line", checkLines},
		{"a tree that is too deep is refused", checkDepth},
		{"a tree with too many keys is refused", checkNumber},
		{"a damaged text is a list of faults", checkDamage},
	}
}

// name is the name of a file in the format.
func (s subject) name() string { return "suite" + s.format.Extension() }

// read returns what a text is read as.
func (s subject) read(text string) (map[string]any, error) {
	return read(s.name(), text, s.format)
}

func read(name, text string, given ...config.Format) (map[string]any, error) {
	file, err := config.Parse(name, []byte(text), given...)
	if err != nil {
		return nil, err
	}
	tree := map[string]any{}
	return tree, file.Decode("", &tree)
}

func checkExtension(t testing.TB, s subject) {
	t.Helper()
	ext := s.format.Extension()
	if len(ext) < 2 || ext[0] != '.' || ext != strings.ToLower(ext) {
		t.Fatalf("the end of the names is %q: want a dot and lower case", ext)
	}
	if slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
		t.Fatalf("the end of the names is %q, which is built in", ext)
	}
}

func checkTrees(t testing.TB, s subject) {
	t.Helper()
	for seed := range uint64(rounds) {
		checkTree(t, s, seed)
	}
}

// checkTree compares one tree with that of JSON.
func checkTree(t testing.TB, s subject, seed uint64) {
	t.Helper()
	tree := RandomTree(newRand(seed))
	want, err := read("suite.json", Flow(tree, ": "))
	if err != nil {
		t.Fatalf("seed %d: JSON: %v", seed, err)
	}
	text := s.write(tree)
	got, err := s.read(text)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("seed %d: as %T of\n%s\nwant %#v\ngot  %#v", seed, s.format, text, want, got)
	}
}

func checkConcurrency(t testing.TB, s subject) {
	t.Helper()
	var reading sync.WaitGroup
	for worker := range uint64(4) {
		reading.Go(func() { // Ends with its trees; this function waits.
			for seed := range uint64(rounds / 10) {
				tree := RandomTree(newRand(1000*worker + seed))
				want, _ := read("suite.json", Flow(tree, ": "))
				if got, err := s.read(s.write(tree)); err != nil || !reflect.DeepEqual(want, got) {
					t.Errorf("worker %d, seed %d: want %#v, got %#v, %v", worker, seed, want, got, err)
				}
			}
		})
	}
	reading.Wait()
}

// checkLines reads keys that no setting has.
func checkLines(t testing.TB, s subject) {
	t.Helper()
	tree := map[string]any{"alpha": 1, "beta": "text", "gamma": []any{1, 2}, "delta": map[string]any{"below": true}}
	text := s.write(tree)
	file, err := config.Parse(s.name(), []byte(text), s.format)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	faults := faultsOf(t, file.Decode("", new(struct{})))
	if len(faults) != len(tree) {
		t.Fatalf("%d of %d unknown keys are faults: %v", len(faults), len(tree), faults)
	}
	lines := strings.Split(text, "\n")
	for _, e := range faults {
		if e.Line < 1 || e.Line > len(lines) || !strings.Contains(lines[e.Line-1], e.Key) {
			t.Fatalf("the key %s is not in line %d of\n%s", e.Key, e.Line, text)
		}
	}
}

func checkDepth(t testing.TB, s subject) {
	t.Helper()
	var value any = 1
	for range config.MaxDepth + 8 {
		value = []any{value}
	}
	s.refuses(t, map[string]any{"list": value}, "lists")
	value = 1
	for range config.MaxDepth + 8 {
		value = map[string]any{"a": value}
	}
	s.refuses(t, map[string]any{"map": value}, "maps")
}

func checkNumber(t testing.TB, s subject) {
	t.Helper()
	keys := map[string]any{}
	for i := range 1 << 15 {
		keys["k"+strconv.Itoa(i)] = 1
	}
	s.refuses(t, keys, "keys")
	s.refuses(t, map[string]any{"list": slices.Repeat([]any{1}, 1<<15)}, "items of a list")
}

// refuses fails the test unless a tree is refused within the limit.
func (s subject) refuses(t testing.TB, tree map[string]any, what string) {
	t.Helper()
	watch := patience.Start(t)
	_, err := s.read(s.write(tree))
	if err == nil {
		t.Fatalf("too many %s are read", what)
	}
	CheckFaults(t, err)
	if took := watch.Elapsed(); took > Limit {
		t.Fatalf("too many %s took %v", what, took)
	}
}

// checkDamage reads texts that are cut off, or in which a byte is another.
func checkDamage(t testing.TB, s subject) {
	t.Helper()
	for seed := range uint64(rounds) {
		rnd := newRand(seed)
		text := []byte(s.write(RandomTree(rnd)))
		CheckText(t, s.name(), string(text[:rnd.IntN(len(text))]), s.format)
		text[rnd.IntN(len(text))] = byte(rnd.IntN(256))
		CheckText(t, s.name(), string(text), s.format)
	}
}

// CheckText reads any text as a file of a name, twice. It fails the test unless both end
// alike: in a value, or in faults that [CheckFaults] takes.
func CheckText(t testing.TB, name, text string, given ...config.Format) {
	t.Helper()
	first, err := read(name, text, given...)
	second, again := read(name, text, given...)
	if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
		t.Fatalf("two readings differ:\n%v\n%v\n%q", err, again, text)
	}
	if err == nil && len(first) != len(second) {
		t.Fatalf("two readings differ:\n%#v\n%#v\n%q", first, second, text)
	}
	if err != nil {
		CheckFaults(t, err)
	}
}

// CheckFaults fails the test unless an error is a list of faults, each of which says in one
// line what is wrong.
func CheckFaults(t testing.TB, err error) {
	t.Helper()
	_ = faultsOf(t, err)
}

// faultsOf checks the faults of an error and returns them.
func faultsOf(t testing.TB, err error) config.Errors {
	t.Helper()
	var faults config.Errors
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("not a list of faults: %v", err)
	}
	for _, e := range faults {
		if e.Reason == "" || e.Err == nil || strings.ContainsFunc(e.Reason, unicode.IsControl) {
			t.Fatalf("a fault must say what is wrong in one line: %#v", e)
		}
	}
	return faults
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0xc0f)) }
