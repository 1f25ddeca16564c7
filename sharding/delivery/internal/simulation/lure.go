// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/queuefile"
)

// What an attacker puts into messages: records as the file of the queue has them, in the hope that a crash leaves
// nothing of the entry but these. The attacker knows everything of the producer and of its file, but for the salt.

// salt draws a salt.
func (b *box) salt() (s queuefile.Salt) {
	for i := range s {
		s[i] = byte(b.salts.Uint32())
	}
	return s
}

// lure appends records to the message of an entry that will be the next one in the file. What the entities handle ends
// before them.
func (b *box) lure(e *delivery.Entry) {
	if !b.p.w.chance(0.2) {
		return
	}
	b.p.w.Counts.Lures++
	e.Message = append(e.Message, 0)
	at := int64(len(b.content()))
	own := queuefile.Record{ID: e.EntryID, To: e.To, Message: e.Message}
	begin := len(own.Append(nil, queuefile.Salt{}, at)) // So long is the record without what follows.
	forged := make([]byte, begin)
	for most := begin + b.p.w.rand.IntN(3000); len(forged) <= most; {
		forged = b.forge(forged, at, e)
	}
	e.Message = append(e.Message, forged[begin:]...)
}

// forge appends something to what will be in the file from some place on.
func (b *box) forge(dst []byte, from int64, e *delivery.Entry) []byte {
	w, at := b.p.w, from+int64(len(dst))
	r := queuefile.Record{ID: e.EntryID, To: e.To, Message: fmt.Appendf(nil, "%s/%s/0", b.p.name, e.To)}
	r.ID.Number = 1<<40 + w.rand.Uint64N(1000)
	switch w.rand.IntN(4) {
	case 0: // An entry that nobody has accepted.
	case 1: // The same, and all before it was synced: what is missing there would be damage.
		r.Mark = at
	case 2: // The end of an entry.
		if len(b.p.queue) > 0 {
			r = queuefile.Record{ID: b.p.queue[0].EntryID, Removal: true}
		}
	case 3: // A part of the file itself.
		whole := b.content()
		begin := w.rand.IntN(len(whole))
		return append(dst, whole[begin:min(begin+1000, len(whole))]...)
	}
	return r.Append(dst, queuefile.Salt{}, at)
}

// content returns what the file holds.
func (b *box) content() []byte { return b.dir.Names["queue"].Data }

// textOf returns what the entities handle of an entry.
func textOf(e *delivery.Entry) string {
	text, _, _ := bytes.Cut(e.Message, []byte{0})
	return string(text)
}
