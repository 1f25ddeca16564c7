// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"fmt"
	"io"
	"math"
)

// Table writes the records for people, at most 80 columns wide: the figures, and below them
// the processor time of an operation of each experiment.
func Table(w io.Writer, records []Record) {
	const layout = "%-34s %8s %8s %8s %5s %6s %s\n"
	fmt.Fprintf(w, "\n"+layout, "figure", "median", "min", "max", "ratio", "target", "")
	for _, r := range records {
		name := r.Name
		if r.Unit != "" {
			name += " " + r.Unit
		}
		ratio := ""
		if r.Floor != "" {
			ratio = short(r.Ratio)
		}
		target, mark := aimed(r.Target, r.Met)
		if r.Stable != nil && !*r.Stable {
			mark += "~"
		}
		if !r.Correct() {
			mark += "!"
		}
		fmt.Fprintf(w, layout, name, short(r.Value), short(r.Min), short(r.Max), ratio, target, mark)
	}
	peerTable(w, records)
	cpuTable(w, records)
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

// peerTable writes the ratios of figures to those of other products.
func peerTable(w io.Writer, records []Record) {
	const layout = "%-34s %-38s %6s\n"
	headed := false
	for _, r := range records {
		for _, of := range records {
			ratio, compared := r.Ratios[of.Name]
			if !compared || !of.Peer {
				continue
			}
			if !headed {
				fmt.Fprintf(w, "\n"+layout, "figure", "beside", "ratio")
				headed = true
			}
			fmt.Fprintf(w, layout, r.Name, of.Name, short(ratio))
		}
	}
}

// cpuTable writes the processor time of an operation of each experiment that has measured it.
func cpuTable(w io.Writer, records []Record) {
	const layout = "%-52s %8s %5s %6s %s\n"
	headed := false
	for _, r := range records {
		if r.CPU == 0 || r.again {
			continue
		}
		if !headed {
			fmt.Fprintf(w, "\n"+layout, "processor time of an operation, us", "median", "ratio", "target", "")
			headed = true
		}
		ratio := ""
		if r.CPURatio > 0 {
			ratio = short(r.CPURatio)
		}
		target, mark := aimed(r.CPUTarget, r.CPUMet)
		fmt.Fprintf(w, layout, r.Name, short(r.CPU), ratio, target, mark)
	}
}

// aimed returns a target and the mark that says whether it was met; both are empty when
// there is none.
func aimed(target *float64, met *bool) (text, mark string) {
	switch {
	case target == nil:
		return "", ""
	case *met:
		return short(*target), "+"
	default:
		return short(*target), "*"
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
