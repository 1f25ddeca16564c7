// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/quorate/quorate/ddata/store"
)

// A batch is encoded as flags, the group, the meta if there is one, the number of changes,
// and the changes, each a key and, unless it drops the key, a value. Texts and values
// have their length before them. A log has the batches as they were applied, a
// run sorted by key, so that one decoder is enough ([cutBatch], [cutChange]).

const (
	flagWipe = 1 << iota
	flagMeta
	flagsKnown = flagWipe | flagMeta
)

// errBatch is the error about a payload that is no batch although its check sum is right.
var errBatch = errors.New("not a batch")

// entry is what is known of a key: its value, or that it was dropped.
type entry struct {
	value   []byte
	dropped bool
}

// batchHead is what precedes the changes of a batch.
type batchHead struct {
	group   string
	wipe    bool
	meta    []byte // Nil if there is none.
	changes uint64
}

func appendHead(b []byte, h batchHead) []byte {
	var flags byte
	if h.wipe {
		flags |= flagWipe
	}
	if h.meta != nil {
		flags |= flagMeta
	}
	b = appendText(append(b, flags), h.group)
	if h.meta != nil {
		b = appendText(b, string(h.meta))
	}
	return binary.AppendUvarint(b, h.changes)
}

func appendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

const (
	changePut  = 0
	changeDrop = 1
)

func appendChange(b []byte, key string, e entry) []byte {
	if e.dropped {
		return appendText(append(b, changeDrop), key)
	}
	return appendText(appendText(append(b, changePut), key), e.value)
}

// appendBatch encodes a batch for the log.
func appendBatch(b []byte, batch store.Batch) []byte {
	b = appendHead(b, batchHead{
		group: batch.Group, wipe: batch.Wipe, meta: batch.Meta, changes: uint64(len(batch.Put)) + uint64(len(batch.Drop)),
	})
	for _, r := range batch.Put {
		b = appendChange(b, r.Key, entry{value: r.Value})
	}
	for _, key := range batch.Drop {
		b = appendChange(b, key, entry{dropped: true})
	}
	return b
}

// size returns how long the encoded batch is at most.
func size(batch store.Batch) int64 {
	const each = 2*binary.MaxVarintLen64 + 1
	total := int64(len(batch.Group)) + int64(len(batch.Meta)) + 4*binary.MaxVarintLen64
	for _, r := range batch.Put {
		total += int64(len(r.Key)) + int64(len(r.Value)) + each
	}
	for _, key := range batch.Drop {
		total += int64(len(key)) + each
	}
	return total
}

// cutBatch reads the head of the batch at the start of b; the rest begins with its changes.
func cutBatch(b []byte) (h batchHead, rest []byte, err error) {
	if len(b) == 0 || b[0]&^flagsKnown != 0 {
		return h, nil, errBatch
	}
	flags := b[0]
	h.wipe = flags&flagWipe != 0
	group, rest, err := cutText(b[1:])
	if err != nil {
		return h, nil, err
	}
	h.group = string(group)
	if flags&flagMeta != 0 {
		if h.meta, rest, err = cutText(rest); err != nil {
			return h, nil, err
		}
	}
	changes, n := binary.Uvarint(rest)
	if n <= 0 || changes > uint64(len(rest)) { // A change has two bytes at least.
		return h, nil, errBatch
	}
	h.changes = changes
	return h, rest[n:], nil
}

// cutChange reads the change at the start of b. Key and value are parts of b.
func cutChange(b []byte) (key []byte, e entry, rest []byte, err error) {
	if len(b) == 0 || b[0] > changeDrop {
		return nil, e, nil, errBatch
	}
	e.dropped = b[0] == changeDrop
	if key, rest, err = cutText(b[1:]); err != nil || e.dropped {
		return key, e, rest, err
	}
	e.value, rest, err = cutText(rest)
	return key, e, rest, err
}

// cutText reads a text with its length; it is never nil and has no room behind it.
func cutText(b []byte) (text, rest []byte, err error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > math.MaxInt32 || length > uint64(len(b)-n) {
		return nil, nil, errBatch
	}
	end := n + int(length)
	return b[n:end:end], b[end:], nil
}
