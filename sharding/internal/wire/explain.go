// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/control"
)

func appendExplanation(dst []byte, e control.Explained) []byte {
	dst, at := wire.Begin(dst, 15)
	dst = wire.AppendUint(dst, 1, uint64(e.Shard))
	dst = wire.AppendNode(dst, 2, e.Coordinator)
	dst = wire.AppendString(dst, 3, e.Detail)
	dst = wire.AppendUint(dst, 4, uint64(e.Phase))
	dst = wire.AppendNode(dst, 5, e.Home)
	dst = appendEpoch(appendEpoch(dst, 6, e.Epoch), 7, e.Base)
	dst = wire.AppendString(appendTime(dst, 8, e.Since), 9, e.Decision)
	dst = wire.AppendString(wire.AppendNode(dst, 10, e.Target), 11, e.Reason)
	dst = appendTime(dst, 12, e.Deadline)
	for _, m := range e.Moves[max(0, len(e.Moves)-control.MaxExplainedMoves):] {
		dst = appendMoved(dst, m)
	}
	return wire.End(dst, at)
}

func appendMoved(dst []byte, m control.Moved) []byte {
	dst, at := wire.Begin(dst, 13)
	dst = wire.AppendNode(wire.AppendNode(dst, 1, m.From), 2, m.To)
	dst = appendTime(appendTime(dst, 3, m.Started), 4, m.Ended)
	dst = wire.AppendUint(dst, 5, uint64(m.Outcome))
	return wire.End(wire.AppendString(dst, 6, m.Reason), at)
}

// appendTime appends a time in milliseconds; a time before 1970 is left out.
func appendTime(dst []byte, n wire.Number, t time.Time) []byte {
	return wire.AppendUint(dst, n, uint64(max(0, t.UnixMilli())))
}

func setTime(dst *time.Time, f *wire.Field) error {
	v, err := f.Uint(math.MaxInt64)
	*dst = time.Time{}
	if v != 0 {
		*dst = time.UnixMilli(int64(v)).UTC()
	}
	return err
}

func (c *fields) setExplanation(f *wire.Field) error {
	dst, moves := &c.explanation, wire.Count(f.Bytes, 13)
	*dst = control.Explained{}
	if moves > control.MaxExplainedMoves {
		return wire.Malformed("more than %d moves", control.MaxExplainedMoves)
	}
	var err error
	if dst.Moves, err = wire.List[control.Moved](&c.room, moves); err != nil {
		return err
	}
	err = f.Each(func(f *wire.Field) error { return setExplained(dst, f) })
	for i := range dst.Moves {
		dst.Moves[i].Shard = dst.Shard
	}
	return err
}

func setExplained(dst *control.Explained, f *wire.Field) error {
	switch f.Number {
	case 1:
		return wire.Set(&dst.Shard, f, math.MaxUint32)
	case 2:
		return wire.SetNode(&dst.Coordinator, f)
	case 3:
		return wire.SetText(&dst.Detail, f, maxDetail)
	case 4:
		return wire.Set(&dst.Phase, f, uint64(control.PhaseRetired))
	case 5:
		return wire.SetNode(&dst.Home, f)
	case 6:
		return setEpoch(&dst.Epoch, f)
	case 7:
		return setEpoch(&dst.Base, f)
	case 8:
		return setTime(&dst.Since, f)
	case 9:
		return wire.SetText(&dst.Decision, f, maxDetail)
	case 10:
		return wire.SetNode(&dst.Target, f)
	case 11:
		return wire.SetText(&dst.Reason, f, maxDetail)
	case 12:
		return setTime(&dst.Deadline, f)
	case 13:
		return addMoved(dst, f)
	default:
		return nil
	}
}

func addMoved(dst *control.Explained, f *wire.Field) error {
	var m control.Moved
	err := f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.SetNode(&m.From, f)
		case 2:
			return wire.SetNode(&m.To, f)
		case 3:
			return setTime(&m.Started, f)
		case 4:
			return setTime(&m.Ended, f)
		case 5:
			return wire.Set(&m.Outcome, f, uint64(control.OutcomeRetired))
		case 6:
			return wire.SetText(&m.Reason, f, maxDetail)
		}
		return nil
	})
	dst.Moves = append(dst.Moves, m)
	return err
}
