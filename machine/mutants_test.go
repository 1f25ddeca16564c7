// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package machine

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a defect of the filter of clock readings, and the test that must find it: old is
// replaced by new in filter.go.
type mutant struct{ name, test, old, new string }

var mutants = []mutant{
	{"the counter is trusted without bound", "TestReadingsHoldThePresent", "m.ticks-r.first.ticks < p.window {", "p.window > 0 {"},
	{"a counter is measured once", "TestNothingBeginsAfterTheEndWhateverTheCounterDoes", "	if here.spread > p.window {\n", "	if after >= before {\n"},
	{"readers do not hear of a counter that has gone wrong", "TestNothingBeginsAfterTheEndWhateverTheCounterDoes", "p != nil && p == r.filter.pace.Load() {", "p != nil {"},
	{"nothing is left between a reading and the end", "TestNothingBeginsAfterTheEndWhateverTheCounterDoes", "r.To <= end.Add(-margin)", "r.To <= end && margin > 0"},
	{"an old reading is not told from a new one", "TestReadingsHoldThePresent", "Reading{r.at, r.at.Add(readingSlack)}", "Reading{r.at, r.at}"},
	{"a counter that goes back is believed", "TestAPauseIsSeenByTheFirstReading", "m.ticks > r.last && m.ticks-r.first.ticks < p.window", "int64(m.ticks-r.first.ticks) < int64(p.window)"},
	{"a counter that stands still is believed", "TestDoubtsEndAReading", "m.ticks > r.last &&", "m.ticks >= r.last &&"},
	{"another processor is believed", "TestDoubtsEndAReading", "if m.processor == r.first.processor && m.ticks", "if m.ticks"},
	{"the counter is read after the clock", "TestReadingsHoldThePresent", "	r.first = f.mark()\n	r.at = f.clock()\n", "	r.at = f.clock()\n	r.first = f.mark()\n"},
	{"any rate is the rate of a counter", "TestCountersThatAreNoneAreNotUsed", "if rate >= rateMin && rate <= maxRate {", "if rate != 0 {"},
}

func TestMutantsAreCaught(t *testing.T) {
	source, err := os.ReadFile("filter.go")
	require.NoError(t, err)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(string(source), m.old), "the place of the defect")
			out, err := m.run(t, strings.Replace(string(source), m.old, m.new, 1))
			require.Error(t, err, "the tests are green with the defect")
			require.Contains(t, out, "--- FAIL: "+m.test, out)
		})
	}
}

// run runs the test of a defect over a source that has the defect.
func (m mutant) run(t *testing.T, source string) (string, error) {
	t.Helper()
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	tmp := t.TempDir()
	changed, list := filepath.Join(tmp, "filter.go"), filepath.Join(tmp, "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(source), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, "filter.go"): changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", list, "-run", "^"+m.test+"$", ".")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
