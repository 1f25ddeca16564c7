// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
)

// The words in which benchmarks are described: groups of experiments, each with its figures.

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

// Role is the role of the process that carries out an experiment of the group.
func (g Group) Role(e Experiment) string { return g.Name + "/" + e.Figures[0].Name }

// Experiment measures figures.
type Experiment struct {
	Measure MeasureFunction
	Spec    Spec
	Floor   bool // The experiment does not measure the product.
	Peer    bool // The experiment measures another product, which may lose messages: they are counted, and are no failure.
	Once    bool // The experiment gives the same in each run: it is a function of a seed.
	Figures []figure.Figure
}

// MeasureFunction carries an experiment out once.
type MeasureFunction func(context.Context, Spec, *Link) (figure.Outcome, error)

// Server is a peer of a process that measures: it serves until that process is gone.
type Server func(context.Context, Spec, *Link) error

// Senders is how many goroutines flood.
const Senders = 4

// Single is an experiment with one figure of its rate, of messages if the figure has no other unit.
func Single(m MeasureFunction, s Spec, f figure.Figure) Experiment {
	f.Value, f.Unit, f.Better = "rate", cmp.Or(f.Unit, "msg/s"), figure.Higher
	return Experiment{Measure: m, Spec: s, Figures: []figure.Figure{f}}
}

// Latency is an experiment with the figures p50 and p99 of its answers, whose names begin with a prefix, each
// beside the same figure of floors.
func Latency(m MeasureFunction, s Spec, prefix string, floors ...string) Experiment {
	e := Experiment{Measure: m, Spec: s}
	for _, name := range []string{"p50", "p99"} {
		f := figure.Figure{Name: prefix + name, Value: name, Unit: "us", Better: figure.Lower}
		for _, floor := range floors {
			f.Floors = append(f.Floors, floor+name)
		}
		e.Figures = append(e.Figures, f)
	}
	return e
}

// Aim sets the targets of the first figures of an experiment.
func (e Experiment) Aim(targets ...float64) Experiment {
	for i, target := range targets {
		e.Figures[i].Target = target
	}
	return e
}

// AsFloor marks an experiment as a floor.
func (e Experiment) AsFloor() Experiment {
	e.Floor = true
	return e
}

// AsPeer marks an experiment as one of another product, to compare with as with a floor.
func (e Experiment) AsPeer() Experiment {
	e.Floor, e.Peer = true, true
	return e
}

// WithAwake returns the experiments, and after them the same on processors that are kept
// awake, where that is possible.
func WithAwake(experiments ...Experiment) []Experiment {
	if !AwakePossible {
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

// Spec tells a process what to do. It is passed as an argument.
type Spec struct {
	Role      string        `json:"role"`
	Time      time.Duration `json:"time"`      // How long to measure.
	Size      int           `json:"size"`      // Bytes of a message.
	Senders   int           `json:"senders"`   // Goroutines that send.
	Entities  int           `json:"entities"`  // Number of entities to use or to make.
	InMemory  int           `json:"in_memory"` // How many entities a node may have in memory; any number when zero.
	Rate      int           `json:"rate"`      // How many remembered entities begin in a second; any number when zero.
	Before    int           `json:"before"`    // Under which number of shards entities are remembered; the present one when zero.
	Blocked   int           `json:"blocked"`   // Further entities, which sleep at their messages.
	Batch     int           `json:"batch"`     // Messages in one message of gRPC.
	Nodes     int           `json:"nodes"`     // Members of a cluster.
	Shards    int           `json:"shards"`    // Shards of the kind of the entities; the default when zero.
	Proxy     bool          `json:"proxy"`     // The node that measures hosts nothing.
	Apart     bool          `json:"apart"`     // Each node has an IP address of its own.
	Telemetry bool          `json:"telemetry"` // Nodes have metrics that are fetched, and traces.
	Lane      string        `json:"lane"`      // What carries messages, as transport.lane has it; the default when empty.
	Secure    bool          `json:"secure"`    // Nodes speak mutual TLS.
	Keys      string        `json:"keys"`      // For a peer: the directory with its certificate; none when empty.
	Awake     bool          `json:"awake"`     // Keep the processors awake during the measurement.
	Oldest    bool          `json:"oldest"`    // Kill the oldest node, not the youngest.
	Seeds     []string      `json:"seeds"`     // For a peer: the seed nodes to join.
	Durable   bool          `json:"durable"`   // Keys are on the disks of the nodes.
	Data      string        `json:"data"`      // For a peer: its data directory; none when empty.
	Limit     time.Duration `json:"limit"`     // After this time the run has failed.
	Profile   string        `json:"profile"`   // Directory for profiles of the processor; none when empty.
}

// As returns the spec of a peer with another role.
func (s Spec) As(role string) Spec {
	s.Role = role
	return s
}
