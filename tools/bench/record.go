// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// record is one line of the result: a figure over all its runs.
type record struct {
	Name   string             `json:"name"`  // Of group and figure.
	Unit   string             `json:"unit"`  // Empty for a plain number.
	Value  float64            `json:"value"` // The median.
	Min    float64            `json:"min"`
	Max    float64            `json:"max"`
	Runs   int                `json:"runs"`
	Better string             `json:"better"`
	Values []float64          `json:"values"`                  // In the order of the runs.
	CPU    float64            `json:"cpu_us_per_op,omitempty"` // The median; all processes together.
	Stall  float64            `json:"stall_ms,omitempty"`      // The longest time of any run in which nothing arrived.
	Floor  string             `json:"floor,omitempty"`
	Ratio  float64            `json:"ratio,omitempty"`  // Of the value to that of the floor.
	Ratios map[string]float64 `json:"ratios,omitempty"` // To every floor.

	// CPURatio is the ratio of the processor time of an operation to that of the
	// floor, which drifts less than the ratio of the rates on a busy machine.
	CPURatio float64 `json:"cpu_ratio,omitempty"`

	Stable *bool    `json:"stable,omitempty"` // Neither the floor nor, for a floor, the figure itself moved by more than a fifth.
	Target *float64 `json:"target,omitempty"`
	Met    *bool    `json:"met,omitempty"`

	Lost       uint64   `json:"lost"` // Over all runs, as the two below.
	OutOfOrder uint64   `json:"out_of_order"`
	Duplicated uint64   `json:"duplicated"`
	Notes      []string `json:"notes,omitempty"`
}

// correct reports whether every message of every run came once and in order.
func (r record) correct() bool { return r.Lost == 0 && r.OutOfOrder == 0 && r.Duplicated == 0 }

// newRecord sums up the runs of a figure.
func newRecord(groupName string, f figure, outcomes []outcome) record {
	r := record{Name: groupName + "/" + f.name, Unit: f.unit, Better: f.better, Runs: len(outcomes)}
	var cpu []float64
	for _, o := range outcomes {
		r.Values = append(r.Values, round(o.Values[f.value]))
		cpu = append(cpu, o.CPU)
		r.Stall = max(r.Stall, round(o.Values["stall"]))
		r.Lost += o.Lost
		r.OutOfOrder += o.OutOfOrder
		r.Duplicated += o.Duplicated
		if o.Note != "" && !slices.Contains(r.Notes, o.Note) {
			r.Notes = append(r.Notes, o.Note)
		}
	}
	r.Value, r.Min, r.Max = round(median(r.Values)), slices.Min(r.Values), slices.Max(r.Values)
	r.CPU = round(median(cpu))
	if f.target > 0 || f.zero {
		met := r.Value <= f.target
		switch {
		case f.zero:
			met = r.Max == 0 // What must not happen must not happen in any run.
		case f.better == higher:
			met = r.Value >= f.target
		}
		r.Target, r.Met = &f.target, &met
	}
	return r
}

// round leaves five digits: no measurement has more.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// summarize returns the records of a group. Outcomes are those of each
// experiment, run by run; an experiment without any has no records.
func summarize(g group, outcomes [][]outcome) []record {
	var all []record
	byName := make(map[string]record)
	for i, e := range g.experiments {
		if len(outcomes[i]) == 0 {
			continue
		}
		for n, f := range e.figures {
			r := newRecord(g.name, f, outcomes[i])
			if n > 0 {
				r.Notes = nil // They are about the experiment, and said once.
			}
			if e.floor {
				stable := steady(r.Values)
				r.Stable = &stable
			}
			byName[f.name] = r
			all = append(all, r)
		}
	}
	at := 0
	for i, e := range g.experiments {
		if len(outcomes[i]) == 0 {
			continue
		}
		for _, f := range e.figures {
			all[at].beside(f, byName)
			at++
		}
	}
	return all
}

// beside puts a figure beside its floors.
func (r *record) beside(f figure, floors map[string]record) {
	for i, name := range f.floors {
		floor, measured := floors[name]
		if !measured {
			continue
		}
		ratio := round(r.Value / floor.Value)
		if r.Ratios == nil {
			r.Ratios = make(map[string]float64)
		}
		if i == 0 {
			stable := steady(floor.Values)
			r.Floor, r.Ratio, r.Stable = floor.Name, ratio, &stable
			r.CPURatio = round(r.CPU / floor.CPU)
		}
		r.Ratios[floor.Name] = ratio
	}
}

// writeRecords writes a line for each record.
func writeRecords(w io.Writer, records []record) error {
	out := json.NewEncoder(w)
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes what people want to see, at most 80 columns wide.
func writeTable(w io.Writer, records []record) {
	const layout = "%-34s %8s %8s %8s %5s %6s %s\n"
	fmt.Fprintf(w, "\n"+layout, "figure", "median", "min", "max", "ratio", "target", "")
	for _, r := range records {
		name := r.Name
		if r.Unit != "" {
			name += " " + r.Unit
		}
		ratio, target, mark := "", "", ""
		if r.Floor != "" {
			ratio = short(r.Ratio)
		}
		if r.Target != nil {
			target, mark = short(*r.Target), "*"
			if *r.Met {
				mark = "+"
			}
		}
		if r.Stable != nil && !*r.Stable {
			mark += "~"
		}
		if !r.correct() {
			mark += "!"
		}
		fmt.Fprintf(w, layout, name, short(r.Value), short(r.Min), short(r.Max), ratio, target, mark)
	}
	fmt.Fprintln(w, "\n+ target met   * target missed   ~ floor moved by over 20 %   ! messages wrong")
	for _, r := range records {
		for _, note := range r.Notes {
			fmt.Fprintf(w, "%s: %s\n", r.Name, note)
		}
		if !r.correct() {
			fmt.Fprintf(w, "%s: %d lost, %d out of order, %d duplicated\n", r.Name, r.Lost, r.OutOfOrder, r.Duplicated)
		}
	}
}

// short prints a number in a few characters.
func short(v float64) string {
	switch {
	case math.Abs(v) >= 1e6:
		return strings.Replace(fmt.Sprintf("%.3gM", v/1e6), "e+03", "000", 1)
	case math.Abs(v) >= 10_000:
		return fmt.Sprintf("%.0fk", v/1e3)
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
