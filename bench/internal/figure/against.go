// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"fmt"
	"io"
	"slices"
)

// Two builds of the program that took turns are compared figure by figure.

// Verdict says what a figure is beside that of another build.
type Verdict string

// A figure is better or worse if all its runs are, beside all runs of the other build. By chance alone that happens
// to one of ten figures with three runs of each build, to one of 35 with four, and to one of 126 with five.
const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Same   Verdict = "same" // What differs is within what the runs of one build differ by.
)

// Comparison is a figure beside that of another build.
type Comparison struct {
	Other   float64 `json:"other"` // The median of the other build.
	Ratio   float64 `json:"ratio"` // The median of this build to that of the other; 0 if the other's is 0.
	Verdict Verdict `json:"verdict"`

	// The same of the processor time of an operation; without values where none was measured.
	CPUOther   float64 `json:"cpu_other,omitempty"`
	CPURatio   float64 `json:"cpu_ratio,omitempty"`
	CPUVerdict Verdict `json:"cpu_verdict,omitempty"`
}

// Beside sets what the records are beside those of another build, which may lack some.
func Beside(records, other []Record) {
	for i := range records {
		r := &records[i]
		at := slices.IndexFunc(other, func(o Record) bool { return o.Name == r.Name })
		if at < 0 {
			continue
		}
		o := other[at]
		c := &Comparison{Other: o.Value, Ratio: Round(r.Value / o.Value), Verdict: judge(r.Values, o.Values, r.Better)}
		if r.CPU > 0 && o.CPU > 0 && !r.again {
			c.CPUOther, c.CPURatio, c.CPUVerdict = o.CPU, Round(r.CPU/o.CPU), judge(r.CPUs, o.CPUs, Lower)
		}
		r.Against = c
	}
}

// judge compares the values of this build with those of another.
func judge(this, other []float64, better string) Verdict {
	switch above, below := slices.Min(this) > slices.Max(other), slices.Max(this) < slices.Min(other); {
	case above && better == Higher, below && better == Lower:
		return Better
	case above, below:
		return Worse
	default:
		return Same
	}
}

// BesideTable writes for people, at most 80 columns wide, what the records are beside those of another build.
func BesideTable(w io.Writer, records []Record) {
	const layout = "%-47s %8s %8s %6s %s\n"
	fmt.Fprintf(w, "\n"+layout, "beside the other build", "other", "this", "ratio", "verdict")
	count := map[Verdict]int{}
	for _, r := range records {
		c := r.Against
		if c == nil {
			fmt.Fprintf(w, layout, r.Name, "-", short(r.Value), "", "absent")
			continue
		}
		count[c.Verdict]++
		fmt.Fprintf(w, layout, r.Name, short(c.Other), short(r.Value), short(c.Ratio), c.Verdict)
		if c.CPUVerdict != "" {
			count[c.CPUVerdict]++
			fmt.Fprintf(w, layout, "  processor time of an operation, us", short(c.CPUOther), short(r.CPU), short(c.CPURatio), c.CPUVerdict)
		}
	}
	fmt.Fprintf(w, "\n%d better, %d worse, %d the same; better and worse: all runs are\n", count[Better], count[Worse], count[Same])
}
