// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/quorate/quorate/sharding/protocol"
)

func appendExplanation(dst []byte, e protocol.Explained) []byte {
	dst, at := begin(dst, 15)
	dst = appendUint(dst, 1, uint64(e.Shard))
	dst = appendNode(dst, 2, e.Coordinator)
	dst = appendString(dst, 3, e.Detail)
	dst = appendUint(dst, 4, uint64(e.Phase))
	dst = appendNode(dst, 5, e.Home)
	dst = appendEpoch(appendEpoch(dst, 6, e.Epoch), 7, e.Base)
	dst = appendString(appendTime(dst, 8, e.Since), 9, e.Decision)
	dst = appendString(appendNode(dst, 10, e.Target), 11, e.Reason)
	dst = appendTime(dst, 12, e.Deadline)
	for _, m := range e.Moves[max(0, len(e.Moves)-protocol.MaxExplainedMoves):] {
		dst = appendMoved(dst, m)
	}
	return end(dst, at)
}

func appendMoved(dst []byte, m protocol.Moved) []byte {
	dst, at := begin(dst, 13)
	dst = appendNode(appendNode(dst, 1, m.From), 2, m.To)
	dst = appendTime(appendTime(dst, 3, m.Started), 4, m.Ended)
	dst = appendUint(dst, 5, uint64(m.Outcome))
	return end(appendString(dst, 6, m.Reason), at)
}

// appendTime appends a time in milliseconds; one before 1970 is none.
func appendTime(dst []byte, n number, t time.Time) []byte {
	return appendUint(dst, n, uint64(max(0, t.UnixMilli())))
}

func setTime(dst *time.Time, f *field) error {
	v, err := f.uint(math.MaxInt64)
	*dst = time.Time{}
	if v != 0 {
		*dst = time.UnixMilli(int64(v)).UTC()
	}
	return err
}

func setExplanation(dst *protocol.Explained, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	*dst = protocol.Explained{}
	err = each(b, func(f *field) error { return setExplained(dst, f) })
	for i := range dst.Moves {
		dst.Moves[i].Shard = dst.Shard
	}
	return err
}

func setExplained(dst *protocol.Explained, f *field) error {
	switch f.number {
	case 1:
		return set(&dst.Shard, f, protocol.MaxShards-1)
	case 2:
		return setNode(&dst.Coordinator, f)
	case 3:
		return setText(&dst.Detail, f, maxDetail)
	case 4:
		return set(&dst.Phase, f, uint64(protocol.PhaseReleasing))
	case 5:
		return setNode(&dst.Home, f)
	case 6:
		return setEpoch(&dst.Epoch, f)
	case 7:
		return setEpoch(&dst.Base, f)
	case 8:
		return setTime(&dst.Since, f)
	case 9:
		return setText(&dst.Decision, f, maxDetail)
	case 10:
		return setNode(&dst.Target, f)
	case 11:
		return setText(&dst.Reason, f, maxDetail)
	case 12:
		return setTime(&dst.Deadline, f)
	case 13:
		return addMoved(dst, f)
	default:
		return nil
	}
}

func addMoved(dst *protocol.Explained, f *field) error {
	b, err := f.data(math.MaxInt)
	if err != nil {
		return err
	}
	if len(dst.Moves) >= protocol.MaxExplainedMoves {
		return malformed("more than %d moves", protocol.MaxExplainedMoves)
	}
	var m protocol.Moved
	err = each(b, func(f *field) error {
		switch f.number {
		case 1:
			return setNode(&m.From, f)
		case 2:
			return setNode(&m.To, f)
		case 3:
			return setTime(&m.Started, f)
		case 4:
			return setTime(&m.Ended, f)
		case 5:
			return set(&m.Outcome, f, uint64(protocol.OutcomeLost))
		case 6:
			return setText(&m.Reason, f, maxDetail)
		}
		return nil
	})
	dst.Moves = append(dst.Moves, m)
	return err
}
