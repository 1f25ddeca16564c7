// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// All control messages have one form, with a table of all fields that any of them has; then come the tables of what is
// inside, in the order of their numbers. Shards, of which a message may have many, are written from the message itself
// and read in a second walk.

// form is a control message on the wire.
type form struct {
	typ          uint8
	kind         string
	term         protocol.Term
	registration *control.Registration
	nodes        []gossip.NodeID
	from, to     uint64
	wanted       []protocol.ShardID
	setting      string
	coordinator  string
	region       string
	settings     *control.Settings
	id           uint64
	explanation  *control.ShardExplanation
	layouts      []layout
	settled      protocol.Epoch
	follows      bool
	scale, next  control.Scale
	answer       *control.ScaleAnswered
	gone         []string
	entities     []string
	over         bool

	// When it is written: what writes the nodes and shards, and the shards that are retired.
	shards  func(m *form, c *wire.Codec)
	retired []control.Retirement

	// When it is read: the message, its room, and how many shards it has that are not retired, and that are.
	in         []byte
	room       wire.Budget
	live, dead int
	shard      shard
}

// fieldNodes is the field of the form with a node.
const fieldNodes = 6

func (m *form) fields(c *wire.Codec) {
	wire.Uint(c, 1, &m.typ, math.MaxUint8)
	wire.Name(c, 2, &m.kind, protocol.MaxKindBytes)
	term(c, 3, &m.term)
	wire.Optional(c, 4, &m.registration, registration)
	overtaking := m.typ == typeTakeOver || m.typ == typeGivenOver // These have the id further back.
	if c.Reading() || !overtaking {
		wire.Uint(c, 14, &m.id, math.MaxUint64)
	}
	wire.Sparse(c, 30, &m.scale, scale, checkScale)
	wire.Uint(c, 7, &m.from, math.MaxUint64)
	wire.Uint(c, 8, &m.to, math.MaxUint64)
	if !c.Reading() && overtaking {
		wire.Uint(c, 14, &m.id, math.MaxUint64)
	}
	wire.Nodes(c, fieldNodes, &m.nodes, math.MaxInt)
	m.writeOrCount(c)
	wire.Text(c, 10, &m.setting, maxDetail)
	wire.Text(c, 11, &m.coordinator, maxDetail)
	wire.Text(c, 12, &m.region, maxDetail)
	wire.Optional(c, 13, &m.settings, settings)
	wire.Optional(c, 15, &m.explanation, explained, checkExplained)
	wire.Messages(c, 16, &m.layouts, maxLayouts, (*layout).fields, (*layout).check)
	m.writeRetired(c)
	epoch(c, 17, &m.settled)
	wire.Bool(c, 18, &m.follows)
	wire.Sparse(c, 31, &m.next, scale, checkScale)
	wire.Optional(c, 32, &m.answer, scaleAnswer)
	wire.Texts(c, 40, &m.gone, protocol.MaxEntityBytes, maxTaken)
	wire.Texts(c, 41, &m.entities, protocol.MaxEntityBytes, maxTaken)
	shardsWanted(c, 9, &m.wanted)
	wire.Bool(c, 42, &m.over)
}

// term is a row with a term, and epoch one with an epoch. Every message between entities has one too, so that their
// fields are written and read by hand.
func term(c *wire.Codec, n wire.Number, v *protocol.Term) {
	wire.Row(c, n, func(b []byte) []byte { return appendTerm(b, n, *v) }, func(f *wire.Field) error { return setTerm(v, f) })
}

func epoch(c *wire.Codec, n wire.Number, v *protocol.Epoch) {
	wire.Row(c, n, func(b []byte) []byte { return appendEpoch(b, n, *v) }, func(f *wire.Field) error { return setEpoch(v, f) })
}

// shardsWanted is a row with numbers of shards, of which there is one list.
func shardsWanted(c *wire.Codec, n wire.Number, all *[]protocol.ShardID) {
	if !c.Reading() {
		wire.Uints(c, n, all, math.MaxUint32, math.MaxInt)
		return
	}
	wire.Row(c, n, nil, func(f *wire.Field) (err error) {
		if *all != nil {
			return wire.Malformed("two lists of shards that are looked for")
		}
		*all, err = setWanted(f)
		return err
	})
}

func setWanted(f *wire.Field) ([]protocol.ShardID, error) {
	b, err := f.Data(math.MaxInt)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	n := 0 // The last bytes of numbers.
	for _, x := range b {
		if x < 1<<7 {
			n++
		}
	}
	if n > 2*protocol.MaxShards {
		return nil, wire.Malformed("more than %d shards that are looked for", 2*protocol.MaxShards)
	}
	all := make([]protocol.ShardID, 0, n)
	for len(b) > 0 {
		v, n := wire.Varint(b)
		if n == 0 || v > math.MaxUint32 {
			return nil, wire.Malformed("the shards that are looked for")
		}
		all, b = append(all, protocol.ShardID(v)), b[n:]
	}
	return all, nil
}

func settings(m *control.Settings, c *wire.Codec) {
	wire.Uint(c, 1, &m.Shards, protocol.MaxShards)
	wire.Name(c, 2, &m.Hash, protocol.MaxKindBytes)
	wire.Name(c, 3, &m.Codec, protocol.MaxKindBytes)
	wire.Name(c, 4, &m.Role, protocol.MaxKindBytes)
	wire.Name(c, 5, &m.Hosting, protocol.MaxKindBytes)
	wire.Name(c, 6, &m.OnStuck, protocol.MaxKindBytes)
	wire.Name(c, 7, &m.Handoff, protocol.MaxKindBytes)
}

func registration(m *control.Registration, c *wire.Codec) {
	wire.Message(c, 1, &m.Settings, settings)
	wire.Bool(c, 2, &m.Proxy)
	wire.Bool(c, 3, &m.Suspended)
	wire.Uint(c, 4, &m.Capacity, math.MaxUint32)
	wire.Uint(c, 5, &m.Number, math.MaxUint64)
	wire.Bool(c, 6, &m.Drained)
	ms := m.Age.Milliseconds()
	if wire.Int(c, 7, &ms, uint64(control.MaxAge/time.Millisecond)) {
		m.Age = time.Duration(ms) * time.Millisecond
	}
	wire.Sparse(c, 30, &m.Scale, scale, checkScale)
	wire.Uint(c, 8, &m.Load, control.LoadFull)
	wire.Uint(c, 9, &m.LoadShards, 2*protocol.MaxShards*control.LoadShard)
	wire.Bool(c, 10, &m.Follows)
	wire.Uint(c, 11, &m.Takeover, math.MaxUint16+2)
}

func scale(m *control.Scale, c *wire.Codec) {
	wire.Uint(c, 1, &m.Revision, math.MaxUint64-1)
	wire.Uint(c, 2, &m.Count, protocol.MaxShards)
}

func checkScale(m *control.Scale) error {
	if m.Count == 0 {
		return wire.Malformed("a revision of which no shard is in use")
	}
	return nil
}

// scaleAnswer is what an answer to a change of the shards in use says besides what its control message has. A refusal
// that this version does not know is one of a coordinator that does not decide.
func scaleAnswer(m *control.ScaleAnswered, c *wire.Codec) {
	if wire.Uint(c, 1, &m.Refusal, math.MaxUint8) && m.Refusal > control.ScaleStale {
		m.Refusal = control.ScaleUnavailable
	}
	wire.Text(c, 2, &m.Detail, maxDetail)
	wire.Bool(c, 3, &m.Told)
	wire.Uint(c, 4, &m.CalledOff, math.MaxUint64)
}

// explained is what is said of a shard. Its control message has the kind, the term and the id.
func explained(m *control.ShardExplanation, c *wire.Codec) {
	wire.Uint(c, 1, &m.Shard, math.MaxUint32)
	wire.Node(c, 2, &m.Coordinator)
	wire.Text(c, 3, &m.Detail, maxDetail)
	wire.Uint(c, 4, &m.Phase, uint64(control.PhaseRetired))
	wire.Node(c, 5, &m.Home)
	epoch(c, 6, &m.Epoch)
	epoch(c, 7, &m.Base)
	moment(c, 8, &m.Since)
	wire.Text(c, 9, &m.Decision, maxDetail)
	wire.Node(c, 10, &m.Target)
	wire.Text(c, 11, &m.Reason, maxDetail)
	moment(c, 12, &m.Deadline)
	wire.Messages(c, 13, &m.Moves, control.MaxExplainedMoves, moved)
}

// checkExplained makes the moves ones of the shard.
func checkExplained(m *control.ShardExplanation) error {
	for i := range m.Moves {
		m.Moves[i].Shard = m.Shard
	}
	return nil
}

func moved(m *control.Moved, c *wire.Codec) {
	wire.Node(c, 1, &m.From)
	wire.Node(c, 2, &m.To)
	moment(c, 3, &m.Started)
	moment(c, 4, &m.Ended)
	wire.Uint(c, 5, &m.Outcome, uint64(control.OutcomeRetired))
	wire.Text(c, 6, &m.Reason, maxDetail)
}

// moment is a row with a time in milliseconds; a time before 1970 is left out.
func moment(c *wire.Codec, n wire.Number, t *time.Time) {
	ms := max(0, t.UnixMilli())
	if wire.Int(c, n, &ms, math.MaxInt64) && ms != 0 {
		*t = time.UnixMilli(ms).UTC()
	}
}

// maxLayouts bounds the layouts of a message: those in force, and numbers of the past.
const maxLayouts = 64

// layout is a layout in force, by its number and one, or a number of shards of the past.
type layout struct{ number, shards uint32 }

func (m *layout) fields(c *wire.Codec) {
	wire.Uint(c, 1, &m.number, protocol.MaxLayouts)
	wire.Uint(c, 2, &m.shards, protocol.MaxShards)
}

func (m *layout) check() error {
	if m.shards == 0 {
		return wire.Malformed("a layout without shards")
	}
	return nil
}

// layoutsOf returns the layouts in force, and those of the past.
func layoutsOf(inForce []protocol.Layout, past []uint32) (all []layout) {
	for _, l := range inForce {
		all = append(all, layout{uint32(l.Number) + 1, l.Shards})
	}
	for _, n := range past {
		all = append(all, layout{shards: n})
	}
	return all
}

// split returns the layouts in force, in their order, and the numbers of shards of the past.
func split(all []layout) (inForce []protocol.Layout, past []uint32, err error) {
	for _, l := range all {
		if l.number == 0 {
			past = append(past, l.shards)
			continue
		}
		number := uint16(l.number - 1) // At most MaxLayouts-1.
		if n := len(inForce); n > 1 || n == 1 && inForce[0].Number >= number {
			return nil, nil, wire.Malformed("more than two layouts in force, or out of order")
		}
		inForce = append(inForce, protocol.Layout{Number: number, Shards: l.shards})
	}
	return inForce, past, nil
}
