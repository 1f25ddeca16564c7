// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "iter"

// entityList has the records of the entities by id, and in the order in which they were made. The map and the list hold
// the same records. The zero value is empty.
type entityList struct {
	byID        map[string]*Entity
	recent      *Entity // The entity of the last message, since messages come in runs.
	first, last *Entity // The ends of the list.
	walking     bool    // A walk is under way, and goes on with the entity cursor.
	cursor      *Entity // The entity with which the next call of walk goes on.
}

// empty reports whether there is no record.
func (l *entityList) empty() bool { return l.first == nil }

// len returns the number of records.
func (l *entityList) len() int { return len(l.byID) }

// entity returns the record of an entity, nil if it has none.
func (l *entityList) entity(id string) *Entity {
	if l.recent != nil && l.recent.id == id {
		return l.recent
	}
	e := l.byID[id]
	if e != nil {
		l.recent = e
	}
	return e
}

// has reports whether e is the record of its entity: it may have been removed, and another one made.
func (l *entityList) has(e *Entity) bool { return l.byID[e.id] == e }

// all yields the records in their order. The one that is yielded may be removed.
func (l *entityList) all() iter.Seq[*Entity] {
	return func(yield func(*Entity) bool) {
		for e := l.first; e != nil; {
			next := e.next
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// walk yields up to most records, from where the last walk ended, and reports whether it has come to the last one. The
// record that is yielded may be removed.
func (l *entityList) walk(most int, visit func(*Entity)) (over bool) {
	e := l.cursor
	if !l.walking {
		e = l.first
	}
	for ; e != nil && most > 0; most-- {
		next := e.next
		visit(e)
		e = next
	}
	l.cursor, l.walking = e, e != nil
	return e == nil
}

// create makes the record of an entity that has none.
func (l *entityList) create(id string) *Entity {
	e := &Entity{id: id, state: entityWaiting, prev: l.last}
	if l.byID == nil {
		l.byID = make(map[string]*Entity)
	}
	l.byID[id] = e
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	return e
}

// remove takes a record out.
func (l *entityList) remove(e *Entity) {
	delete(l.byID, e.id)
	if l.recent == e {
		l.recent = nil
	}
	if l.cursor == e {
		l.cursor = e.next
	}
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}
