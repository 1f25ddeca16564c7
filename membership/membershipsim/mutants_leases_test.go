// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package membershipsim_test

import "testing"

// leaseMutants break the rules by which a lease keeps one side.
func leaseMutants() []mutant {
	const majority, deciding = "downing/lease/majority/machine.go", "membership/internal/protocol/deciding.go"
	return []mutant{
		{"a side is kept by old news", []edit{{deciding, "if age <= most {", "if age <= most || age > 0 {"}}},
		{"a holding is not confirmed before it decides again", []edit{
			{majority, "case held && m.core.Granted() >= q.since:", "case held:"},
		}},
		{"the lease is given back as soon as the removal is agreed", []edit{
			{majority, "case !m.decided:\n\t\tm.feed(", "case m.decided || !m.decided:\n\t\tm.feed("},
		}},
		{"the lease is given back when the holder ends", []edit{
			{majority, "if m.question = nil; !m.decided {", "if m.question = nil; !m.decided || m.decided {"},
		}},
		{"the minority does not wait", []edit{{majority, "from: now + plan.Delay", "from: now + 0*plan.Delay"}}},
	}
}

// tokenMutants ignore tokens, which show a store that breaks its contract.
func tokenMutants() []mutant {
	const core = "downing/lease/internal/protocol/core.go"
	return []mutant{
		{"a token that shrinks is taken", []edit{{core, "r.Token == 0 || r.Token < c.floor", "r.Token == 0"}}},
		{"a holding goes on with another token", []edit{{core, "c.phase == Held && r.Token != c.token", "c.phase == Held && r.Token == 0"}}},
		{"a lease ends with the answer and not with the call", []edit{{core, "until := c.sent + Usable", "until := now + Usable"}}},
	}
}

// That the code without a mutant is green is what the tests themselves say.
func TestLeasesFindMutants(t *testing.T) {
	requireFound(t, leaseMutants(), "./outcomes", []string{"TestALeaseKeepsOneSide"})
	requireFound(t, tokenMutants(), "../../downing/lease/internal/protocol", []string{"TestATokenThatShrinksIsNeverHeld", "TestWhatEndsAHolding", "TestAHoldingEndsBeforeTheLeaseCountedFromTheCall"})
}
