// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import "github.com/quorate/quorate/machine"

// The front of the package, and the memory of all policies: seats in one slice, which lists
// connect by their numbers. A policy (recency.go, segmented.go, frequency.go, window.go) puts a
// seat into a list, moves it there, and says which is the next to go. Aside is a list too, in which
// a victim is until it leaves or is put back.

// Seat names an entity in an [Order]; 0 names none. The seat of one that has left is given again.
type Seat uint32

// seat is what is known of an entity.
type seat struct {
	prev, next Seat
	list       listID // 0: the seat is free.
	count      uint32 // How often the entity was used, by the frequency policy.
	key        uint32 // A hash of the id, for the sketch.
	window     bool   // The entity belongs to the window.
}

// listID names a list of an [Order]; 0 names none.
type listID uint32

// list is a list of seats, that of the last use first.
type list struct {
	first, last Seat
	n           int
	// prev, next and count are of a list of one frequency: its neighbours, and the frequency.
	prev, next listID
	count      uint32
}

// policy puts seats in order.
type policy interface {
	// enter puts a seat in that is in no list.
	enter(s Seat)
	// use moves a seat, which may be aside.
	use(s Seat)
	// victim is the next to go, and stays where it is; 0 when all are aside.
	victim() Seat
	// back puts a seat in again that is aside.
	back(s Seat)
	// left hears of a seat that leaves, or is a victim now, after it was taken out of the list. From aside a
	// victim leaves.
	left(s Seat, from listID)
	// resize says how many may be seated.
	resize(limit int)
}

// Order knows who is seated and who goes next. Invariants, between calls:
//
//	O1  each seat is in one list: of the policy, aside, or that of free seats;
//	O2  len is the number of seats that are not free.
type Order struct {
	cfg    Config
	seats  []seat // Seat 0 is not used.
	lists  []list // List 0 is not used.
	free   Seat   // The first of the free seats, connected by next.
	spare  listID // The first of the free lists, connected by next.
	aside  listID
	len    int
	policy policy
	window *windowed // The policy, if it has a window.

	segmented *segmented // The policy, or its main part, if that is segmented.
}

// New returns an order without anybody.
func New(cfg Config) *Order {
	o := &Order{cfg: cfg.settled(), seats: make([]seat, 1), lists: make([]list, 1)}
	o.aside = o.newList()
	if o.cfg.Policy.Windowed() {
		o.window = newWindowed(o)
		o.policy = o.window
	} else {
		o.policy = o.plain(o.cfg.Policy)
	}
	o.policy.resize(o.cfg.Limit)
	return o
}

// plain returns a policy without a window.
func (o *Order) plain(p Policy) policy {
	switch p {
	case MostRecentlyUsed:
		return &recency{o: o, list: o.newList(), newest: true}
	case Segmented:
		o.segmented = &segmented{o: o, probation: o.newList(), protected: o.newList()}
		return o.segmented
	case LeastFrequentlyUsed:
		return &frequency{o: o}
	default:
		return &recency{o: o, list: o.newList()}
	}
}

// Len returns how many are seated, those aside included.
func (o *Order) Len() int { return o.len }

// Limit returns how many may be.
func (o *Order) Limit() int { return o.cfg.Limit }

// Excess returns by how many the seated exceed the limit; 0 if they do not.
func (o *Order) Excess() int { return max(o.len-o.cfg.Limit, 0) }

// Resize changes the limit. What is known of uses stays.
func (o *Order) Resize(limit int) {
	if limit = max(limit, 1); limit == o.cfg.Limit {
		return
	}
	o.cfg.Limit = limit
	o.policy.resize(o.cfg.Limit)
	if o.segmented != nil {
		o.segmented.demoteAll()
	}
}

// Enter gives a seat to an entity that starts, which is its first use. The key is a hash of its id.
func (o *Order) Enter(key uint64) Seat {
	s := o.free
	if s == 0 {
		s = Seat(len(o.seats))
		o.seats = append(o.seats, seat{})
	} else {
		o.free = o.seats[s].next
	}
	o.seats[s] = seat{key: uint32(key ^ key>>32)}
	o.len++
	o.policy.enter(s)
	return s
}

// Use says that an entity was used.
func (o *Order) Use(s Seat) {
	machine.Assert(o.seats[s].list != 0, "who is used has a seat")
	o.policy.use(s)
}

// Leave frees a seat.
func (o *Order) Leave(s Seat) {
	from := o.seats[s].list
	machine.Assert(from != 0, "who leaves has a seat")
	o.take(s)
	o.policy.left(s, from)
	o.seats[s] = seat{next: o.free}
	o.free = s
	o.len--
}

// Victim names the next to go and puts it aside. 0: all are aside.
func (o *Order) Victim() Seat {
	s := o.policy.victim()
	if s != 0 {
		from := o.seats[s].list
		o.take(s)
		o.policy.left(s, from)
		o.push(o.aside, s)
	}
	return s
}

// Return puts back those who were named as victims and have not left.
func (o *Order) Return() {
	for s := o.lists[o.aside].last; s != 0; s = o.lists[o.aside].last {
		o.take(s)
		o.policy.back(s)
	}
}

// newList returns an empty list.
func (o *Order) newList() listID {
	if id := o.spare; id != 0 {
		o.spare = o.lists[id].next
		o.lists[id] = list{}
		return id
	}
	o.lists = append(o.lists, list{})
	return listID(len(o.lists) - 1)
}

// freeList takes back an empty list.
func (o *Order) freeList(id listID) {
	o.lists[id] = list{next: o.spare}
	o.spare = id
}

// push puts a seat first in a list.
func (o *Order) push(id listID, s Seat) {
	l := &o.lists[id]
	e := &o.seats[s]
	e.list, e.prev, e.next = id, 0, l.first
	if l.first != 0 {
		o.seats[l.first].prev = s
	} else {
		l.last = s
	}
	l.first = s
	l.n++
}

// take takes a seat out of its list.
func (o *Order) take(s Seat) {
	e := &o.seats[s]
	l := &o.lists[e.list]
	if e.prev != 0 {
		o.seats[e.prev].next = e.next
	} else {
		l.first = e.next
	}
	if e.next != 0 {
		o.seats[e.next].prev = e.prev
	} else {
		l.last = e.prev
	}
	l.n--
	e.list, e.prev, e.next = 0, 0, 0
}

// lead makes a seat the first of a list.
func (o *Order) lead(id listID, s Seat) {
	if o.lists[id].first != s {
		o.take(s)
		o.push(id, s)
	}
}
