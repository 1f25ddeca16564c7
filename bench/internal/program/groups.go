// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"github.com/quorate/quorate/bench/internal/data"
	"github.com/quorate/quorate/bench/internal/decisions"
	"github.com/quorate/quorate/bench/internal/entities"
	"github.com/quorate/quorate/bench/internal/failover"
	"github.com/quorate/quorate/bench/internal/management"
	"github.com/quorate/quorate/bench/internal/members"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/states"
	"github.com/quorate/quorate/bench/internal/traffic"
)

// groups returns everything that can be measured.
func groups() []plan.Group {
	return []plan.Group{
		traffic.Local(), traffic.Remote(), traffic.Ask(), traffic.Client(), traffic.Wires(), entities.Activation(), entities.Idle(), entities.Remembered(), entities.Reminders(), failover.Join(), failover.Rebalance(), failover.Rolling(), failover.Kill(), states.Group(), traffic.Telemetry(), decisions.Group(), data.Group(), management.Group(), members.Running(), members.Boot(), members.Bootstrap(), members.Simulated(),
	}
}

// groupNames returns the names of all groups, in their order.
func groupNames() (names []string) {
	for _, g := range groups() {
		names = append(names, g.Name)
	}
	return names
}
