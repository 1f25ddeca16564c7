// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package entities measures entities by the number: how many come to life in a second,
// and how many bytes each one holds that has nothing to do.
//
// All shards have a home before an experiment begins, so that nothing of their
// allocation is measured.
package entities

import (
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
)

// Activation is the first message to each of many entities.
func Activation() plan.Group {
	return plan.Group{
		Name: "activation", About: "first message to each of 400,000 entities, 4 senders",
		Experiments: []plan.Experiment{
			floor.Channel(),
			{Spec: process.Spec{Role: roleActivation, Senders: plan.Senders, Entities: 400_000}, Figures: []figure.Figure{
				{Name: "activations", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 400e3, Floors: []string{"floor-channel"}},
			}},
		},
	}
}

// Idle is the memory of entities that have nothing to do.
func Idle() plan.Group {
	return plan.Group{
		Name: "idle", About: "live heap and stack of each of 1,000,000 idle entities",
		Experiments: []plan.Experiment{{Spec: process.Spec{Role: roleIdle, Senders: plan.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "entity-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 250},
			{Name: "entity-heap-bytes", Value: "heap", Unit: "B", Better: figure.Lower},
		}}},
	}
}

// Remembered is the time until remembered entities run after a restart of all, and the memory that takes.
func Remembered() plan.Group {
	spec := process.Spec{Role: roleRemembered, Entities: 1_000_000}
	bounded := spec
	bounded.Rate = 100_000
	moved := spec
	moved.Before = 700
	figures := func(suffix string) []figure.Figure {
		return []figure.Figure{
			{Name: "recovery" + suffix, Value: "seconds", Unit: "s", Better: figure.Lower},
			{Name: "recovery-peak-bytes" + suffix, Value: "peak", Unit: "B", Better: figure.Lower},
			{Name: "remembered-bytes" + suffix, Value: "bytes", Unit: "B", Better: figure.Lower},
		}
	}
	return plan.Group{
		Name: "remembered", About: "1,000,000 remembered entities run again after a restart of all",
		Experiments: []plan.Experiment{{Spec: spec, Figures: figures("")}, {Spec: bounded, Figures: figures("-bounded")}, {Spec: moved, Figures: figures("-resharded")}},
	}
}

// Reminders is what very many reminders take, and how late those are that fall due among them.
func Reminders() plan.Group {
	return plan.Group{
		Name: "reminders", About: "1,000,000 reminders: set, kept, and some that fall due among them", Optional: true,
		Experiments: []plan.Experiment{{Spec: process.Spec{Role: roleReminders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "set", Value: "set", Unit: "1/s", Better: figure.Higher},
			{Name: "recovery", Value: "recovery", Unit: "s", Better: figure.Lower},
			{Name: "reminder-bytes", Value: "bytes", Unit: "B", Better: figure.Lower},
			{Name: "late-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
			{Name: "late-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
		}}},
	}
}

// The roles that measure entities by the number.
const (
	roleActivation = "activation"
	roleIdle       = "idle"
	roleRemembered = "remembered"
	roleReminders  = "reminders"
)

// Roles returns the roles of the benchmarks of entities.
func Roles() process.Roles {
	return process.Roles{Measurers: map[string]process.Measurer{
		roleActivation: measureActivation, roleIdle: measureIdle, roleRemembered: measureRemembered, roleReminders: measureReminders,
	}}
}
