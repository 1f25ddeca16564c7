// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// Measures entities by the number: how many come to life in a second,
// and how many bytes each one holds that has nothing to do.
//
// All shards have a home before an experiment begins, so that nothing of their
// allocation is measured.

// activationGroup is the first message to each of many entities.
func activationGroup() rig.Group {
	return rig.Group{
		Name: "activation", About: "first message to each of 400,000 entities, 4 senders",
		Experiments: []rig.Experiment{
			rig.ChannelFloor(),
			{Measure: measureActivation, Spec: rig.Spec{Senders: rig.Senders, Entities: 400_000}, Figures: []figure.Figure{
				{Name: "activations", Value: "rate", Unit: "1/s", Better: figure.Higher, Target: 400e3, Floors: []string{"floor-channel"}},
			}},
		},
	}
}

// idleGroup is the memory of entities that have nothing to do.
func idleGroup() rig.Group {
	return rig.Group{
		Name: "idle", About: "live heap and stack of each of 1,000,000 idle entities",
		Experiments: []rig.Experiment{{Measure: measureIdle, Spec: rig.Spec{Senders: rig.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "entity-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 250},
			{Name: "entity-heap-bytes", Value: "heap", Unit: "B", Better: figure.Lower},
		}}},
	}
}

// rememberedGroup is the time until remembered entities run after a restart of all, and the memory that takes.
func rememberedGroup() rig.Group {
	spec := rig.Spec{Entities: 1_000_000}
	bounded := spec
	bounded.Rate = 100_000
	moved := spec
	moved.Before = 700
	recovery := func(s rig.Spec, suffix string) rig.Experiment {
		return rig.Experiment{Measure: measureRemembered, Spec: s, Figures: []figure.Figure{
			{Name: "recovery" + suffix, Value: "seconds", Unit: "s", Better: figure.Lower},
			{Name: "recovery-peak-bytes" + suffix, Value: "peak", Unit: "B", Better: figure.Lower},
			{Name: "remembered-bytes" + suffix, Value: "bytes", Unit: "B", Better: figure.Lower},
		}}
	}
	return rig.Group{
		Name: "remembered", About: "1,000,000 remembered entities run again after a restart of all",
		Experiments: []rig.Experiment{recovery(spec, ""), recovery(bounded, "-bounded"), recovery(moved, "-resharded")},
	}
}

// remindersGroup is what very many reminders take, and how late those are that fall due among them.
func remindersGroup() rig.Group {
	return rig.Group{
		Name: "reminders", About: "1,000,000 reminders: set, kept, and some that fall due among them", Optional: true,
		Experiments: []rig.Experiment{{Measure: measureReminders, Spec: rig.Spec{Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "set", Value: "set", Unit: "1/s", Better: figure.Higher},
			{Name: "recovery", Value: "recovery", Unit: "s", Better: figure.Lower},
			{Name: "reminder-bytes", Value: "bytes", Unit: "B", Better: figure.Lower},
			{Name: "late-p50", Value: "p50", Unit: "ms", Better: figure.Lower},
			{Name: "late-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
		}}},
	}
}
