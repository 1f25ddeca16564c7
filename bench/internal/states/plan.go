// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package states measures entities whose states are saved in PostgreSQL, beside the database itself:
// one change after the other, for the latency, and many at a time, for the rate.
//
//	floor    statement ──────────────────────────────────────> PostgreSQL
//	product  ask ──> entity ──> keeper, which gathers saves ──> PostgreSQL
//
// Each run starts a server of its own, as the distribution packages it, with its data in a directory of
// its own and the settings with which a commit is on the disk before it is answered. Without the
// programs of PostgreSQL the group is left out.
package states

import (
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
)

// Group is changes of states that are saved.
func Group() plan.Group {
	one := func(role, name string, f figure.Figure) plan.Experiment {
		f.Name, f.Value, f.Unit, f.Better = name, "p50", "us", figure.Lower
		return plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{f}}
	}
	many := func(role, name string, f figure.Figure) plan.Experiment {
		f.Name, f.Value, f.Unit, f.Better = name, "rate", "1/s", figure.Higher
		return plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: 1024, Entities: 1024}, Figures: []figure.Figure{f}}
	}
	return plan.Group{
		Name: "state", About: "changes of entities, saved in PostgreSQL, 1 and 1,024 at a time",
		Missing: missing,
		Experiments: []plan.Experiment{
			one(roleFloor, "floor-update-p50", figure.Figure{}).AsFloor(),
			one(roleSaves, "save-p50", figure.Figure{Floors: []string{"floor-update-p50"}}),
			many(roleFloor, "floor-update-1024", figure.Figure{}).AsFloor(),
			many(roleSaves, "save-1024", figure.Figure{Target: 10e3, Floors: []string{"floor-update-1024"}}),
		},
	}
}

// The roles that measure statements, and entities.
const (
	roleFloor = "state-floor"
	roleSaves = "state-saves"
)

// Roles returns the roles of the benchmarks of states.
func Roles() process.Roles {
	return process.Roles{Measurers: map[string]process.Measurer{roleFloor: measureFloor, roleSaves: measureSaves}}
}
