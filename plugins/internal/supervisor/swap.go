// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import "github.com/quorate/quorate/machine"

// swap launches the candidate.
func (m *Machine) swap(in Swap, out *machine.Outbox) {
	switch {
	case m.stopping || m.last == 0:
		out.Publish(Swapped{Err: ErrStopped})
	case m.candidate != 0 || m.old != 0 || !m.launchedOnce:
		out.Publish(Swapped{Err: ErrBusy})
	default:
		m.next = in.Config
		m.candidate = m.launch(in.Spec, out)
	}
}

// switchTo makes the candidate active, and drops the failures of the old spec, which say
// nothing about the new one.
func (m *Machine) switchTo(now machine.Now, p *process, out *machine.Outbox) {
	old := m.find(m.active)
	m.candidate, m.spec, m.cfg = 0, p.spec, m.next
	p.due = now.Mono.Add(m.cfg.HealthInterval)
	m.dying, m.trial, m.failuresInRow, m.recentFailures, m.facts.loop = 0, false, 0, nil, 0
	m.activate(now, p, out)
	for _, other := range m.processes {
		if other.phase == launching {
			m.kill(other, false, out)
		}
	}
	if old == nil {
		out.Publish(Swapped{})
		return
	}
	m.old = old.gen
	old.phase, old.drainBy = draining, now.Mono.Add(m.cfg.DrainTimeout)
	out.Add(Drain{Gen: old.gen})
}

// drained kills an old generation when its last call has ended.
func (m *Machine) drained(gen Generation, out *machine.Outbox) {
	if p := m.find(gen); p != nil && p.phase == draining {
		m.kill(p, true, out)
	}
}
