// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package membershipsim_test

// leaseMutants break the rules by which a lease keeps one side.
func leaseMutants() []mutant {
	const majority, deciding = "downing/lease/majority/machine.go", "membership/internal/protocol/deciding.go"
	return []mutant{
		{"a side is kept by old news", []edit{{deciding, "if age <= most {", "if age <= most || mutant(NAME) && age > 0 {"}}},
		{"a holding is not confirmed before it decides again", []edit{
			{majority, "case held && m.core.Granted() >= q.since:", "case held && (mutant(NAME) || m.core.Granted() >= q.since):"},
		}},
		{"the lease is given back as soon as the removal is agreed", []edit{
			{majority, "case !m.decided:\n\t\tm.feed(", "case !m.decided || mutant(NAME):\n\t\tm.feed("},
		}},
		{"the lease is given back when the holder ends", []edit{
			{majority, "if m.question = nil; !m.decided {", "if m.question = nil; !m.decided || mutant(NAME) {"},
		}},
		{"the minority does not wait", []edit{{majority, "from: now + plan.Delay", "from: now + func() time.Duration {\n\t\tif mutant(NAME) {\n\t\t\treturn 0\n\t\t}\n\t\treturn plan.Delay\n\t}()"}}},
	}
}

// tokenMutants ignore tokens, which show a store that breaks its contract.
func tokenMutants() []mutant {
	const core = "downing/lease/internal/protocol/core.go"
	return []mutant{
		{"a token that shrinks is taken", []edit{{core, "r.Token == 0 || r.Token < c.floor", "r.Token == 0 || r.Token < c.floor && !mutant(NAME)"}}},
		{"a holding goes on with another token", []edit{{core, "c.phase == Held && r.Token != c.token", "c.phase == Held && r.Token != c.token && !mutant(NAME)"}}},
		{"a lease ends with the answer and not with the call", []edit{{core, "until := c.sent + Usable", "sent := c.sent\n\tif mutant(NAME) {\n\t\tsent = now\n\t}\n\tuntil := sent + Usable"}}},
	}
}
