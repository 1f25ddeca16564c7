// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math"
)

// Table writes the records for people, at most 80 columns wide.
func Table(w io.Writer, records []Record) {
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
		if !r.Correct() {
			mark += "!"
		}
		fmt.Fprintf(w, layout, name, short(r.Value), short(r.Min), short(r.Max), ratio, target, mark)
	}
	fmt.Fprintln(w, "\n+ target met   * target missed   ~ floor moved by over 20 %   ! messages wrong")
	for _, r := range records {
		for _, note := range r.Notes {
			fmt.Fprintf(w, "%s: %s\n", r.Name, note)
		}
		if !r.Correct() {
			fmt.Fprintf(w, "%s: %d lost, %d out of order, %d duplicated\n", r.Name, r.Lost, r.OutOfOrder, r.Duplicated)
		}
	}
}

// short prints a number in a few characters.
func short(v float64) string {
	switch {
	case math.Abs(v) >= 999.5e6: // Three digits are not enough.
		return fmt.Sprintf("%.0fM", v/1e6)
	case math.Abs(v) >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case math.Abs(v) >= 10_000:
		return fmt.Sprintf("%.0fk", v/1e3)
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
