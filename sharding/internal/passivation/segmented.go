// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

// segmentedPolicy has two lists by the last use: what enters is on probation, and is protected from its
// second use on. When more are protected than may be, the one that was not used for the longest time is on
// probation again. What is on probation goes first.
type segmentedPolicy struct {
	o                    *Order
	probation, protected listID
	most                 int // How many may be protected.
}

func (p *segmentedPolicy) enter(s Handle) { p.o.push(p.probation, s) }

// back does not promote: not to be stopped is no use.
func (p *segmentedPolicy) back(s Handle) { p.o.push(p.probation, s) }

func (p *segmentedPolicy) use(s Handle) {
	p.o.lead(p.protected, s)
	p.demote()
}

func (p *segmentedPolicy) victim() Handle {
	if s := p.o.lists[p.probation].last; s != 0 {
		return s
	}
	return p.o.lists[p.protected].last
}

func (p *segmentedPolicy) left(Handle, listID) {}

func (p *segmentedPolicy) resize(limit int) {
	p.most = min(share(limit, p.o.cfg.Protected), limit-1)
}

// demote puts one on probation again if too many are protected. A use adds one, so that one is enough then, and
// while a window grows.
func (p *segmentedPolicy) demote() {
	if p.o.lists[p.protected].n > p.most {
		p.o.lead(p.probation, p.o.lists[p.protected].last)
	}
}

// demoteAll does so until no more are protected than may be, after the limit of the order has become smaller.
func (p *segmentedPolicy) demoteAll() {
	for n := p.o.lists[p.protected].n - p.most; n > 0; n-- {
		p.demote()
	}
}
