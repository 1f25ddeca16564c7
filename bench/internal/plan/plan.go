// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan has the words in which benchmarks are described: a [Group] of experiments
// that take turns, the [Experiment] that a process carries out, and the figures of
// its outcome that are shown.
//
// The packages of the benchmarks describe their groups in these words; nothing here
// measures anything.
package plan

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/awake"
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/process"
)

// Experiment measures figures.
type Experiment struct {
	Spec    process.Spec
	Floor   bool // The experiment does not measure the product.
	Once    bool // The experiment gives the same in each run: it is a function of a seed.
	Figures []figure.Figure
}

// Group is a set of experiments that take turns.
type Group struct {
	Name, About string
	Optional    bool          // Not part of a run that names no groups.
	Missing     func() string // Says what the group needs and this machine does not have; nil or empty: nothing.
	Experiments []Experiment
}

// Lacks says why the group cannot be measured on this machine; empty if it can be.
func (g Group) Lacks() string {
	if g.Missing == nil {
		return ""
	}
	return g.Missing()
}

// Senders is how many goroutines flood.
const Senders = 4

// Single is an experiment with one figure of its rate.
func Single(s process.Spec, f figure.Figure) Experiment {
	f.Value, f.Unit, f.Better = "rate", "msg/s", figure.Higher
	return Experiment{Spec: s, Figures: []figure.Figure{f}}
}

// AsFloor marks an experiment as a floor.
func (e Experiment) AsFloor() Experiment {
	e.Floor = true
	return e
}

// WithAwake returns the experiments, and after them the same on processors that are kept
// awake, where that is possible.
func WithAwake(experiments ...Experiment) []Experiment {
	if !awake.Possible {
		return experiments
	}
	const prefix = "awake-"
	all := experiments
	for _, e := range experiments {
		e.Spec.Awake = true
		e.Figures = slices.Clone(e.Figures)
		for i := range e.Figures {
			f := &e.Figures[i]
			f.Name, f.Floors = prefix+f.Name, slices.Clone(f.Floors)
			for j := range f.Floors {
				f.Floors[j] = prefix + f.Floors[j]
			}
		}
		all = append(all, e)
	}
	return all
}
