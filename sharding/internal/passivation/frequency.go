// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import "math"

// frequencyPolicy has a list for each number of uses, in the order of the numbers, and evicts from the
// lowest, there what was not used for the longest time. What has just entered is named when
// there is nothing else, and when the one that was named before it stays, since it is busy.
type frequencyPolicy struct {
	o      *Order
	lowest listID
	age    uint32 // With aging, the highest count of a victim that has gone; else 0.
	newest Handle // What has entered last.
}

func (p *frequencyPolicy) enter(s Handle) {
	p.newest = s
	p.o.entries[s].count = p.age + 1
	p.place(s, 0)
}

func (p *frequencyPolicy) back(s Handle) { p.place(s, 0) }

func (p *frequencyPolicy) use(s Handle) {
	e := &p.o.entries[s]
	e.count = min(e.count, math.MaxUint32-1) + 1
	from := e.list
	p.o.take(s)
	if p.o.lists[from].count == 0 { // It was aside.
		p.place(s, 0)
		return
	}
	p.place(s, from)
	p.clean(from)
}

// victim is from the list with the lowest count, or of the next one if that has only what entered
// last.
func (p *frequencyPolicy) victim() Handle {
	if p.lowest == 0 {
		return 0
	}
	l := &p.o.lists[p.lowest]
	s := l.last
	if s == p.newest && p.o.lists[p.o.aside].n == 0 {
		if other := p.o.entries[s].prev; other != 0 {
			s = other
		} else if l.next != 0 {
			s = p.o.lists[l.next].last
		}
	}
	return s
}

// place puts an entry into the list of its count, which is at or behind the list from; 0: the lowest.
func (p *frequencyPolicy) place(s Handle, from listID) {
	count := p.o.entries[s].count
	before, at := listID(0), p.lowest
	if from != 0 {
		before, at = from, p.o.lists[from].next
	}
	for at != 0 && p.o.lists[at].count < count {
		before, at = at, p.o.lists[at].next
	}
	if at == 0 || p.o.lists[at].count != count {
		at = p.insert(count, before, at)
	}
	p.o.push(at, s)
}

// insert makes a list of a count between two others, each of which may be 0.
func (p *frequencyPolicy) insert(count uint32, before, behind listID) listID {
	id := p.o.newList()
	l := &p.o.lists[id]
	l.count, l.prev, l.next = count, before, behind
	if before == 0 {
		p.lowest = id
	} else {
		p.o.lists[before].next = id
	}
	if behind != 0 {
		p.o.lists[behind].prev = id
	}
	return id
}

// left has what enters from now on start from the frequency of a victim that goes.
func (p *frequencyPolicy) left(s Handle, from listID) {
	if from == p.o.aside && p.o.cfg.Aging { // A victim goes, which was aside.
		p.age = max(p.age, min(p.o.entries[s].count, math.MaxUint32-1))
	}
	p.clean(from)
}

// clean gives the list back that has become empty.
func (p *frequencyPolicy) clean(from listID) {
	l := p.o.lists[from]
	if l.n > 0 || l.count == 0 { // Others are there, or it is not a list of a frequency.
		return
	}
	if l.prev == 0 {
		p.lowest = l.next
	} else {
		p.o.lists[l.prev].next = l.next
	}
	if l.next != 0 {
		p.o.lists[l.next].prev = l.prev
	}
	p.o.freeList(from)
}

func (p *frequencyPolicy) resize(int) {}
