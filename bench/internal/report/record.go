// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package report turns the outcomes of runs into records, and writes them: a line of
// JSON for each figure, for programs, and a table, for people.
//
// The value of a record is the median of its runs. It has a ratio to each of its floors
// that was measured too, and is marked as unstable when the first of them moved by more
// than [statistics.MovedMax] between its runs: the machine was busy then. A record knows
// whether a message was lost, doubled or overtaken in any of its runs.
package report

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/statistics"
)

// Record is one line of the result: a figure over all its runs.
type Record struct {
	Name   string             `json:"name"`  // Name of group and figure.
	Unit   string             `json:"unit"`  // Empty for a plain number.
	Value  float64            `json:"value"` // The median.
	Min    float64            `json:"min"`
	Max    float64            `json:"max"`
	Runs   int                `json:"runs"`
	Better string             `json:"better"`
	Values []float64          `json:"values"`                  // In the order of the runs.
	CPU    float64            `json:"cpu_us_per_op,omitempty"` // Median of the processor time, of all processes together.
	Stall  float64            `json:"stall_ms,omitempty"`      // Longest time without an arrival, of all runs.
	Floor  string             `json:"floor,omitempty"`
	Ratio  float64            `json:"ratio,omitempty"`  // Ratio of the value to that of the first floor.
	Ratios map[string]float64 `json:"ratios,omitempty"` // Ratio to every floor.

	// CPURatio is the ratio of the processor time per operation to that of the floor,
	// which drifts less than the ratio of the rates on a busy machine.
	CPURatio  float64  `json:"cpu_ratio,omitempty"`
	CPUTarget *float64 `json:"cpu_target,omitempty"`
	CPUMet    *bool    `json:"cpu_met,omitempty"`

	Stable *bool    `json:"stable,omitempty"` // Neither the floor nor, for a floor, the figure itself moved by more than a fifth.
	Target *float64 `json:"target,omitempty"`
	Met    *bool    `json:"met,omitempty"`

	Lost       uint64   `json:"lost"` // Sum over all runs, as the two below.
	OutOfOrder uint64   `json:"out_of_order"`
	Duplicated uint64   `json:"duplicated"`
	Notes      []string `json:"notes,omitempty"`

	again bool // Another record of the same experiment goes before: the processor time is that one's.
}

// Correct reports whether every message of every run came once and in order.
func (r Record) Correct() bool { return r.Lost == 0 && r.OutOfOrder == 0 && r.Duplicated == 0 }

// newRecord sums up the runs of a figure.
func newRecord(groupName string, f plan.Figure, outcomes []process.Outcome) Record {
	r := Record{Name: groupName + "/" + f.Name, Unit: f.Unit, Better: f.Better, Runs: len(outcomes)}
	var cpu []float64
	for _, o := range outcomes {
		r.Values = append(r.Values, statistics.Round(o.Values[f.Value]))
		cpu = append(cpu, o.CPU)
		r.Stall = max(r.Stall, statistics.Round(o.Values["stall"]))
		r.Lost += o.Lost
		r.OutOfOrder += o.OutOfOrder
		r.Duplicated += o.Duplicated
		if o.Note != "" && !slices.Contains(r.Notes, o.Note) {
			r.Notes = append(r.Notes, o.Note)
		}
	}
	r.Value, r.Min, r.Max = statistics.Round(statistics.Median(r.Values)), slices.Min(r.Values), slices.Max(r.Values)
	r.CPU = statistics.Round(statistics.Median(cpu))
	if f.Target > 0 || f.Zero {
		r.aim(f, f.Target)
	}
	if f.CPU > 0 {
		met := r.CPU <= f.CPU
		r.CPUTarget, r.CPUMet = &f.CPU, &met
	}
	return r
}

// aim compares the value of a figure with its target.
func (r *Record) aim(f plan.Figure, target float64) {
	met := r.Value <= target
	switch {
	case f.Zero:
		met = r.Max == 0 // An event that must not happen must not happen in any run.
	case f.Better == plan.Higher:
		met = r.Value >= target
	}
	r.Target, r.Met = &target, &met
}

// Summarize returns the records of a group. Outcomes are those of each
// experiment, run by run; an experiment without any has no records.
func Summarize(g plan.Group, outcomes [][]process.Outcome) []Record {
	var all []Record
	byName := make(map[string]Record)
	for i, e := range g.Experiments {
		if len(outcomes[i]) == 0 {
			continue
		}
		for n, f := range e.Figures {
			r := newRecord(g.Name, f, outcomes[i])
			if n > 0 {
				r.Notes, r.again = nil, true // Notes are about the experiment, and printed once.
			}
			if e.Floor {
				stable := statistics.Steady(r.Values)
				r.Stable = &stable
			}
			byName[f.Name] = r
			all = append(all, r)
		}
	}
	at := 0
	for i, e := range g.Experiments {
		if len(outcomes[i]) == 0 {
			continue
		}
		for _, f := range e.Figures {
			all[at].beside(f, byName)
			at++
		}
	}
	return all
}

// beside compares a figure with its floors.
func (r *Record) beside(f plan.Figure, floors map[string]Record) {
	for i, name := range f.Floors {
		floor, measured := floors[name]
		if !measured {
			continue
		}
		ratio := statistics.Round(r.Value / floor.Value)
		if r.Ratios == nil {
			r.Ratios = make(map[string]float64)
		}
		if i == 0 {
			stable := statistics.Steady(floor.Values)
			r.Floor, r.Ratio, r.Stable = floor.Name, ratio, &stable
			r.CPURatio = statistics.Round(r.CPU / floor.CPU)
			if f.OfFloor > 0 {
				r.aim(f, statistics.Round(f.OfFloor*floor.Value))
			}
		}
		r.Ratios[floor.Name] = ratio
	}
}

// Lines writes a line for each record.
func Lines(w io.Writer, records []Record) error {
	out := json.NewEncoder(w)
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
