// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

// swap launches the candidate.
func (m *Machine) swap(in Swap, out *Outbox) {
	switch {
	case m.stopping || m.last == 0:
		out.add(Swapped{Err: ErrStopped})
	case m.candidate != 0 || m.old != 0 || !m.opened:
		out.add(Swapped{Err: ErrBusy})
	default:
		m.next = in.Config
		m.candidate = m.launch(in.Spec, out)
	}
}

// switchTo makes the candidate active. What was learned about the old spec is
// forgotten: it says nothing about the new one.
func (m *Machine) switchTo(now Instant, p *process, out *Outbox) {
	old := m.find(m.active)
	m.candidate, m.spec, m.cfg = 0, p.spec, m.next
	p.due = now + Instant(m.cfg.HealthInterval)
	m.dying, m.trial, m.streak, m.recent = 0, false, 0, nil
	m.activate(now, p, out)
	for _, other := range m.processes {
		if other.phase == launching {
			m.kill(other, false, out)
		}
	}
	if old == nil {
		out.add(Swapped{})
		return
	}
	m.old = old.gen
	old.phase, old.drainBy = draining, now+Instant(m.cfg.DrainLimit)
	out.add(Drain{Gen: old.gen})
}

// drained kills an old generation when its last call has ended.
func (m *Machine) drained(gen Generation, out *Outbox) {
	if p := m.find(gen); p != nil && p.phase == draining {
		m.kill(p, true, out)
	}
}
