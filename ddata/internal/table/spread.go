// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

// Taking what has changed out of the journal of the table: local updates, to be sent to other replicas
// ([Table.Pending]), and changed keys, for subscribers and the store ([Table.Changed]).

// Pending returns local updates that were not returned before: one change a key, in the
// order in which the keys were changed first. It ends with the change that reaches the
// limit, of about that many bytes; nothing is left if it returns none. Changes of a key
// that was deleted or has expired since are not returned.
func (t *Table) Pending(limitBytes int) []Change {
	var changes []Change
	for size := 0; size < limitBytes; {
		p, ok := t.journal.popPending()
		if !ok {
			break
		}
		if !t.buckets[BucketOf(p.key)].detach(p) {
			continue
		}
		change, bytes, err := t.kinds.change(p)
		if err != nil {
			continue // Whoever gets a later change asks for the whole entry.
		}
		changes = append(changes, change)
		size += bytes
	}
	return changes
}

// Unspread returns how many keys have local updates that Pending has not returned.
func (t *Table) Unspread() int {
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	return t.journal.pending.len()
}

// detach takes a record of a key of the bucket out of its cell, and reports whether it is to be spread.
func (b *bucket) detach(p *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.cells[p.key]; c != nil && c.pending == p {
		c.pending = nil
	}
	return !p.dead
}

// Changed returns keys of which the entry has changed, or gone by a sweep or Drop, since they were
// returned last: each once, in the order in which they changed first. Nothing is left if
// it returns less than max.
func (t *Table) Changed(limit int) []string {
	var keys []string
	for len(keys) < limit {
		key, ok := t.journal.popChanged()
		if !ok {
			break
		}
		if t.noticed(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// noticed reports whether a key has changed since it was returned last, and counts it as returned.
func (all buckets) noticed(key string) bool {
	b := &all[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.cells[key]; c != nil {
		changed := c.changed
		c.changed = false
		return changed
	}
	return b.forget(key)
}

// forget reports whether a key without a cell is in the queue of changed keys, and takes it
// for one that is not.
func (b *bucket) forget(key string) bool {
	_, queued := b.gone[key]
	if delete(b.gone, key); len(b.gone) == 0 {
		b.gone = nil // A map keeps the room that it has once needed.
	}
	return queued
}
