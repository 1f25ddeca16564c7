// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// The messages by which a node changes what it does not hold, in their order.

// The fields of the loan of an entry.
const (
	borrowOp  = 1
	borrowKey = 2

	lentOp    = 3
	lentAway  = 4
	lentEntry = 5
	lentAt    = 6
	lentBase  = 7
	lentStamp = 8
)

func appendBorrow(e *encoder, m protocol.Borrow) {
	e.uint(borrowOp, uint64(m.Op))
	e.text(borrowKey, m.Key)
}

func setBorrow(_ *decoder, m *protocol.Borrow, f *wire.Field) (err error) {
	switch f.Number {
	case borrowOp:
		err = wire.Set(&m.Op, f, math.MaxUint64)
	case borrowKey:
		m.Key, err = key(f)
	}
	return err
}

func checkBorrow(_ *decoder, m *protocol.Borrow) error { return present(m.Key) }

// present refuses a message in which a key is missing.
func present(key string) error {
	if key == "" {
		return wire.Malformed("a message without its key")
	}
	return nil
}

func appendLent(e *encoder, m protocol.Lent) {
	e.uint(lentOp, uint64(m.Op))
	e.flag(lentAway, m.Away)
	if m.Entry != nil {
		e.entry(lentEntry, m.Entry)
	}
	e.fixed(lentAt, uint64(m.At))
	e.fixed(lentBase, m.Base)
	e.uint(lentStamp, m.Stamp)
}

func setLent(d *decoder, m *protocol.Lent, f *wire.Field) error {
	switch f.Number {
	case lentOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case lentAway:
		return wire.SetBool(&m.Away, f)
	case lentEntry:
		return d.setEntry(&m.Entry, f)
	case lentAt:
		return wire.SetFixed(&m.At, f)
	case lentBase:
		return wire.SetFixed(&m.Base, f)
	case lentStamp:
		return wire.Set(&m.Stamp, f, math.MaxUint64)
	}
	return d.name(f)
}

// The fields of what a home is asked to commit or to remove.
const (
	commitOp    = 3
	commitKey   = 4
	commitLevel = 5
	commitLimit = 6
	commitBase  = 7
	commitDelta = 8
	commitWhole = 9
	commitStamp = 10
	commitAgain = 11

	// The fields of a level.
	levelStrength = 1
	levelN        = 2
	levelExtra    = 3
	levelMinCap   = 4
)

func appendCommit(e *encoder, m protocol.Commit) {
	e.typ(m.Type)
	e.uint(commitOp, uint64(m.Op))
	e.text(commitKey, m.Key)
	e.level(commitLevel, m.Level)
	e.limit(commitLimit, m.Limit)
	e.fixed(commitBase, m.Base)
	if m.Delta != nil {
		e.b = e.value(e.b, commitDelta, m.Type, m.Delta)
	}
	e.flag(commitWhole, m.Whole)
	e.uint(commitStamp, m.Stamp)
	e.flag(commitAgain, m.Again)
}

func setCommit(d *decoder, m *protocol.Commit, f *wire.Field) (err error) {
	switch f.Number {
	case commitOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case commitKey:
		m.Key, err = key(f)
		return err
	case commitLevel:
		return setLevel(&m.Level, f)
	case commitLimit:
		return setLimit(&m.Limit, f)
	case commitBase:
		return wire.SetFixed(&m.Base, f)
	case commitDelta:
		d.delta, err = inner(f)
		return err
	case commitWhole:
		return wire.SetBool(&m.Whole, f)
	case commitStamp:
		return wire.Set(&m.Stamp, f, math.MaxUint64)
	case commitAgain:
		return wire.SetBool(&m.Again, f)
	}
	return d.name(f)
}

// checkCommit reads the delta, of which the type is named.
func checkCommit(d *decoder, m *protocol.Commit) (err error) {
	if err := present(m.Key); err != nil {
		return err
	}
	if d.delta == nil {
		m.Type, m.Delta, err = d.typed(0)
	} else {
		m.Type, m.Delta, err = d.value(0, d.delta)
	}
	return err
}

func appendRemoveKey(e *encoder, m protocol.RemoveKey) {
	e.uint(commitOp, uint64(m.Op))
	e.text(commitKey, m.Key)
	e.level(commitLevel, m.Level)
	e.limit(commitLimit, m.Limit)
	e.uint(commitStamp, m.Stamp)
}

func setRemoveKey(_ *decoder, m *protocol.RemoveKey, f *wire.Field) (err error) {
	switch f.Number {
	case commitOp:
		err = wire.Set(&m.Op, f, math.MaxUint64)
	case commitKey:
		m.Key, err = key(f)
	case commitLevel:
		err = setLevel(&m.Level, f)
	case commitLimit:
		err = setLimit(&m.Limit, f)
	case commitStamp:
		err = wire.Set(&m.Stamp, f, math.MaxUint64)
	}
	return err
}

func checkRemoveKey(_ *decoder, m *protocol.RemoveKey) error { return present(m.Key) }

// level appends a field with a level.
func (e *encoder) level(n wire.Number, l protocol.Level) {
	if min(l.N, l.Extra, l.MinCap) < 0 || max(l.N, l.Extra, l.MinCap) > math.MaxInt32 {
		e.fail(foreign("a level of %+v", l))
		return
	}
	e.inside(n, func() {
		e.uint(levelStrength, uint64(l.Strength))
		e.uint(levelN, uint64(l.N))
		e.uint(levelExtra, uint64(l.Extra))
		e.uint(levelMinCap, uint64(l.MinCap))
	})
}

// setLevel stores a level.
func setLevel(dst *protocol.Level, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	return fields(b, func(f *wire.Field) error {
		switch f.Number {
		case levelStrength:
			return wire.Set(&dst.Strength, f, uint64(protocol.All))
		case levelN:
			return setInt(&dst.N, f)
		case levelExtra:
			return setInt(&dst.Extra, f)
		case levelMinCap:
			return setInt(&dst.MinCap, f)
		}
		return nil
	})
}

func setInt(dst *int, f *wire.Field) error {
	v, err := f.Uint(math.MaxInt32)
	*dst = int(v)
	return err
}

// limit appends a field with a duration, and nothing for one that is over.
func (e *encoder) limit(n wire.Number, d time.Duration) { e.uint(n, uint64(max(d, 0))) }

func setLimit(dst *time.Duration, f *wire.Field) error {
	v, err := f.Uint(math.MaxInt64)
	*dst = time.Duration(v)
	return err
}

// The fields of the answer of a home, and of a refusal in it.
const (
	committedOp       = 1
	committedVerdict  = 2
	committedAnswered = 3
	committedMissing  = 4
	committedRefusal  = 5
	committedReason   = 6

	nodeRefusalNode   = 1
	nodeRefusalReason = 2
)

func appendCommitted(e *encoder, m protocol.Committed) {
	e.uint(committedOp, uint64(m.Op))
	e.uint(committedVerdict, uint64(m.Verdict))
	for _, n := range m.Answered {
		e.b = wire.AppendNode(e.b, committedAnswered, n)
	}
	e.b = appendFixeds(e.b, committedMissing, m.Missing)
	for _, r := range m.Refusals {
		e.inside(committedRefusal, func() {
			e.b = wire.AppendNode(e.b, nodeRefusalNode, r.Node)
			e.text(nodeRefusalReason, wire.Clip(r.Reason, MaxReason))
		})
	}
	e.text(committedReason, wire.Clip(m.Reason, MaxReason))
}

func setCommitted(d *decoder, m *protocol.Committed, f *wire.Field) error {
	switch f.Number {
	case committedOp:
		return wire.Set(&m.Op, f, math.MaxUint64)
	case committedVerdict:
		return wire.Set(&m.Verdict, f, math.MaxUint8)
	case committedAnswered:
		var n gossip.NodeID
		err := wire.SetNode(&n, f)
		m.Answered = append(grown(d, m.Answered, f), n)
		return err
	case committedMissing:
		return setFixeds(&m.Missing, f)
	case committedRefusal:
		return d.setNodeRefusals(&m.Refusals, f)
	case committedReason:
		return wire.SetText(&m.Reason, f, MaxReason)
	}
	return nil
}

// setNodeRefusals adds a refusal to a list.
func (d *decoder) setNodeRefusals(dst *[]protocol.NodeRefusal, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	var r protocol.NodeRefusal
	err = fields(b, func(f *wire.Field) error {
		switch f.Number {
		case nodeRefusalNode:
			return wire.SetNode(&r.Node, f)
		case nodeRefusalReason:
			return wire.SetText(&r.Reason, f, MaxReason)
		}
		return nil
	})
	if err == nil && r.Node.IsZero() {
		err = wire.Malformed("a refusal by no node")
	}
	*dst = append(grown(d, *dst, f), r)
	return err
}
