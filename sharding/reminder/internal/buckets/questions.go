// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"fmt"
	"math"

	"github.com/quorate/quorate/machine/wire"
)

// Questions and answers as they travel between nodes.

const detailBytes = 1024

// AppendAsk appends the encoding of a question; neither its number nor its page travel.
func AppendAsk(b []byte, a Ask) []byte {
	b = wire.AppendUint(b, 1, uint64(a.Op))
	b, at := wire.Begin(b, 2)
	return wire.End(AppendReminder(b, a.Reminder), at)
}

// DecodeAsk decodes a question. The reminder is not checked.
func DecodeAsk(b []byte) (a Ask, err error) {
	err = wire.Each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.Set(&a.Op, f, uint64(List))
		case 2:
			return f.Each(a.Reminder.set)
		}
		return nil
	})
	if err == nil && a.Op == 0 {
		err = wire.Malformed("a question asks for nothing")
	}
	return a, err
}

// AppendAnswer appends the encoding of an answer; its number does not travel.
func AppendAnswer(b []byte, a Answer) []byte {
	b = wire.AppendUint(b, 1, uint64(a.Code))
	b = wire.AppendBool(b, 2, a.Found)
	b = wire.AppendString(b, 3, wire.Clip(a.Detail, detailBytes))
	for _, s := range a.List {
		var at, inner int
		b, at = wire.Begin(b, 4)
		b, inner = wire.Begin(b, 1)
		b = wire.End(AppendReminder(b, s.Reminder), inner)
		b = wire.AppendUint(b, 2, uint64(s.Attempts))
		b = wire.AppendString(b, 3, wire.Clip(s.Failure, detailBytes))
		b = wire.AppendBool(b, 4, s.Busy)
		b = wire.End(b, at)
	}
	return b
}

// DecodeAnswer decodes an answer.
func DecodeAnswer(b []byte) (a Answer, err error) {
	room := wire.BudgetOf(b)
	if a.List, err = wire.List[Status](&room, wire.Count(b, 4)); err != nil {
		return a, err
	}
	err = wire.Each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.Set(&a.Code, f, uint64(codeCount-1))
		case 2:
			return wire.SetBool(&a.Found, f)
		case 3:
			return wire.SetText(&a.Detail, f, detailBytes)
		case 4:
			var s Status
			err := f.Each(s.setField)
			a.List = append(a.List, s)
			return err
		}
		return nil
	})
	if err == nil && a.Code == 0 {
		err = wire.Malformed("an answer has no code")
	}
	return a, err
}

func (s *Status) setField(f *wire.Field) error {
	switch f.Number {
	case 1:
		return f.Each(s.set)
	case 2:
		v, err := f.Uint(math.MaxInt32)
		s.Attempts = int(v)
		return err
	case 3:
		return wire.SetText(&s.Failure, f, detailBytes)
	case 4:
		return wire.SetBool(&s.Busy, f)
	}
	return nil
}

// Check says what is wrong with a question; empty if it is valid.
func (a Ask) Check() string {
	switch a.Op {
	case Set:
		if n := len(a.Reminder.ID); n > EntityBytes {
			return fmt.Sprintf("the id has %d bytes, at most %d are possible", n, EntityBytes)
		}
		return a.Reminder.Check()
	case List:
		k := a.Reminder.Key
		k.Name = "-" // A list has no name.
		return k.Check()
	default:
		return a.Reminder.Key.Check()
	}
}
