// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import "github.com/quorate/quorate/machine"

// The front of the package, and the memory of all policies: entries in one slice, which lists
// connect by their numbers. A policy (recency.go, segmented.go, frequency.go, window.go) puts an
// entry into a list, moves it there, and says which is the next to go. Aside is a list too, in which
// a victim is until it leaves or is put back.

// Handle names an entity in an [Order]; 0 names none. The handle of one that has left is given again.
type Handle uint32

// entry is what is known of an entity.
type entry struct {
	prev, next Handle
	list       listID // 0: the entry is free.
	count      uint32 // How often the entity was used, by the frequency policy.
	key        uint32 // A hash of the id, for the sketch.
	window     bool   // The entity belongs to the window.
}

// listID names a list of an [Order]; 0 names none.
type listID uint32

// list is a list of entries, the one used last first.
type list struct {
	first, last Handle
	n           int
	// prev, next and count are of a list of one frequency: its neighbours, and the frequency.
	prev, next listID
	count      uint32
}

// policy puts entries in order.
type policy interface {
	// enter adds an entry that is in no list.
	enter(s Handle)
	// use moves an entry, which may be aside.
	use(s Handle)
	// victim is the next to go, and stays where it is; 0 when all are aside.
	victim() Handle
	// back puts an entry back that is aside.
	back(s Handle)
	// left is told of an entry that leaves, or is a victim now, after it was taken out of the list. From aside a
	// victim leaves.
	left(s Handle, from listID)
	// resize says how many entities there may be.
	resize(limit int)
}

// Order knows the entities that run, and which of them goes next. Invariants, between calls:
//
//	O1  each entry is in one list: of the policy, aside, or that of free entries;
//	O2  len is the number of entries that are not free.
type Order struct {
	cfg     Config
	entries []entry // Handle 0 is not used.
	lists   []list  // List 0 is not used.
	free    Handle  // The first of the free entries, connected by next.
	spare   listID  // The first of the free lists, connected by next.
	aside   listID
	len     int
	policy  policy
	window  *windowPolicy // The policy, if it has a window.

	segmented *segmentedPolicy // The policy, or its main part, if that is segmented.
}

// New returns an order without anybody.
func New(cfg Config) *Order {
	o := &Order{cfg: cfg.settled(), entries: make([]entry, 1), lists: make([]list, 1)}
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
		return &recencyPolicy{o: o, list: o.newList(), newest: true}
	case Segmented:
		o.segmented = &segmentedPolicy{o: o, probation: o.newList(), protected: o.newList()}
		return o.segmented
	case LeastFrequentlyUsed:
		return &frequencyPolicy{o: o}
	default:
		return &recencyPolicy{o: o, list: o.newList()}
	}
}

// Len returns the number of entities, those aside included.
func (o *Order) Len() int { return o.len }

// Limit returns how many may be.
func (o *Order) Limit() int { return o.cfg.Limit }

// Excess returns by how many entities exceed the limit; 0 if they do not.
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

// Enter adds an entity that starts, which is its first use. The key is a hash of its id.
func (o *Order) Enter(key uint64) Handle {
	s := o.free
	if s == 0 {
		s = Handle(len(o.entries))
		o.entries = append(o.entries, entry{})
	} else {
		o.free = o.entries[s].next
	}
	o.entries[s] = entry{key: uint32(key ^ key>>32)}
	o.len++
	o.policy.enter(s)
	return s
}

// Use says that an entity was used.
func (o *Order) Use(s Handle) {
	machine.Assert(o.entries[s].list != 0, "who is used has an entry")
	o.policy.use(s)
}

// Leave removes an entity.
func (o *Order) Leave(s Handle) {
	from := o.entries[s].list
	machine.Assert(from != 0, "who leaves has an entry")
	o.take(s)
	o.policy.left(s, from)
	o.entries[s] = entry{next: o.free}
	o.free = s
	o.len--
}

// Victim names the next to go and puts it aside. 0: all are aside.
func (o *Order) Victim() Handle {
	s := o.policy.victim()
	if s != 0 {
		from := o.entries[s].list
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

// push puts an entry first in a list.
func (o *Order) push(id listID, s Handle) {
	l := &o.lists[id]
	e := &o.entries[s]
	e.list, e.prev, e.next = id, 0, l.first
	if l.first != 0 {
		o.entries[l.first].prev = s
	} else {
		l.last = s
	}
	l.first = s
	l.n++
}

// take takes an entry out of its list.
func (o *Order) take(s Handle) {
	e := &o.entries[s]
	l := &o.lists[e.list]
	if e.prev != 0 {
		o.entries[e.prev].next = e.next
	} else {
		l.first = e.next
	}
	if e.next != 0 {
		o.entries[e.next].prev = e.prev
	} else {
		l.last = e.prev
	}
	l.n--
	e.list, e.prev, e.next = 0, 0, 0
}

// lead makes an entry the first of a list.
func (o *Order) lead(id listID, s Handle) {
	if o.lists[id].first != s {
		o.take(s)
		o.push(id, s)
	}
}
