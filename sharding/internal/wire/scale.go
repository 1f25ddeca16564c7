// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The messages about how many shards of a kind are in use.

// The types of these messages, and the fields that they add.
const (
	typeRescale       = 30
	typeScaleTo       = 31
	typeScaleAnswered = 32

	fieldScale             = 30 // Of a control message: what counts.
	fieldNext              = 31 // What a change is under way to.
	fieldScaling           = 32 // What else is said of a change.
	fieldRegistrationScale = 30 // Of a registration.
)

func appendScale(dst []byte, n wire.Number, s control.Scale) []byte {
	if s == (control.Scale{}) {
		return dst
	}
	dst, at := wire.Begin(dst, n)
	return wire.End(wire.AppendUint(wire.AppendUint(dst, 1, s.Revision), 2, uint64(s.Count)), at)
}

func setScale(dst *control.Scale, f *wire.Field) error {
	*dst = control.Scale{}
	err := f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.Set(&dst.Revision, f, math.MaxUint64-1)
		case 2:
			return wire.Set(&dst.Count, f, protocol.MaxShards)
		}
		return nil
	})
	if err == nil && dst.Count == 0 {
		return wire.Malformed("a revision of which no shard is in use")
	}
	return err
}

// appendScaling appends the messages of this file, and reports whether m is one.
func appendScaling(dst []byte, m any) ([]byte, bool) {
	switch m := m.(type) {
	case control.Rescale:
		return appendScale(head(dst, typeRescale, m.Kind, m.Term), fieldScale, m.Scale), true
	case control.ScaleTo:
		dst = wire.AppendUint(head(dst, typeScaleTo, m.Kind, protocol.Term{}), 14, m.ID)
		return wire.AppendUint(wire.AppendUint(dst, 7, m.Base), 8, uint64(m.Count)), true
	case control.ScaleAnswered:
		dst = wire.AppendUint(head(dst, typeScaleAnswered, m.Kind, protocol.Term{}), 14, m.ID)
		dst = appendScale(appendScale(dst, fieldScale, m.Current), fieldNext, m.Next)
		dst, at := wire.Begin(dst, fieldScaling)
		dst = wire.AppendString(wire.AppendUint(dst, 1, uint64(m.Refusal)), 2, m.Detail)
		return wire.End(wire.AppendUint(wire.AppendBool(dst, 3, m.Told), 4, m.CalledOff), at), true
	default:
		return dst, false
	}
}

// scaling holds the fields of these messages.
type scaling struct {
	current, next control.Scale
	answer        control.ScaleAnswered
}

func (s *scaling) set(f *wire.Field) error {
	switch f.Number {
	case fieldScale:
		return setScale(&s.current, f)
	case fieldNext:
		return setScale(&s.next, f)
	case fieldScaling:
		return f.Each(s.setAnswer)
	default:
		return nil
	}
}

// setAnswer reads a part of an answer. A refusal that this version does not know is one of a coordinator that
// does not decide.
func (s *scaling) setAnswer(f *wire.Field) error {
	switch f.Number {
	case 1:
		err := wire.Set(&s.answer.Refusal, f, math.MaxUint8)
		if s.answer.Refusal > control.ScaleStale {
			s.answer.Refusal = control.ScaleUnavailable
		}
		return err
	case 2:
		return wire.SetText(&s.answer.Detail, f, maxDetail)
	case 3:
		return wire.SetBool(&s.answer.Told, f)
	case 4:
		return wire.Set(&s.answer.CalledOff, f, math.MaxUint64)
	default:
		return nil
	}
}

// scalingMessage returns the message of this file that the fields make up.
func (c *fields) scalingMessage() (any, error) {
	switch c.typ {
	case typeRescale:
		if c.scaling.current.Revision == 0 {
			return nil, wire.Malformed("a region is told no revision")
		}
		return control.Rescale{Kind: c.kind, Term: c.term, Scale: c.scaling.current}, nil
	case typeScaleTo:
		if c.to > protocol.MaxShards {
			return nil, wire.Malformed("%d shards are to be in use", c.to)
		}
		return control.ScaleTo{Kind: c.kind, ID: c.id, Base: c.from, Count: uint32(c.to)}, nil
	case typeScaleAnswered:
		a := c.scaling.answer
		a.Kind, a.ID, a.Current, a.Next = c.kind, c.id, c.scaling.current, c.scaling.next
		return a, nil
	default:
		return c.takeoverMessage()
	}
}
