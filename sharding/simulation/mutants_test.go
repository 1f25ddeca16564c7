// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a defect put into the machines, which the seeds must find.
type mutant struct {
	name, test, file string
	old, new         string
}

var mutants = []mutant{
	{
		test: "TestMoves", name: "no promise", file: "control_kind.go",
		old: "		k.send(from, Refused{Kind: k.name, Promise: k.promise})\n		return false\n",
		new: "		return true\n",
	},
	{
		test: "TestMoves", name: "epoch from the region's copy", file: "coordinator_allocate.go",
		old: "		s.home, s.epoch, s.phase = node, epoch, phaseStarting\n",
		new: "		s.home, s.epoch, s.phase = node, c.kind.region.homes[p.Shard].Epoch, phaseStarting\n		s.epoch.N++\n",
	},
	{
		test: "TestMoves", name: "opened before everybody has answered", file: "coordinator.go",
		old: "if !c.opened && len(c.silent()) == 0 {",
		new: "if !c.opened && len(c.silent()) < len(c.peers) {",
	},
	{
		test: "TestMoves", name: "streams that do not begin anew", file: "coordinator_allocate.go",
		old: "if !s.travelling {",
		new: "if s.base.IsZero() {",
	},
	{
		test: "TestMoves", name: "positions that do not travel", file: "shard_home.go",
		old: "s.stream(p.Origin).last = p.Seq",
		new: "s.stream(p.Origin).last = 0",
	},
	{
		test: "TestMoves", name: "gaps passed over", file: "shard.go",
		old: "	case m.Seq == in.last+1:\n",
		new: "	case m.Seq > in.last:\n",
	},
	{
		test: "TestMoves", name: "home given before the old one has stopped", file: "coordinator.go",
		old: "		s.phase, s.deadline = phaseStopping, c.now().Add(c.kind.timings.Handoff)\n		stops[s.home]",
		new: "		stops[s.home] = append(stops[s.home], ShardEpoch{Shard: ShardID(i), Epoch: s.epoch})\n		*s = shard{epoch: s.epoch, base: s.base}\n		stops[s.home]",
	},
	{
		test: "TestStopsEndInTime", name: "stop that is never taken back", file: "coordinator.go",
		old: "if s.phase == phaseStopping && c.now() >= s.deadline {",
		new: "if s.phase == phaseStopping && c.now() < 0 {",
	},
}

// Each of these defects turns the seeds red, so that the seeds are known to bite.
// It takes a minute: go test -v -tags mutants -run TestMutantsAreCaught ./simulation.
func TestMutantsAreCaught(t *testing.T) {
	dir, err := filepath.Abs("../protocol")
	require.NoError(t, err)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := m.run(t, dir)
			require.Error(t, err, "the seeds are green with the defect")
			require.Contains(t, out, "--- FAIL: "+m.test, out)
			for line := range strings.Lines(out) {
				if strings.Contains(line, "violation at") || strings.Contains(line, "Error:") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// run runs the seeds with the defect in place.
func (m mutant) run(t *testing.T, dir string) (string, error) {
	t.Helper()
	path := filepath.Join(dir, m.file)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), m.old), "the place of the defect in %s", m.file)
	tmp := t.TempDir()
	mutated := filepath.Join(tmp, m.file)
	require.NoError(t, os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	require.NoError(t, err)
	file := filepath.Join(tmp, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", file, "-run", m.test, ".") //nolint:gosec // Our own command.
	cmd.Env = append(os.Environ(), "QUORATE_SEEDS=60", "QUORATE_SEED=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
