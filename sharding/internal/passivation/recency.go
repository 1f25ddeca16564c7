// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

// recencyPolicy orders by the last use, and evicts the oldest, or the newest.
type recencyPolicy struct {
	o      *Order
	list   listID
	newest bool
}

func (p *recencyPolicy) enter(s Handle)      { p.o.push(p.list, s) }
func (p *recencyPolicy) back(s Handle)       { p.o.push(p.list, s) }
func (p *recencyPolicy) use(s Handle)        { p.o.lead(p.list, s) }
func (p *recencyPolicy) left(Handle, listID) {}
func (p *recencyPolicy) resize(int)          {}

// victim leaves out the newest of all when that is asked for and there is another one: it has just
// come, and is what the others make room for. If that other one stays, since it is busy, the newest is next.
func (p *recencyPolicy) victim() Handle {
	l := &p.o.lists[p.list]
	if !p.newest {
		return l.last
	}
	if l.n > 1 && p.o.lists[p.o.aside].n == 0 {
		return p.o.entries[l.first].next
	}
	return l.first
}
