// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"encoding/json"
	"io"
	"slices"
)

// A record sums up the runs of a figure ([newRecord]) and says whether it has met its target ([Record.aim]). Summarize
// makes those of a group, each beside its floors ([Record.beside]), and Lines writes them.

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
	CPUs   []float64          `json:"cpu_values,omitempty"`    // In the order of the runs; nil without any.
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
	Peer       bool     `json:"peer,omitempty"` // Of another product: messages that were lost are counted, and no failure.
	Notes      []string `json:"notes,omitempty"`

	Against *Comparison `json:"against,omitempty"` // What the figure is beside that of another build; nil without one.

	again bool // Another record of the same experiment goes before: the processor time is that one's.
}

// Correct reports whether every message of every run came once and in order.
func (r Record) Correct() bool { return r.Lost == 0 && r.OutOfOrder == 0 && r.Duplicated == 0 }

// newRecord sums up the runs of a figure.
func newRecord(groupName string, f Figure, outcomes []Outcome) Record {
	r := Record{Name: groupName + "/" + f.Name, Unit: f.Unit, Better: f.Better, Runs: len(outcomes)}
	for _, o := range outcomes {
		r.Values = append(r.Values, Round(o.Values[f.Value]))
		r.CPUs = append(r.CPUs, o.CPU)
		r.Stall = max(r.Stall, Round(o.Values["stall"]))
		r.Lost += o.Lost
		r.OutOfOrder += o.OutOfOrder
		r.Duplicated += o.Duplicated
		if o.Note != "" && !slices.Contains(r.Notes, o.Note) {
			r.Notes = append(r.Notes, o.Note)
		}
	}
	r.Value, r.Min, r.Max = Round(Median(r.Values)), slices.Min(r.Values), slices.Max(r.Values)
	if r.CPU = Round(Median(r.CPUs)); r.CPU == 0 {
		r.CPUs = nil // None was measured.
	}
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
func (r *Record) aim(f Figure, target float64) {
	met := r.Value <= target
	switch {
	case f.Zero:
		met = r.Max == 0 // An event that must not happen must not happen in any run.
	case f.Better == Higher:
		met = r.Value >= target
	}
	r.Target, r.Met = &target, &met
}

// Summarize returns the records of the experiments of a group. One without any outcome has
// no records.
func Summarize(group string, experiments []Runs) []Record {
	var all []Record
	var of []Figure // The figure of each record.
	byName := make(map[string]Record)
	for _, e := range experiments {
		if len(e.Outcomes) == 0 {
			continue
		}
		for n, f := range e.Figures {
			r := newRecord(group, f, e.Outcomes)
			if n > 0 {
				r.Notes, r.again = nil, true // Notes are about the experiment, and printed once.
			}
			r.Peer = e.Peer
			if e.Floor {
				stable := Steady(r.Values)
				r.Stable = &stable
			}
			byName[f.Name] = r
			all, of = append(all, r), append(of, f)
		}
	}
	for i := range all {
		all[i].beside(of[i], byName)
	}
	return all
}

// beside compares a figure with its floors.
func (r *Record) beside(f Figure, floors map[string]Record) {
	for i, name := range f.Floors {
		floor, measured := floors[name]
		if !measured {
			continue
		}
		ratio := Round(r.Value / floor.Value)
		if r.Ratios == nil {
			r.Ratios = make(map[string]float64)
		}
		if i == 0 {
			stable := Steady(floor.Values)
			r.Floor, r.Ratio, r.Stable = floor.Name, ratio, &stable
			r.CPURatio = Round(r.CPU / floor.CPU)
			if f.OfFloor > 0 {
				r.aim(f, Round(f.OfFloor*floor.Value))
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
