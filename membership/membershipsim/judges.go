// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

// JudgeName is the name of the judge that a node has by [Config.Judged].
const JudgeName = "judge"

// sourceJudges is the number of the source of randomness for judges.
const sourceJudges = 8

// Judges are failure detectors outside of the nodes of a world, one for each process of a node.
// For a while each of them is right, accuses nobody, accuses everybody, or says anything, and
// now and then it begins anew, having forgotten what it was told. The zero value is ready for
// use in one world.
type Judges struct {
	// Interval is the heartbeat interval of all nodes; the default if 0.
	Interval time.Duration

	rand *rand.Rand
	of   map[*simulation.Node]*judge
}

// judge is the failure detector of one node.
type judge struct {
	inner *fd.DetectorJudge
	mood  behaviour
	until time.Duration // When the behaviour changes.
	turns int           // How often it was asked.
}

// behaviour is how a judge answers.
type behaviour int

const (
	right    behaviour = iota // As its detectors do.
	blind                     // It accuses nobody.
	paranoid                  // It accuses everybody.
	fickle                    // It says anything.
	turning                   // It accuses everybody and nobody by turns.
	moods
)

// Serve has a world ask the judges.
func (v *Judges) Serve(w *simulation.World) {
	v.rand, v.of = w.Source(sourceJudges), make(map[*simulation.Node]*judge)
	w.Observe(func(o simulation.Observation) {
		if _, ended := o.Event.(simulation.Ended); ended {
			delete(v.of, o.Node)
		}
	})
	strategies := w.Strategies()
	// Ten intervals have eleven rounds at most, each with a second question to a judge that has begun anew.
	interval := cmp.Or(v.Interval, fd.Default().HeartbeatInterval)
	strategies.Bound(protocol.CallFailureDetector, simulation.Pace{Most: 2*11 - 1, Per: 10 * interval})
	strategies.Answer(protocol.CallFailureDetector, func(n *simulation.Node, request any) (any, error) {
		return v.judge(n, w.Now(), request.(fd.Batch))
	})
	strategies.Garble(protocol.CallFailureDetector, func(r *rand.Rand, request any) any {
		b := request.(fd.Batch)
		return []any{
			nil,
			"all is well",
			fd.Verdicts{Number: b.Number + 1},
			fd.Verdicts{Number: b.Number, Changes: []fd.Verdict{{ID: "somebody", Reason: "who is that"}}},
			fd.Verdicts{Number: b.Number, Changes: []fd.Verdict{{}, {}}},
		}[r.IntN(5)]
	})
	strategies.Recorded(fd.Verdicts{}, protocol.OutOfStep{})
}

// judge asks the judge of a node about a batch.
func (v *Judges) judge(n *simulation.Node, now time.Duration, b fd.Batch) (any, error) {
	j := v.of[n]
	if j == nil || v.rand.IntN(200) == 0 {
		j = &judge{inner: fd.NewDetectorJudge(v.detectors()), until: now}
		v.of[n] = j
	}
	if now >= j.until {
		j.mood, j.until = behaviour(v.rand.IntN(int(moods))), now+between(v.rand, time.Second, 2*time.Minute)
	}
	verdicts, err := j.inner.Judge(context.Background(), b)
	if errors.Is(err, fd.ErrOutOfStep) {
		return protocol.OutOfStep{}, nil
	}
	machine.Assert(err == nil, "nodes send valid batches", "error", err)
	j.turns++
	if j.mood != right {
		verdicts.Changes = nil
		for _, s := range b.Subjects {
			accuses := j.mood == paranoid || j.mood == turning && j.turns%2 == 0
			if accuses && s.Available || j.mood == turning && !accuses && !s.Available || j.mood == fickle && v.rand.IntN(2) == 0 {
				verdicts.Changes = append(verdicts.Changes, fd.Verdict{ID: s.ID, Available: !s.Available, Reason: "it is in that mood"})
			}
		}
	}
	return verdicts, nil
}

// detectors draws what the detectors of a judge are.
func (v *Judges) detectors() fd.Factory {
	c := fd.Default()
	c.Strategy = fd.BuiltIns()[v.rand.IntN(len(fd.BuiltIns()))]
	c.Threshold = 1 + 15*v.rand.Float64()
	factory, err := fd.NewFactory(c)
	machine.Assert(err == nil, "the built-in detectors are known", "error", err)
	return factory
}
