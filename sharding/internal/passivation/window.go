// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

// windowPolicy has a window, ordered by the last use, before a main part with a policy of its own. What
// leaves the window contends with the victim of the main part: who was used more often stays, and
// the other one goes; at a draw the one from the window goes. So what is used once, however much of
// it there is, passes through the window and moves nothing else.
type windowPolicy struct {
	o      *Order
	list   listID // The window.
	main   policy
	sketch sketch
	climb  *climber // Nil when the share of the window stays.
	most   int      // How many the window may have.
}

func newWindowed(o *Order) *windowPolicy {
	p := &windowPolicy{o: o, list: o.newList(), main: o.plain(o.cfg.Main)}
	if o.cfg.Policy == WTinyLFU {
		p.climb = newClimber(o.cfg.Window)
	}
	return p
}

func (p *windowPolicy) enter(s Handle) {
	p.sketch.add(p.o.entries[s].key)
	p.observe(false)
	p.o.entries[s].window = true
	p.o.push(p.list, s)
	p.overflow()
}

func (p *windowPolicy) use(s Handle) {
	p.sketch.add(p.o.entries[s].key)
	p.observe(true)
	if p.o.entries[s].window {
		p.o.lead(p.list, s)
		return
	}
	p.main.use(s)
}

func (p *windowPolicy) back(s Handle) {
	if p.o.entries[s].window {
		p.o.push(p.list, s)
		return
	}
	p.main.back(s)
}

// overflow moves what the window has too many of into the main part, as long as nobody has to go
// for it.
func (p *windowPolicy) overflow() {
	for p.o.Excess() == 0 && p.o.lists[p.list].n > p.most {
		p.admit(p.o.lists[p.list].last)
	}
}

// admit moves an entry from the window into the main part.
func (p *windowPolicy) admit(s Handle) {
	p.o.take(s)
	p.o.entries[s].window = false
	p.main.enter(s)
}

func (p *windowPolicy) victim() Handle {
	candidate, victim := p.o.lists[p.list].last, p.main.victim()
	switch {
	case victim == 0:
		return candidate
	case candidate == 0 || p.o.lists[p.list].n <= p.most:
		return victim
	case p.sketch.frequency(p.o.entries[candidate].key) <= p.sketch.frequency(p.o.entries[victim].key):
		return candidate
	default:
		p.admit(candidate)
		return victim
	}
}

func (p *windowPolicy) left(s Handle, from listID) { p.main.left(s, from) }

func (p *windowPolicy) resize(limit int) {
	p.sketch.grow(limit)
	if p.climb != nil {
		p.climb.begin()
	}
	p.divide(p.share())
}

// share is the present share of the window.
func (p *windowPolicy) share() float64 {
	if p.climb != nil {
		return p.climb.share
	}
	return p.o.cfg.Window
}

// divide gives a share of the limit to the window, and the rest to the main part.
func (p *windowPolicy) divide(window float64) {
	p.most = 0
	if window > 0 {
		p.most = min(share(p.o.cfg.Limit, window), p.o.cfg.Limit)
	}
	p.main.resize(max(p.o.cfg.Limit-p.most, 1))
}

// observe has the share of the window follow the hit rate.
func (p *windowPolicy) observe(hit bool) {
	if p.climb != nil && p.climb.observe(hit, p.o.cfg.Limit) {
		p.divide(p.climb.share)
	}
}
