// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// Measures entities whose states are saved in PostgreSQL, beside the database itself:
// one change after the other, for the latency, and many at a time, for the rate.
//
//	floor    statement ──────────────────────────────────────> PostgreSQL
//	product  ask ──> entity ──> keeper, which gathers saves ──> PostgreSQL
//
// Each run starts a server of its own, as the distribution packages it, with its data in a directory of
// its own and the settings with which a commit is on the disk before it is answered. Without the
// programs of PostgreSQL the group is left out.

// statesGroup is changes of states that are saved.
func statesGroup() rig.Group {
	one := func(m rig.Measurer, name string, f figure.Figure) rig.Experiment {
		f.Name, f.Value, f.Unit, f.Better = name, "p50", "us", figure.Lower
		return rig.Experiment{Measure: m, Spec: rig.Spec{Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{f}}
	}
	many := func(m rig.Measurer, name string, f figure.Figure) rig.Experiment {
		f.Name, f.Value, f.Unit, f.Better = name, "rate", "1/s", figure.Higher
		return rig.Experiment{Measure: m, Spec: rig.Spec{Size: 64, Senders: 1024, Entities: 1024}, Figures: []figure.Figure{f}}
	}
	return rig.Group{
		Name: "state", About: "changes of entities, saved in PostgreSQL, 1 and 1,024 at a time",
		Missing: missing,
		Experiments: []rig.Experiment{
			one(measureStatements, "floor-update-p50", figure.Figure{}).AsFloor(),
			one(measureSaves, "save-p50", figure.Figure{Floors: []string{"floor-update-p50"}}),
			many(measureStatements, "floor-update-1024", figure.Figure{}).AsFloor(),
			many(measureSaves, "save-1024", figure.Figure{Target: 10e3, Floors: []string{"floor-update-1024"}}),
		},
	}
}
