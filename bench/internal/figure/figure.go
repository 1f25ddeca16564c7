// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package figure

// Figure selects a figure of an experiment's outcome.
type Figure struct {
	Name   string   // Name of the figure; unique within its group.
	Value  string   // Key of the value in the outcome.
	Unit   string   // Unit for people.
	Better string   // "higher" or "lower".
	Target float64  // Value to be reached; zero for none.
	Zero   bool     // The target is zero.
	Floors []string // Figures of the same group to compare with; the first one counts.

	// OfFloor is the target of a figure whose target is so many times its first floor; zero
	// for none.
	OfFloor float64

	// CPU is the processor time of an operation, in microseconds and of all processes
	// together, that is to be reached; zero for none.
	CPU float64
}

// These words say which way is better.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Outcome is the result of one run.
type Outcome struct {
	Values     map[string]float64 `json:"values"`
	CPU        float64            `json:"cpu"` // Microseconds of processor time per operation, of all processes together.
	Lost       uint64             `json:"lost"`
	OutOfOrder uint64             `json:"out_of_order"`
	Duplicated uint64             `json:"duplicated"`
	Note       string             `json:"note,omitempty"` // What a reader should know about the run.
}

// Correct reports whether every message came once and in order.
func (o Outcome) Correct() bool { return o.Lost == 0 && o.OutOfOrder == 0 && o.Duplicated == 0 }

// Runs are the outcomes of an experiment, run by run, and the figures that it shows.
type Runs struct {
	Figures  []Figure
	Floor    bool // The experiment does not measure the product.
	Peer     bool // The experiment measures another product, whose messages are its own matter.
	Outcomes []Outcome
}
