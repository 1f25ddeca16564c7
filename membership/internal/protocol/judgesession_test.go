// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Nodes in a loop ask a judge that the test directs: first what a judge says is done within the
// bounds; then judges that do not answer, answer nonsense, or have begun anew, while the
// detectors decide.

// referee answers the calls of a loop to judges.
type referee struct {
	loop    *loop
	judges  func(n *node, b fd.Batch) (any, error)
	hangs   bool
	latency time.Duration
	batches []fd.Batch // Of the first node.
}

// judged returns a loop whose nodes ask a judge, and the judge. It accuses nobody.
func judged(t *testing.T) (*loop, *referee) {
	t.Helper()
	l := newLoop(t)
	r := &referee{loop: l, latency: time.Millisecond, judges: nobody}
	l.calls = func(n *node, c machine.Call) {
		require.Equal(t, protocol.CallFailureDetector, c.Port)
		b := c.Request.(fd.Batch)
		if n.id.Address == address(1) {
			r.batches = append(r.batches, b)
		}
		if r.hangs {
			return
		}
		called := machine.Called{ID: c.ID}
		called.Result, called.Err = r.judges(n, b)
		l.after(r.latency, func() { n.step(called) })
	}
	return l, r
}

func nobody(_ *node, b fd.Batch) (any, error) { return fd.Verdicts{Number: b.Number}, nil }

func withJudge(_ *protocol.Config, d *protocol.Dependencies) { d.Judge = "sage" }

// marked runs until a node has marked another one unreachable, and returns how long after now
// that was.
func (l *loop) marked(by *node, subject gossip.NodeID) time.Duration {
	l.t.Helper()
	return l.until(10*time.Second, func() bool { return !by.machine.State().ReachableFrom(by.id, subject) })
}

// verdicts returns what a node has decided about its judge.
func verdicts(n *node) string {
	var all []string
	for _, d := range n.decisions {
		if d.Topic == "reachability" && d.Subject == "sage" {
			all = append(all, d.Verdict)
		}
	}
	return strings.Join(all, " ")
}

// reasonOf returns the reason of the last decision of a node with a verdict.
func reasonOf(n *node, verdict string) string {
	for _, d := range slices.Backward(n.decisions) {
		if d.Verdict == verdict {
			return d.Reason
		}
	}
	return ""
}

// detected returns how long a crashed node is available to another one without a judge.
func detected(t *testing.T) time.Duration {
	t.Helper()
	l := newLoop(t)
	nodes := l.cluster(3)
	l.run(20 * time.Second)
	nodes[2].dead = true
	return l.marked(nodes[0], nodes[2].id)
}

// A judge that accuses nobody holds a silent node available for as long as the bounds allow;
// one that accuses everybody is heard no earlier than they allow, and not about nodes that
// answer.
func TestAJudgeDecidesWithinTheBounds(t *testing.T) {
	bounds := protocol.Default().FailureDetector.Bounds()
	l, _ := judged(t)
	nodes := l.cluster(3, withJudge)
	l.run(20 * time.Second)
	require.Equal(t, "judges", verdicts(nodes[0]))
	nodes[2].dead = true
	silence := l.marked(nodes[0], nodes[2].id)
	require.Greater(t, silence, detected(t), "the detector alone is earlier")
	require.InDelta(t, bounds.MaxSilence, silence, float64(time.Second))

	var r *referee
	l, r = judged(t)
	r.judges = func(_ *node, b fd.Batch) (any, error) {
		v := fd.Verdicts{Number: b.Number}
		for _, s := range b.Subjects {
			if s.Available {
				v.Changes = append(v.Changes, fd.Verdict{ID: s.ID, Reason: "I trust nobody"})
			}
		}
		return v, nil
	}
	nodes = l.cluster(3, withJudge)
	l.run(20 * time.Second)
	require.Zero(t, nodes[0].machine.Counts().Marks, "whoever answers is available")
	nodes[2].dead = true
	silence = l.marked(nodes[0], nodes[2].id)
	require.InDelta(t, bounds.MinSilence, silence, float64(time.Second))
	require.Less(t, silence, detected(t), "the detector alone is later")
	require.Contains(t, reasonOf(nodes[0], "unreachable"), "; sage: I trust nobody")
}

// Each batch has the answers since the one before, each once.
func TestAJudgeIsToldOfEachAnswerOnce(t *testing.T) {
	l, r := judged(t)
	l.cluster(3, withJudge)
	l.run(30 * time.Second)
	r.batches = nil
	l.run(20 * time.Second)
	require.GreaterOrEqual(t, len(r.batches), 19)
	for i, b := range r.batches {
		require.Len(t, b.Subjects, 2)
		require.Equal(t, time.Second, b.Elapsed)
		require.Equal(t, r.batches[0].Number+uint64(i), b.Number)
		for _, s := range b.Subjects {
			require.Len(t, s.Ages, 1)
			require.Equal(t, time.Second-2*l.latency, s.Ages[0])
		}
	}
}

// While a judge does not answer, the detectors decide as if there had never been one.
func TestTheDetectorsDecideWhileTheJudgeIsAway(t *testing.T) {
	alone := detected(t)
	for name, amiss := range map[string]func(*referee){
		"hangs":    func(r *referee) { r.hangs = true },
		"too late": func(r *referee) { r.latency = 600 * time.Millisecond },
		"fails": func(r *referee) {
			r.judges = func(*node, fd.Batch) (any, error) { return nil, errors.New("no process") }
		},
		"nonsense": func(r *referee) { r.judges = func(*node, fd.Batch) (any, error) { return "all is well", nil } },
		"another batch": func(r *referee) {
			r.judges = func(_ *node, b fd.Batch) (any, error) { return fd.Verdicts{Number: b.Number + 1}, nil }
		},
		"strangers": func(r *referee) {
			r.judges = func(_ *node, b fd.Batch) (any, error) {
				return fd.Verdicts{Number: b.Number, Changes: []fd.Verdict{{ID: "somebody", Reason: "no"}}}, nil
			}
		},
		"always out of step": func(r *referee) { r.judges = func(*node, fd.Batch) (any, error) { return protocol.OutOfStep{}, nil } },
	} {
		t.Run(name, func(t *testing.T) {
			l, r := judged(t)
			nodes := l.cluster(3, withJudge)
			l.run(20 * time.Second)
			amiss(r)
			nodes[2].dead = true
			require.Equal(t, alone, l.marked(nodes[0], nodes[2].id))
			require.Equal(t, "judges away", verdicts(nodes[0]))
			refused := nodes[0].machine.Refusals(protocol.RefusedAnswer)
			switch name {
			case "hangs", "too late", "fails":
				require.Zero(t, refused, "no answer was refused")
			default:
				require.Greater(t, refused, uint64(2), "each wrong answer is counted")
			}
			r.hangs, r.latency, r.judges = false, time.Millisecond, nobody
			l.run(2 * time.Second)
			require.Equal(t, "judges away judges", verdicts(nodes[0]), "it is heard again")
			require.False(t, nodes[0].machine.State().ReachableFrom(nodes[0].id, nodes[2].id), "what was decided stays")
		})
	}
}

// A judge that has begun anew is told what it has missed in the same round, and goes on.
func TestAJudgeThatHasBegunAnewGoesOnInTheSameRound(t *testing.T) {
	factory, err := fd.NewFactory(fd.Default())
	require.NoError(t, err)
	l, r := judged(t)
	fresh := map[gossip.NodeID]*fd.DetectorJudge{}
	r.judges = func(n *node, b fd.Batch) (any, error) {
		if fresh[n.id] == nil {
			fresh[n.id] = fd.NewDetectorJudge(factory)
		}
		v, err := fresh[n.id].Judge(t.Context(), b)
		if errors.Is(err, fd.ErrOutOfStep) {
			return protocol.OutOfStep{}, nil
		}
		return v, err
	}
	nodes := l.cluster(3, withJudge)
	l.run(30 * time.Second)
	nodes[2].dead = true
	l.run(2 * time.Second)
	clear(fresh)
	r.batches = nil
	l.run(time.Second)
	require.Len(t, r.batches, 2, "one is refused, and asked again as the first of a session")
	require.Equal(t, uint64(1), r.batches[1].Number)
	require.Zero(t, r.batches[1].Elapsed)
	for _, s := range r.batches[1].Subjects {
		require.Greater(t, len(s.Ages), 10, "what was answered before, as far as it is kept")
	}
	l.marked(nodes[0], nodes[2].id)
	require.Contains(t, reasonOf(nodes[0], "unreachable"), "; sage: phi is ")
	require.Equal(t, "judges", verdicts(nodes[0]), "no decision was missed")
}

// An accusation by a judge that did not know of the last answer says nothing of the silence after
// that answer.
func TestAnAccusationThatAnAnswerHasOvertakenIsNothing(t *testing.T) {
	l, r := judged(t)
	nodes := l.cluster(3, withJudge)
	l.run(20 * time.Second)
	silent, accused := true, false
	l.drop = func(from, _ gossip.NodeID, message any) bool {
		_, reply := message.(protocol.HeartbeatReply)
		return silent && reply && from == nodes[2].id
	}
	r.latency = 100 * time.Millisecond
	r.judges = func(n *node, b fd.Batch) (any, error) {
		v := fd.Verdicts{Number: b.Number}
		for _, s := range b.Subjects {
			if n == nodes[0] && len(s.Ages) == 0 && !silent && !accused {
				v.Changes, accused = []fd.Verdict{{ID: s.ID, Reason: "it was silent"}}, true
			}
		}
		return v, nil
	}
	l.run(2500 * time.Millisecond) // The judge still says nothing.
	silent = false
	l.until(2*time.Second, func() bool { return accused })
	l.run(2 * r.latency) // The target has answered meanwhile.
	nodes[2].dead = true
	bounds := l.cfg.FailureDetector.Bounds()
	require.InDelta(t, bounds.MaxSilence, l.marked(nodes[0], nodes[2].id)+2*r.latency, float64(100*time.Millisecond))
}
