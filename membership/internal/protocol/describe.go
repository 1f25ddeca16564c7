// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/machine"
)

// String returns the name of the phase.
func (p phase) String() string {
	return [...]string{"idle", "joining", "member", "stopped"}[p]
}

// Describe returns the whole state of the machine in one canonical form: equal machines
// give equal texts.
func (m *Machine) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node %v %v\n", m.self, m.phase)
	if m.phase == phaseJoining {
		fmt.Fprintf(&b, "joining attempt %d target %v asked %d\n", m.inquiry.attempt, m.join.target, m.join.asked)
	}
	fmt.Fprintf(&b, "leader %v converged %v\n", m.surveyed.leader, m.surveyed.converged)
	for _, voters := range m.surveyed.base {
		fmt.Fprintf(&b, "base %v\n", voters)
	}
	fmt.Fprintf(&b, "hosts until %s\n", instantText(m.hosting.until))
	fmt.Fprintf(&b, "monitors %v\n", m.monitoring.targets)
	for _, c := range m.fences.cuts {
		fmt.Fprintf(&b, "cut %v by %v since %s\n", c.record.Subject, c.record.Observer, instantText(c.since))
	}
	for _, l := range m.strategies.loaded {
		fmt.Fprintf(&b, "strategy %v is %s\n", l.id, describeStrategy(l.DowningStrategy))
	}
	if m.resolver.troubled {
		fmt.Fprintf(&b, "view unchanged since %s\n", instantText(m.resolver.stableSince))
	}
	if q := m.resolver.question; q != nil {
		fmt.Fprintf(&b, "deciding: %d strategies left, asked %v\n", len(q.left), q.asked)
	}
	if held := m.leave.held(); len(held) > 0 {
		fmt.Fprintf(&b, "held by %v\n", held)
	}
	b.WriteString(m.state.Describe())
	return b.String()
}

func instantText(i machine.Instant) string {
	switch i {
	case machine.Never:
		return "never"
	case 0:
		return "none"
	}
	return fmt.Sprintf("%.3fs", float64(i)/1e9)
}

// Explain says in one sentence why this node does not see convergence. It is "" if this
// node does.
func (m *Machine) Explain() string {
	if m.phase != phaseMember {
		return "not a member of a cluster"
	}
	converged, blockers := m.state.Convergence(m.self, m.surveyBuilder.isExcused)
	if converged {
		return ""
	}
	return blockers.String()
}
