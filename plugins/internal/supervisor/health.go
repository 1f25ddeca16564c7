// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import "fmt"

// check begins a health check unless one is under way.
func (m *Machine) check(now Instant, p *process, out *Outbox) {
	if p.checking {
		return
	}
	p.checking, p.checked = true, now
	out.add(CheckHealth{Gen: p.gen})
}

// healthChecked takes the outcome of a health check.
func (m *Machine) healthChecked(now Instant, in HealthChecked, out *Outbox) {
	p := m.find(in.Gen)
	if p == nil || p.phase != running || !p.checking {
		return
	}
	p.checking = false
	p.due = max(now, p.checked+Instant(m.cfg.HealthInterval))
	if in.Err == nil {
		p.failed = 0
		return
	}
	p.failed++
	if p.failed >= m.cfg.UnhealthyAfter {
		m.unhealthy(now, p, fmt.Errorf("%w: %d health checks failed, the last: %w", ErrUnhealthy, p.failed, in.Err), out)
	}
}

// callEnded takes the end of a call. One that had no answer is a reason to look
// at once whether the process lives, and several in a row are a verdict.
func (m *Machine) callEnded(now Instant, in CallEnded, out *Outbox) {
	p := m.find(in.Gen)
	if p == nil || p.phase != running {
		return
	}
	if !in.Unanswered {
		p.unanswered = 0
		return
	}
	p.unanswered++
	if p.unanswered >= m.cfg.HungAfter {
		m.unhealthy(now, p, fmt.Errorf("%w: %d calls in a row had no answer", ErrUnhealthy, p.unanswered), out)
		return
	}
	m.check(now, p, out)
}

// unhealthy kills p without ceremony: it does not answer, so it would not answer
// the request to stop either. The back-off begins when it has ended.
func (m *Machine) unhealthy(now Instant, p *process, err error, out *Outbox) {
	m.dying = p.gen
	m.facts.failed(now, err)
	m.deactivate(now, out)
	m.enter(now, Stopping)
	out.add(Unhealthy{Gen: p.gen, Err: err})
	m.kill(p, false, out)
}
