// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// Keys and values. Numbers are big-endian; a sum, CRC-32C, is over all before it and over the key.
//
//	record: key    length of the kind (1), kind, length of the id (2), id
//	        value  epoch (40), instance (8), version (8), version of the snapshot (8), form (4), bytes, sum (4)
//	event:  key    that of the record, version (8)
//	        value  form (4), bytes, sum (4)
//
// A record has the events with the versions above that of its snapshot, up to its own. Events that a
// snapshot stands for are deleted with it.

// row is a record without its events.
type row struct {
	store.Head

	base     uint64 // The version of the snapshot; of the head of before the first event, if there is none.
	snapshot store.Value
}

// table is the two buckets in a transaction.
type table struct{ records, events *bbolt.Bucket }

// keyOf returns the key of a record.
func keyOf(k store.Key) []byte {
	b := append([]byte{byte(len(k.Kind))}, k.Kind...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(k.ID))) // Bounded by checked.
	return append(b, k.ID...)
}

// The longest names of [store.Key].
const (
	maxKind = 128
	maxID   = 1024
)

// checked refuses a key that has no place in the file.
func checked(k store.Key) error {
	if len(k.Kind) > maxKind || len(k.ID) > maxID {
		return fmt.Errorf("a kind has at most %d bytes and an id %d: %.40q has %d and %d", maxKind, maxID, k.ID, len(k.Kind), len(k.ID))
	}
	return nil
}

func eventKey(record []byte, version uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(record), version)
}

// summed appends the sum of a key and a value to the value.
func summed(key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, sumOf(key, value))
}

func sumOf(key, value []byte) uint32 {
	t := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, t), t, value)
}

// unsummed returns a value without its sum, if that is right and so many bytes are there.
func unsummed(key, value []byte, least int) ([]byte, bool) {
	n := len(value) - 4
	if n < least || binary.BigEndian.Uint32(value[n:]) != sumOf(key, value[:n]) {
		return nil, false
	}
	return value[:n], true
}

const (
	headBytes  = epoch.Size + 8 + 8 + 8 + 4
	eventBytes = 4
)

func encodeRow(key []byte, r row) []byte {
	b, _ := r.Owner.Epoch.AppendBinary(make([]byte, 0, headBytes+len(r.snapshot.Bytes)+4)) // It never fails.
	b = binary.BigEndian.AppendUint64(b, r.Owner.Instance)
	b = binary.BigEndian.AppendUint64(b, r.Version)
	b = binary.BigEndian.AppendUint64(b, r.base)
	b = binary.BigEndian.AppendUint32(b, r.snapshot.Form)
	return summed(key, append(b, r.snapshot.Bytes...))
}

// decodeRow reads what encodeRow has written. The bytes of the snapshot are a copy.
func decodeRow(key, value []byte) (r row, ok bool) {
	b, ok := unsummed(key, value, headBytes)
	if !ok || r.Owner.Epoch.UnmarshalBinary(b[:epoch.Size]) != nil {
		return row{}, false
	}
	b = b[epoch.Size:]
	r.Owner.Instance = binary.BigEndian.Uint64(b)
	r.Version = binary.BigEndian.Uint64(b[8:])
	r.base = binary.BigEndian.Uint64(b[16:])
	r.snapshot = store.Value{Form: binary.BigEndian.Uint32(b[24:]), Bytes: bytes.Clone(b[28:])}
	return r, r.base <= r.Version
}

// read returns a record without its events; an empty one if it is not there.
func (t table) read(k store.Key) (row, error) {
	if err := checked(k); err != nil {
		return row{}, err
	}
	key := keyOf(k)
	value := t.records.Get(key)
	if value == nil {
		return row{}, nil
	}
	r, ok := decodeRow(key, value)
	if !ok {
		return row{}, fmt.Errorf("%w: %v", ErrDamaged, k)
	}
	return r, nil
}

func (t table) put(k store.Key, r row) error {
	key := keyOf(k)
	return t.records.Put(key, encodeRow(key, r))
}

// whole returns a record with its events.
func (t table) whole(k store.Key, r row) (store.Record, error) {
	record, key := store.Record{Head: r.Head, Snapshot: r.snapshot}, keyOf(k)
	for v := r.base + 1; v <= r.Version; v++ {
		at := eventKey(key, v)
		b, ok := unsummed(at, t.events.Get(at), eventBytes)
		if !ok {
			return store.Record{}, fmt.Errorf("%w: %v: event %d", ErrDamaged, k, v)
		}
		record.Events = append(record.Events, store.Value{Form: binary.BigEndian.Uint32(b), Bytes: bytes.Clone(b[eventBytes:])})
	}
	return record, nil
}

// change carries out a write, whose head was compared.
func (t table) change(r row, w store.Write) (row, error) {
	key := keyOf(w.Key)
	for i, e := range w.Events {
		at := eventKey(key, r.Version+1+uint64(i)) // An index.
		value := append(binary.BigEndian.AppendUint32(nil, e.Form), e.Bytes...)
		if err := t.events.Put(at, summed(at, value)); err != nil {
			return r, err
		}
	}
	if len(w.Events) == 0 {
		for v := r.base + 1; v <= r.Version; v++ {
			if err := t.events.Delete(eventKey(key, v)); err != nil {
				return r, err
			}
		}
		r.base, r.snapshot = w.Version, w.Snapshot
	}
	r.Version = w.Version
	return r, t.put(w.Key, r)
}
