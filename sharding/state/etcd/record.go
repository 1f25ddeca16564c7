// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/binary"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// The keys of a record and their values. Numbers are big-endian, so that owners compare as their bytes.
//
//	owner     epoch (40), instance (8)
//	version   8 bytes
//	snapshot  form (4), bytes
//	events    of one save: for each its form (4), length (4), bytes

// keys are those of one record.
type keys struct{ owner, version, snapshot, events string }

func (s *Store) keysOf(k store.Key) keys {
	name := url.PathEscape(k.Kind) + "/" + url.PathEscape(k.ID)
	return keys{s.prefix + "owners/" + name, s.prefix + "versions/" + name, s.prefix + "snapshots/" + name, s.prefix + "events/" + name + "/"}
}

// eventsAt is the key of the events of a save that has led to a version: such keys are in the order of
// versions.
func (k keys) eventsAt(version uint64) string { return fmt.Sprintf("%s%016x", k.events, version) }

func (k keys) deleteEvents() clientv3.Op { return clientv3.OpDelete(k.events, clientv3.WithPrefix()) }

// How many operations read a record, and how many its head.
const (
	headOps = 2
	readOps = 4
)

func (k keys) readHead() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(k.owner), clientv3.OpGet(k.version)}
}

func (k keys) read() []clientv3.Op {
	return append(k.readHead(), clientv3.OpGet(k.snapshot), clientv3.OpGet(k.events, clientv3.WithPrefix()))
}

// head reads the answers to readHead. A record that is not there has the zero head.
func (k keys) head(answers []*etcdserverpb.ResponseOp) (store.Head, error) {
	owner, version := answers[0].GetResponseRange().GetKvs(), answers[1].GetResponseRange().GetKvs()
	if len(owner) == 0 && len(version) == 0 {
		return store.Head{}, nil
	}
	if len(owner) == 0 || len(version) == 0 {
		return store.Head{}, fmt.Errorf("%w: only one of %s and %s is there", ErrMalformed, k.owner, k.version)
	}
	var h store.Head
	if b := owner[0].Value; len(b) != ownerSize || h.Owner.Epoch.UnmarshalBinary(b[:epoch.Size]) != nil {
		return store.Head{}, fmt.Errorf("%w: %s", ErrMalformed, k.owner)
	}
	h.Owner.Instance = binary.BigEndian.Uint64(owner[0].Value[epoch.Size:])
	if len(version[0].Value) != 8 {
		return store.Head{}, fmt.Errorf("%w: %s", ErrMalformed, k.version)
	}
	h.Version = binary.BigEndian.Uint64(version[0].Value)
	return h, nil
}

// record reads the answers to read.
func (k keys) record(answers []*etcdserverpb.ResponseOp) (r store.Record, err error) {
	if r.Head, err = k.head(answers); err != nil {
		return store.Record{}, err
	}
	if found := answers[2].GetResponseRange().GetKvs(); len(found) > 0 {
		b := found[0].Value
		if len(b) < formSize {
			return store.Record{}, fmt.Errorf("%w: %s", ErrMalformed, k.snapshot)
		}
		r.Snapshot = store.Value{Form: binary.BigEndian.Uint32(b), Bytes: b[formSize:]}
	}
	for _, saved := range answers[3].GetResponseRange().GetKvs() {
		var ok bool
		if r.Events, ok = appendEvents(r.Events, saved.Value); !ok {
			return store.Record{}, fmt.Errorf("%w: %s", ErrMalformed, saved.Key)
		}
	}
	return r, nil
}

const (
	ownerSize = epoch.Size + 8
	formSize  = 4
)

func ownerBytes(o store.Owner) string {
	b, _ := o.Epoch.AppendBinary(make([]byte, 0, ownerSize)) // It never fails.
	return string(binary.BigEndian.AppendUint64(b, o.Instance))
}

func versionBytes(v uint64) string { return string(binary.BigEndian.AppendUint64(nil, v)) }

func valueBytes(v store.Value) string {
	return string(append(binary.BigEndian.AppendUint32(make([]byte, 0, formSize+len(v.Bytes)), v.Form), v.Bytes...))
}

func eventsBytes(events []store.Value) string {
	var b []byte
	for _, e := range events {
		b = binary.BigEndian.AppendUint32(b, e.Form)
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Bytes))) // Etcd takes megabytes.
		b = append(b, e.Bytes...)
	}
	return string(b)
}

// appendEvents reads what eventsBytes has written.
func appendEvents(events []store.Value, b []byte) ([]store.Value, bool) {
	for len(b) > 0 {
		if len(b) < 2*formSize {
			return nil, false
		}
		form, size := binary.BigEndian.Uint32(b), int64(binary.BigEndian.Uint32(b[formSize:]))
		if b = b[2*formSize:]; size > int64(len(b)) {
			return nil, false
		}
		events = append(events, store.Value{Form: form, Bytes: b[:size:size]})
		b = b[size:]
	}
	return events, true
}
