// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// Measures replicated data: updates that wait for nobody, for a majority and
// for disks; what a change costs on the wire; and a node that joins and takes over a
// million keys, while nobody may take any node for lost.
//
// Each cluster has three processes with a node each. The second node is in the process that
// measures, so that neither the oldest nor the youngest node is the one that changes
// values. Correct comes first here too: whatever was added is compared in the end with what
// each node reads, and an update that is missing anywhere, or counted twice, is in the
// record of the figure.

const (
	// slower is how much longer than an ask a majority update may take.
	slower = 2
	// asFast is the part of the rate of tells that topics have to reach, which leaves room
	// for what two runs of the same differ by.
	asFast = 0.9
	// atOnce is how many updates wait at a time, where many do.
	atOnce = 64
)

// dataGroup is replicated data on three nodes.
func dataGroup() rig.Group {
	return rig.Group{
		Name: "data", About: "replicated data on three nodes: updates, topics, bytes, 1 M keys",
		Experiments: slices.Concat(localUpdates(), majorityUpdates(), manyUpdates(), topicMessages(), wireBytes(), []rig.Experiment{someKeys(), millionKeys()}),
	}
}

// updates is an experiment whose figure is a rate of updates.
func updates(m rig.Measurer, s rig.Spec, f figure.Figure) rig.Experiment {
	f.Value, f.Unit, f.Better = "rate", "1/s", figure.Higher
	return rig.Experiment{Measure: m, Spec: s, Figures: []figure.Figure{f}}
}

// local is updates that wait for nobody. Their floor is a map behind a lock.
func localUpdates() []rig.Experiment {
	floors := []string{"floor-map"}
	own := rig.Spec{Senders: rig.Senders, Entities: rig.Senders}
	some := own
	some.Entities = 1000
	return []rig.Experiment{
		updates(measureMap, own, figure.Figure{Name: floors[0]}).AsFloor(),
		updates(updating(local), own, figure.Figure{Name: "local", Target: 1e6, Floors: floors}),
		updates(updating(local), some, figure.Figure{Name: "local-to-1000", Floors: floors}),
	}
}

// majority is one update at a time that waits for a majority, beside an ask.
func majorityUpdates() []rig.Experiment {
	one := func(m rig.Measurer, prefix string, ofFloor float64, floors ...string) rig.Experiment {
		return rig.Experiment{Measure: m, Spec: rig.Spec{Size: 64, Senders: 1, Entities: 1}, Figures: []figure.Figure{
			{Name: prefix + "p50", Value: "p50", Unit: "us", Better: figure.Lower, OfFloor: ofFloor, Floors: suffixed(floors, "p50")},
			{Name: prefix + "p99", Value: "p99", Unit: "us", Better: figure.Lower, Floors: suffixed(floors, "p99")},
		}}
	}
	return rig.WithAwake(
		one(rig.TCPAsk, "floor-tcp-", 0).AsFloor(),
		one(measureAsk, "ask-", 0).AsFloor(),
		one(updating(majority), "majority-", slower, "ask-", "floor-tcp-"),
	)
}

// suffixed returns names with an end.
func suffixed(names []string, end string) (all []string) {
	for _, name := range names {
		all = append(all, name+end)
	}
	return all
}

// many is updates of which 64 wait at a time: for a majority, and for its disks. A floor of
// the second writes as many records to a file, and has each batch on the disk.
func manyUpdates() []rig.Experiment {
	s := rig.Spec{Size: 64, Senders: atOnce, Entities: atOnce}
	durable := s
	durable.Durable = true
	return []rig.Experiment{
		updates(rig.TCPAsk, s, figure.Figure{Name: "floor-tcp-64"}).AsFloor(),
		updates(measureAsk, s, figure.Figure{Name: "ask-64"}).AsFloor(),
		updates(updating(majority), s, figure.Figure{Name: "majority-64", Target: 40e3, Floors: []string{"ask-64", "floor-tcp-64"}}),
		updates(measureDisk, s, figure.Figure{Name: "floor-fsync-64"}).AsFloor(),
		updates(updating(majority), durable, figure.Figure{Name: "durable-64", Target: 5e3, Floors: []string{"floor-fsync-64"}}),
	}
}

// topics is messages from each of some publishers to a subscriber in another process, beside
// as many tells to an entity there.
func topicMessages() []rig.Experiment {
	s := rig.Spec{Size: 64, Senders: rig.Senders, Entities: rig.Senders}
	return []rig.Experiment{
		rig.Single(measureRemote, s, figure.Figure{Name: "tell-64B"}).AsFloor(),
		rig.Single(measureTopic, s, figure.Figure{Name: "topic-64B", OfFloor: asFast, Floors: []string{"tell-64B"}}),
	}
}

// wire is what one more element of a large set costs.
func wireBytes() []rig.Experiment {
	return []rig.Experiment{{Measure: measureElement, Spec: rig.Spec{Entities: 10_000}, Figures: []figure.Figure{
		{Name: "element-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 300},
	}}}
}

// keys is a million keys: their memory, a node that takes them over, and what they cost when
// nothing changes.
func millionKeys() rig.Experiment {
	return rig.Experiment{Measure: measureKeys, Spec: rig.Spec{Senders: rig.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
		{Name: "joined-after", Value: "joined", Unit: "s", Better: figure.Lower, Target: 10},
		{Name: "counts-after", Value: "counts", Unit: "s", Better: figure.Lower},
		{Name: "joined-cpu", Value: "cpu", Unit: "s", Better: figure.Lower},
		{Name: "joined-bytes", Value: "wire", Unit: "B", Better: figure.Lower},
		{Name: "standings-lost", Value: "lapses", Unit: "", Better: figure.Lower, Zero: true},
		{Name: "marked-unreachable", Value: "marks", Unit: "", Better: figure.Lower, Zero: true},
		{Name: "heartbeat-p99", Value: "beat", Unit: "ms", Better: figure.Lower},
		{Name: "heartbeat-p99-before", Value: "beat-before", Unit: "ms", Better: figure.Lower},
		{Name: "spread-after", Value: "spread", Unit: "s", Better: figure.Lower},
		{Name: "key-bytes", Value: "key", Unit: "B", Better: figure.Lower, Target: 400},
		{Name: "round-bytes", Value: "round", Unit: "B", Better: figure.Lower, Target: 2000},
	}}
}

// some is ten thousand keys that a node takes over: how long one that is up does not count yet.
func someKeys() rig.Experiment {
	return rig.Experiment{Measure: measureKeys, Spec: rig.Spec{Senders: rig.Senders, Entities: 10_000}, Figures: []figure.Figure{
		{Name: "counts-after-10k", Value: "counts", Unit: "s", Better: figure.Lower, Target: 1},
	}}
}
