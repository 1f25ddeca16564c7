// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// The table of replicated data: updates that wait for nobody, for a majority and
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
func dataGroup() harness.Group {
	one := harness.Spec{Size: 64, Senders: 1, Entities: 1}
	majorities := harness.Latency(updating(majority), one, "majority-", "ask-", "floor-tcp-")
	majorities.Figures[0].OfFloor = slower
	return harness.Group{
		Name: "data", About: "replicated data on three nodes: updates, topics, bytes, 1 M keys",
		Experiments: slices.Concat(waitingForNobody(), harness.WithAwake(
			harness.Latency(harness.TCPAsk, one, "floor-tcp-").AsFloor(),
			harness.Latency(measureAsk, one, "ask-").AsFloor(),
			majorities,
		), waitingAtOnce(), topicsBesideTells(), keysByNumber()),
	}
}

// waitingForNobody is updates that wait for nobody. Their floor is a map behind a lock.
func waitingForNobody() []harness.Experiment {
	floors := []string{"floor-map"}
	own := harness.Spec{Senders: harness.Senders, Entities: harness.Senders}
	some := own
	some.Entities = 1000
	return []harness.Experiment{
		harness.Single(measureMap, own, figure.Figure{Name: floors[0], Unit: "1/s"}).AsFloor(),
		harness.Single(updating(local), own, figure.Figure{Name: "local", Unit: "1/s", Target: 1e6, Floors: floors}),
		harness.Single(updating(local), some, figure.Figure{Name: "local-to-1000", Unit: "1/s", Floors: floors}),
	}
}

// waitingAtOnce is updates of which 64 wait at a time: for a majority, and for its disks. A floor of
// the second writes as many records to a file, and has each batch on the disk.
func waitingAtOnce() []harness.Experiment {
	s := harness.Spec{Size: 64, Senders: atOnce, Entities: atOnce}
	durable := s
	durable.Durable = true
	return []harness.Experiment{
		harness.Single(harness.TCPAsk, s, figure.Figure{Name: "floor-tcp-64", Unit: "1/s"}).AsFloor(),
		harness.Single(measureAsk, s, figure.Figure{Name: "ask-64", Unit: "1/s"}).AsFloor(),
		harness.Single(updating(majority), s, figure.Figure{Name: "majority-64", Unit: "1/s", Target: 40e3, Floors: []string{"ask-64", "floor-tcp-64"}}),
		harness.Single(measureDisk, s, figure.Figure{Name: "floor-fsync-64", Unit: "1/s"}).AsFloor(),
		harness.Single(updating(majority), durable, figure.Figure{Name: "durable-64", Unit: "1/s", Target: 5e3, Floors: []string{"floor-fsync-64"}}),
	}
}

// topicsBesideTells is messages from each of some publishers to a subscriber in another process, beside
// as many tells to an entity there.
func topicsBesideTells() []harness.Experiment {
	s := harness.Spec{Size: 64, Senders: harness.Senders, Entities: harness.Senders}
	return []harness.Experiment{
		harness.Single(measureRemote, s, figure.Figure{Name: "tell-64B"}).AsFloor(),
		harness.Single(measureTopic, s, figure.Figure{Name: "topic-64B", OfFloor: asFast, Floors: []string{"tell-64B"}}),
	}
}

// keysByNumber is what one more element of a large set costs; ten thousand keys that a node takes over,
// which says how long one that is up does not count yet; and a million keys: their memory, a node that
// takes them over, and what they cost when nothing changes.
func keysByNumber() []harness.Experiment {
	return []harness.Experiment{
		{Measure: measureElement, Spec: harness.Spec{Entities: 10_000}, Figures: []figure.Figure{
			{Name: "element-bytes", Value: "bytes", Unit: "B", Better: figure.Lower, Target: 300},
		}},
		{Measure: measureKeys, Spec: harness.Spec{Senders: harness.Senders, Entities: 10_000}, Figures: []figure.Figure{
			{Name: "counts-after-10k", Value: "counts", Unit: "s", Better: figure.Lower, Target: 1},
		}},
		{Measure: measureKeys, Spec: harness.Spec{Senders: harness.Senders, Entities: 1_000_000}, Figures: []figure.Figure{
			{Name: "joined-after", Value: "joined", Unit: "s", Better: figure.Lower, Target: 10},
			{Name: "counts-after", Value: "counts", Unit: "s", Better: figure.Lower},
			{Name: "joined-cpu", Value: "cpu", Unit: "s", Better: figure.Lower},
			{Name: "joined-bytes", Value: "wire", Unit: "B", Better: figure.Lower},
			{Name: "standings-lost", Value: "lapses", Better: figure.Lower, Zero: true},
			{Name: "marked-unreachable", Value: "marks", Better: figure.Lower, Zero: true},
			{Name: "heartbeat-p99", Value: "beat", Unit: "ms", Better: figure.Lower},
			{Name: "heartbeat-p99-before", Value: "beat-before", Unit: "ms", Better: figure.Lower},
			{Name: "spread-after", Value: "spread", Unit: "s", Better: figure.Lower},
			{Name: "key-bytes", Value: "key", Unit: "B", Better: figure.Lower, Target: 400},
			{Name: "round-bytes", Value: "round", Unit: "B", Better: figure.Lower, Target: 2000},
		}},
	}
}
