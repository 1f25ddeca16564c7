// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"
)

// How often the machine is woken. While anything waits for an answer it is at each tick; when nothing does, less often,
// since a node that uses no data should cost little. Whatever the methods busy leave out is done later, but is done.

// alertFor is for how long the machine is woken at each tick after the members have changed: within that time the
// leader begins a change.
const alertFor = 4 * stableAfter

// idleTicks is for how many ticks the machine sleeps at most.
const idleTicks = 5

// pace says when the machine is woken next.
type pace struct {
	slow  bool          // The timer of the ticks is set to the longer interval.
	alert time.Duration // Until when the members count as just changed, since the machine began.
}

// armTick arms the timer of the ticks for a busy machine or for an idle one.
func (m *Machine) armTick() {
	interval := m.cfg.Timing.Tick
	if m.pace.slow = !m.busy() && !slices.ContainsFunc(m.groups, (*group).busy); m.pace.slow {
		interval = max(interval, min(idleTicks*interval, m.cfg.Timing.Gossip/2))
	}
	m.arm(tickTimer{}, interval)
}

// wake arms the timer for the next tick when an idle machine has become busy.
func (m *Machine) wake(busy bool) {
	if m.pace.slow && !m.ended && busy {
		m.pace.slow = false
		m.arm(tickTimer{}, m.cfg.Timing.Tick)
	}
}

// alerted notes that the members have changed.
func (m *Machine) alerted() { m.pace.alert = m.now.Mono.Sub(m.began) + alertFor }

// busy reports whether a tick brings anything further beside the groups.
func (m *Machine) busy() bool {
	return m.now.Mono.Sub(m.began) < m.pace.alert || m.leaving()
}

// busy reports whether anything of a group waits that a tick brings further.
func (g *group) busy() bool {
	switch {
	case g.reg == nil || g.reg.Phase != PhaseStable || !g.sealed || g.change.attempt != nil && g.attempting() || g.transfer.needs():
		return true
	case g.apart():
		return true
	case len(g.ops.open) > 0 || len(g.remote.requests) > 0 || len(g.explainer.queries) > 0:
		return true
	default:
		return len(g.passes.open) > 0 || len(g.propagation.flights) > 0 || g.disk.failed != nil || g.sweep.answers != nil || g.sweep.stale
	}
}
