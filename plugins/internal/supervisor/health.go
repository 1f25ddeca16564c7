// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/machine"
)

// check begins a health check unless one is under way.
func (m *Machine) check(now machine.Now, p *process, out *machine.Outbox) {
	if p.check != 0 {
		return
	}
	m.calls++
	p.check, p.checked = m.calls, now.Mono
	// The key is the slot, so that the check of a process does not wait for that of the
	// process that it replaces.
	out.Add(machine.Call{
		ID: p.check, Port: CallHealth, Key: strconv.Itoa(p.slot), Request: CheckHealth{Gen: p.gen}, Limit: m.cfg.HealthTimeout,
	})
}

// called takes the answer of a health check. The answer of a check that is not waited for
// any more is ignored.
func (m *Machine) called(now machine.Now, in machine.Called, out *machine.Outbox) {
	for _, p := range m.processes {
		if p.check == in.ID && p.phase == running {
			m.healthChecked(now, p, in.Err, out)
			return
		}
	}
}

// overdue reports whether the health check of p has reached its limit.
func (m *Machine) overdue(now machine.Now, p *process) bool {
	return p.check != 0 && now.Mono >= p.checked.Add(m.cfg.HealthTimeout)
}

// healthChecked takes the outcome of a health check; nil means healthy.
func (m *Machine) healthChecked(now machine.Now, p *process, err error, out *machine.Outbox) {
	p.check = 0
	p.due = max(now.Mono, p.checked.Add(m.cfg.HealthInterval))
	if err == nil {
		p.failed = 0
		m.resumed(p, out)
		if p.gen == m.active {
			m.worked(now, p)
		}
		return
	}
	p.failed++
	if p.failed >= m.cfg.UnhealthyAfter {
		m.silent(now, p, fmt.Errorf("%w: %d health checks failed, the last: %w", ErrUnhealthy, p.failed, err), out)
	}
}

// callEnded takes the end of a call. After an unanswered call the health of the process
// is checked at once; several in a row count as unhealthy.
func (m *Machine) callEnded(now machine.Now, in CallEnded, out *machine.Outbox) {
	p := m.find(in.Gen)
	if p == nil || p.phase != running {
		return
	}
	if !in.Unanswered {
		p.unanswered = 0
		m.resumed(p, out)
		return
	}
	p.unanswered++
	if p.unanswered >= m.cfg.HungAfter {
		m.silent(now, p, fmt.Errorf("%w: %d calls in a row had no answer", ErrUnhealthy, p.unanswered), out)
		return
	}
	m.check(now, p, out)
}

// silent takes that p does not answer: it is killed, unless a debugger may hold it.
func (m *Machine) silent(now machine.Now, p *process, err error, out *machine.Outbox) {
	switch {
	case !m.cfg.Debug:
		m.unhealthy(now, p, err, out)
	case !p.held:
		p.held = true
		out.Publish(Held{Gen: p.gen, Err: err})
	}
}

// resumed says that a process that was held answers again, both health checks and calls.
func (m *Machine) resumed(p *process, out *machine.Outbox) {
	if p.held && p.failed < m.cfg.UnhealthyAfter && p.unanswered < m.cfg.HungAfter {
		p.held = false
		out.Publish(Held{Gen: p.gen})
	}
}

// unhealthy kills p without grace: it does not answer, so it would not answer the request
// to stop either. The back-off begins when p has ended.
func (m *Machine) unhealthy(now machine.Now, p *process, err error, out *machine.Outbox) {
	m.dying = p.gen
	m.facts.noteFailure(now, err)
	m.deactivate(now, out)
	m.enter(now, Stopping)
	out.Publish(Unhealthy{Gen: p.gen, Err: err})
	m.kill(p, false, out)
}
