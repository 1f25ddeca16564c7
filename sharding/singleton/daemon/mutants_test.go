// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package daemon_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a test fail. Those of single runs, which singletons have too, are looked for by the tests
// of package singleton.
func TestMutantsAreCaught(t *testing.T) {
	const daemon, background = "daemon/daemon.go", "internal/background/background.go"
	const client, kind, scale = "../operations.go", "../kind.go", "../internal/control/scale.go"
	const refused, spread, changed, heldUp = "TestWhatAStartRefuses", "TestInstancesAreSpread", "TestTheNumberOfInstancesIsChanged", "TestAChangeThatIsHeldUp"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"instances without work", refused, daemon, "	case c.Run == nil && c.Work == nil:", "	case c.Run == nil && c.Work == nil && !mutant(NAME):"},
		{"work of two kinds", refused, daemon, "	case c.Run != nil && c.Work != nil:", "	case c.Run != nil && c.Work != nil && !mutant(NAME):"},
		{"no instance at all", refused, daemon, "	case c.Instances < 1 ||", "	case c.Instances < 1 && !mutant(NAME) ||"},
		{"more instances than may be", refused, daemon, "|| c.Instances > MaxInstances:", "|| c.Instances > MaxInstances && !mutant(NAME):"},
		{"a maximum below the number", refused, daemon, "	case c.Max < c.Instances ||", "	case c.Max < c.Instances && !mutant(NAME) ||"},
		{"a maximum above what may be", refused, daemon, "|| c.Max > MaxInstances:", "|| c.Max > MaxInstances && !mutant(NAME):"},
		{"instances with the numbers of others", changed, daemon, "		numbers[id] = i\n", "		if mutant(NAME) {\n			i = len(all) - 1 - i\n		}\n		numbers[id] = i\n"},
		{"the number is that of the configuration", changed, daemon, "			if scale.Count == 0 {", "			if scale.Count == 0 || mutant(NAME) {"},
		{"every revision is the first", changed, daemon, "			return work(ctx, Instance{", "			if mutant(NAME) {\n				scale.Revision = 1\n			}\n			return work(ctx, Instance{"},
		{"instances have no epoch", spread, daemon, "c.Run(ctx, i.Number, i.Epoch)", "c.Run(ctx, i.Number, map[bool]sharding.Epoch{false: i.Epoch}[mutant(NAME)])"},
		{"every node may run instances", "TestInstancesRunOnNodesWithTheRole", daemon, "Role: c.Role,", "Role: map[bool]string{false: c.Role}[mutant(NAME)],"},
		{"the time to stop is not that of the caller", heldUp, daemon, "HandOverTimeout: c.HandOverTimeout,", "HandOverTimeout: map[bool]time.Duration{false: c.HandOverTimeout}[mutant(NAME)],"},
		{"all instances run, whatever their number", changed, background, "InUse: c.InUse,", "InUse: map[bool]int{false: c.InUse}[mutant(NAME)],"},
		{"instances wait for a message", spread, background, "Permanent: c.Instances,", "Permanent: map[bool][]string{false: c.Instances}[mutant(NAME)],"},

		{"instances of two revisions run at one time", "TestAChangeOutlivesItsCoordinator", scale, "		done = false\n		if c.table.serves", "		done = mutant(NAME) && id > 0\n		if c.table.serves"},
		{"a number above the maximum", "TestWhatAChangeRefuses", scale, "	case m.Count > c.table.present().Shards:", "	case m.Count > c.table.present().Shards && !mutant(NAME):"},
		{"a second change takes the place of the first", heldUp, scale, "	case s.stops():\n", "	case s.stops() && mutant(NAME):\n		s.drop()\n		return ScaleAccepted, \"\"\n	case s.stops():\n"},
		{"the next coordinator is not asked again", "TestAChangeOutlivesItsCoordinator", client, "	c.begun = a.Current.Revision > c.base || a.Next.Count > 0\n", "	c.begun = a.Current.Revision > c.base || a.Next.Count > 0 || mutant(NAME) && c.begun\n"},
		{"a change that was called off is asked for again", heldUp, client, "	case c.begun && a.CalledOff ==", "	case c.begun && !mutant(NAME) && a.CalledOff =="},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	all = append(all, simulationtest.Mutant{
		Name: "two instances in one shard", Package: "../..", Tests: []string{"TestOnePerShard"},
		Edits: []simulationtest.Edit{{File: kind, Old: "		for more := 1;", New: "		for more := 1; !mutant(NAME) &&"}},
	})
	simulationtest.RequireFound(t, "..", all)
}
