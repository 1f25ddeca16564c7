// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

// recency orders by the last use, and evicts the oldest, or the newest.
type recency struct {
	o      *Order
	list   listID
	newest bool
}

func (p *recency) enter(s Seat)      { p.o.push(p.list, s) }
func (p *recency) back(s Seat)       { p.o.push(p.list, s) }
func (p *recency) use(s Seat)        { p.o.lead(p.list, s) }
func (p *recency) left(Seat, listID) {}
func (p *recency) resize(int)        {}

// victim leaves out the newest of all when that is asked for and there is another one: it has just
// come, and is what the others make room for. If that other one stays, since it is busy, the newest is next.
func (p *recency) victim() Seat {
	l := &p.o.lists[p.list]
	if !p.newest {
		return l.last
	}
	if l.n > 1 && p.o.lists[p.o.aside].n == 0 {
		return p.o.seats[l.first].next
	}
	return l.first
}
