// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The question where a shard lives, and why: inquire asks the coordinator, which runs here or on
// another node; answer answers there; answered publishes
// what comes back; expire gives up when none comes.

// Explain is the command to find out what the coordinator of a kind knows about a
// shard. [ShardExplanation] with the same ID answers it, always and once, after
// explainTimeout at the latest.
type Explain struct {
	Kind  string
	Shard protocol.ShardID
	ID    uint64
}

// Phase says what is under way between the coordinator and the home of a shard.
type Phase uint8

// The phases of a shard in the coordinator's map.
const (
	PhaseOpen      Phase = iota // The shard has no home.
	PhaseStarting               // The home was told to host, and has not answered.
	PhaseServing                // The home hosts the shard, and no move is under way.
	PhaseStopping               // The home was told to stop.
	PhaseResuming               // The stop was taken back.
	PhaseReleasing              // The home was told to give up entities that do not stop.
	PhaseRetired                // The shard is no more: its entities live in those of the next layout.
)

// phases is the number of phases.
const phases = 7

// String returns the name of the phase.
func (p Phase) String() string {
	names := [phases]string{"open", "starting", "serving", "stopping", "resuming", "releasing", "retired"}
	if int(p) < len(names) {
		return names[p]
	}
	return "none"
}

// ShardExplanation is what the coordinator of a kind knows about a shard. The coordinator sends
// it as a message to the node that asked, which publishes it.
type ShardExplanation struct {
	Kind  string
	Shard protocol.ShardID
	// ID is the ID of the question.
	ID uint64
	// Coordinator is the node that coordinates the kind, Term its term. Without a
	// coordinator only Detail is set.
	Coordinator gossip.NodeID
	Term        protocol.Term
	// Detail says what a shard without a home waits for, or why nothing is known; may be
	// empty.
	Detail string
	// Phase, Home, Epoch and Base are those of the shard in the coordinator's map.
	Phase       Phase
	Home        gossip.NodeID
	Epoch, Base protocol.Epoch
	// Since is when the shard came into its phase, by the coordinator's clock.
	Since time.Time
	// Decision says by which decision, and why, the shard has its home.
	Decision string
	// Target is the node to which the shard moves, zero when that is decided once the
	// shard has stopped. Reason is why the shard moves, and Deadline is when its stop is
	// called off. Without a move under way or planned all three are zero.
	Target   gossip.NodeID
	Reason   string
	Deadline time.Time
	// Moves are the last moves of the shard under this coordinator, the oldest
	// first; at most [MaxExplainedMoves].
	Moves []Moved
}

// MaxExplainedMoves is how many moves [ShardExplanation] holds at most.
const MaxExplainedMoves = 16

// Outcome says how a move ended.
type Outcome uint8

// The outcomes of moves.
const (
	OutcomeMoved     Outcome = iota + 1 // The new home hosts the shard.
	OutcomeCalledOff                    // The old home did not stop in time, and hosts it still.
	OutcomeLost                         // A home ended meanwhile.
	OutcomeRetired                      // The shard was stopped for good: it is retired.
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	switch o {
	case OutcomeMoved:
		return "moved"
	case OutcomeCalledOff:
		return "called off"
	case OutcomeLost:
		return "lost"
	case OutcomeRetired:
		return "retired"
	default:
		return "none"
	}
}

// Moved is a move of the past. Times are those of the coordinator's clock.
type Moved struct {
	Shard          protocol.ShardID
	From           gossip.NodeID
	To             gossip.NodeID // Zero when the move ended before its target was decided.
	Started, Ended time.Time
	Outcome        Outcome
	Reason         string
}

// ExplainShard asks the coordinator what it knows about a shard.
type ExplainShard struct {
	Kind  string
	Shard protocol.ShardID
	ID    uint64
}

// KindName returns the name of the kind.
func (m ExplainShard) KindName() string { return m.Kind }

// KindName returns the name of the kind.
func (m ShardExplanation) KindName() string { return m.Kind }

// Bounds of questions that wait for the coordinator's answer.
const (
	maxExplains    = 64
	explainTimeout = 2 * time.Second
)

// question is an [Explain], a [Move], a [SetScale] or a [Reshard] that waits for the coordinator's answer.
type question struct {
	Explain
	sort  sort
	to    gossip.NodeID
	until machine.Instant
}

// sort says which sort of a question is meant.
type sort uint8

const (
	sortExplain sort = iota
	sortMove
	sortScale
	sortReshard
)

// inquire has the coordinator of a kind answer a message of this node: here, or on another node.
func (c *Control) inquire(q question, m Message) {
	k := c.kind(q.Kind)
	if k == nil || c.state == nil {
		c.unexplained(q, "this node knows nothing of the kind yet")
		return
	}
	q.to = k.coordinatorNode()
	switch {
	case k.coord != nil || q.to == c.cfg.Self:
		c.out.Publish(k.answer(m))
	case q.to.IsZero():
		c.unexplained(q, "no coordinator is known: "+k.missing())
	case len(c.questions) >= maxExplains:
		c.unexplained(q, "too many explanations are under way")
	default:
		q.until = c.now.Mono.Add(explainTimeout)
		c.questions = append(c.questions, q)
		k.send(q.to, m)
	}
}

// unexplained publishes an answer of this node alone.
func (c *Control) unexplained(q question, detail string) {
	switch q.sort {
	case sortMove:
		c.out.Publish(MoveAnswered{Kind: q.Kind, Shard: q.Shard, ID: q.ID, Refusal: detail})
	case sortScale:
		c.out.Publish(ScaleAnswered{Kind: q.Kind, ID: q.ID, Refusal: ScaleUnavailable, Detail: detail})
	case sortReshard:
		c.out.Publish(ReshardAnswered{Kind: q.Kind, ID: q.ID, Refusal: detail})
	default:
		c.out.Publish(ShardExplanation{Kind: q.Kind, Shard: q.Shard, ID: q.ID, Detail: detail})
	}
}

// notCoordinating says why the coordinator, which should run on this node, does not.
func (k *perKind) notCoordinating() string {
	if k.core == nil {
		return "the settings of the kind are not known yet"
	}
	return k.control.cfg.Self.String() + " does not coordinate the kind; it is " + k.core.Phase().String() + " since members that can be running the coordinator have not ended"
}

// answer answers a message of a node about a shard, as the coordinator or in its place.
func (k *perKind) answer(m Message) Message {
	switch m := m.(type) {
	case MoveShard:
		refusal := ""
		if k.coord == nil {
			refusal = k.notCoordinating()
		} else {
			refusal = k.coord.orderMove(m.Shard, m.To)
		}
		return MoveAnswered{Kind: k.name, Shard: m.Shard, ID: m.ID, Refusal: refusal}
	case SetScale:
		if k.coord == nil {
			return ScaleAnswered{Kind: k.name, ID: m.ID, Refusal: ScaleUnavailable, Detail: k.notCoordinating()}
		}
		return scaleChange{k.coord}.set(m)
	case ReshardKind:
		refusal := ""
		if k.coord == nil {
			refusal = k.notCoordinating()
		} else {
			refusal = resharding{k.coord}.begin(m.Shards)
		}
		return ReshardAnswered{Kind: k.name, ID: m.ID, Refusal: refusal}
	case ExplainShard:
		if k.coord == nil {
			return ShardExplanation{Kind: k.name, Shard: m.Shard, ID: m.ID, Detail: k.notCoordinating()}
		}
		return k.coord.explain(m.Shard, m.ID)
	default:
		machine.Assert(false, "a question about a shard is known", "message", m)
		return nil
	}
}

// answered publishes the coordinator's answer, if this node waits for it.
func (c *Control) answered(from gossip.NodeID, to Explain, of sort, m Message) {
	for i, q := range c.questions {
		if q.Explain == to && q.to == from && q.sort == of {
			c.questions = append(c.questions[:i], c.questions[i+1:]...)
			c.out.Publish(m)
			return
		}
	}
}

// expire gives up the questions that the coordinator did not answer in time.
func (c *Control) expire() {
	open := c.questions[:0]
	for _, q := range c.questions {
		if c.now.Mono < q.until {
			open = append(open, q)
			continue
		}
		c.unexplained(q, "the coordinator should be at "+q.to.String()+", which did not answer within "+explainTimeout.String())
	}
	c.questions = open
}

// maxExplainText is the longest text of an explanation, in bytes.
const maxExplainText = 512

// clip cuts a text that a strategy wrote to what an explanation may hold.
func clip(text string) string { return wire.Clip(text, maxExplainText) }
