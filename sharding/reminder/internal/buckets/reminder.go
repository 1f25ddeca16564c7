// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"cmp"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/machine/wire"
)

// Reminders: first the type and its bounds, then the times, then the encoding, in the store and in messages between
// nodes.

// Bounds of a reminder. No entity has an id of more than EntityBytes: a reminder for such an id would never be
// acknowledged, and is refused. Ids in stored pages may have up to IDBytes, the bound of earlier releases.
const (
	KindBytes    = 128
	EntityBytes  = 512 // By sharding.CheckEntityID.
	IDBytes      = 1024
	NameBytes    = 128
	PayloadBytes = 4 << 10
)

// MinEvery is the shortest interval between two occurrences.
const MinEvery = time.Second

// The first and the last time of a reminder: the beginning of year 1 and the end of year 9999, in Unix milliseconds.
const (
	DueMin = int64(-62_135_596_800_000)
	MaxDue = int64(253_402_300_799_999)
)

// Key names a reminder: by its entity, and its name among the reminders of that.
type Key struct{ Kind, ID, Name string }

// Compare orders keys by kind, id and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.ID, o.ID), cmp.Compare(k.Name, o.Name))
}

// Entity returns the key without a name.
func (k Key) Entity() Key { return Key{Kind: k.Kind, ID: k.ID} }

// Reminder is a reminder as it is stored. Times are in Unix milliseconds.
type Reminder struct {
	Key

	Due     int64
	Every   int64 // The interval between two occurrences, in milliseconds; zero: there is one occurrence.
	Set     int64 // When it was set, by the clock of the owner of the bucket.
	Payload []byte
}

// Check says what is wrong with a key; empty if it is valid.
func (k Key) Check() string {
	for _, part := range []struct {
		noun, text string
		most       int
	}{{"kind", k.Kind, KindBytes}, {"id", k.ID, IDBytes}, {"name", k.Name, NameBytes}} {
		switch {
		case part.text == "":
			return "the " + part.noun + " is empty"
		case len(part.text) > part.most:
			return fmt.Sprintf("the %s has %d bytes, at most %d are possible", part.noun, len(part.text), part.most)
		case !utf8.ValidString(part.text):
			return "the " + part.noun + " is not valid UTF-8"
		}
	}
	return ""
}

// Check says what is wrong with a reminder; empty if it is valid.
func (r Reminder) Check() string {
	if fault := r.Key.Check(); fault != "" {
		return fault
	}
	switch {
	case len(r.Payload) > PayloadBytes:
		return fmt.Sprintf("the payload has %d bytes, at most %d are possible", len(r.Payload), PayloadBytes)
	case r.Due < DueMin || r.Due > MaxDue:
		return "the due time is not in the years 1 to 9999"
	case r.Every != 0 && r.Every < MinEvery.Milliseconds():
		return fmt.Sprintf("every is %d ms, at least %v are possible, or zero for once", r.Every, MinEvery)
	}
	return ""
}

// passed returns how many occurrences after the one that is due have passed at a time, and the first
// occurrence after that time; of a reminder without further occurrences, zero and zero.
func (r Reminder) passed(wall int64) (missed uint64, next int64) {
	if r.Every == 0 {
		return 0, 0
	}
	missed = uint64(max(0, wall-r.Due) / r.Every)
	last := r.Due + int64(missed)*r.Every
	if last > MaxDue-r.Every {
		return missed, MaxDue
	}
	return missed, last + r.Every
}

// The fields of a reminder.
const (
	fieldKind wire.Number = iota + 1
	fieldID
	fieldName
	fieldDue
	fieldEvery
	fieldSet
	fieldPayload
)

// zigzag maps times around 1970 to small numbers.
func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendKey(b []byte, k Key) []byte {
	b = wire.AppendString(b, fieldKind, k.Kind)
	b = wire.AppendString(b, fieldID, k.ID)
	return wire.AppendString(b, fieldName, k.Name)
}

// AppendReminder appends the encoding of a reminder.
func AppendReminder(b []byte, r Reminder) []byte {
	b = appendKey(b, r.Key)
	b = wire.AppendUint(b, fieldDue, zigzag(r.Due))
	b = wire.AppendUint(b, fieldEvery, uint64(r.Every))
	b = wire.AppendUint(b, fieldSet, zigzag(r.Set))
	return wire.AppendBytes(b, fieldPayload, r.Payload)
}

// set reads one field. Fields of later versions are skipped.
func (r *Reminder) set(f *wire.Field) (err error) {
	var v uint64
	switch f.Number {
	case fieldKind:
		return wire.SetName(&r.Kind, f, KindBytes)
	case fieldID:
		return wire.SetText(&r.ID, f, IDBytes)
	case fieldName:
		return wire.SetText(&r.Name, f, NameBytes)
	case fieldDue:
		v, err = f.Uint(math.MaxUint64)
		r.Due = unzigzag(v)
	case fieldEvery:
		v, err = f.Uint(math.MaxInt64)
		r.Every = int64(v)
	case fieldSet:
		v, err = f.Uint(math.MaxUint64)
		r.Set = unzigzag(v)
	case fieldPayload:
		var data []byte
		data, err = f.Data(PayloadBytes)
		r.Payload = append([]byte(nil), data...)
	}
	return err
}

// DecodeReminder decodes a reminder, which is not checked.
func DecodeReminder(b []byte) (r Reminder, err error) {
	err = wire.Each(b, r.set)
	return r, err
}
