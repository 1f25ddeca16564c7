// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package state_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Defects of what carries out the decisions; those of the decisions are found by the world, in internal/simulation.
func TestMutantsAreCaught(t *testing.T) {
	simulationtest.RequireFound(t, ".", []simulationtest.Mutant{
		{
			Name: "the reply leaves before the save", Tests: []string{"TestAReplyWaitsForTheSave"},
			Edits: []simulationtest.Edit{{
				File: "entity.go", Old: "	if err := i.save(c); err != nil {\n",
				New: "	if mutant(NAME) {\n		go func() { _ = i.save(c) }()\n		return nil\n	}\n	if err := i.save(c); err != nil {\n",
			}},
		},
		{
			Name: "a change that failed stays in memory", Tests: []string{"TestAStoreThatIsDown"},
			Edits: []simulationtest.Edit{{
				File: "entity.go", Old: "	if err := i.save(c); err != nil {\n",
				New: "	if err := i.save(c); err != nil && !mutant(NAME) {\n",
			}},
		},
		{
			Name: "a call that failed is repeated as it was", Tests: []string{"TestAnEntityThatCannotBeSavedHoldsUpNobody"},
			Edits: []simulationtest.Edit{{
				File: "lane.go", Old: "	l.queue.Put(key, failed, w)\n",
				New: "	if mutant(NAME) {\n		failed = 0\n	}\n	l.queue.Put(key, failed, w)\n",
			}},
		},
		{
			Name: "nobody makes the next call", Tests: []string{"TestARequestGoesWithTheNextCall"},
			Edits: []simulationtest.Edit{{
				File: "lane.go", Old: "	l.running--\n	l.begin()\n", New: "	l.running--\n	if !mutant(NAME) {\n		l.begin()\n	}\n",
			}},
		},
		{
			Name: "the events of a turn are saved as none", Tests: []string{"TestStatesOfEvents"},
			Edits: []simulationtest.Edit{{
				File: "entity.go", Old: "		if events == 0 {\n", New: "		if events == 0 || mutant(NAME) {\n",
			}},
		},
		{
			Name: "what a refused turn has changed stays", Tests: []string{"TestARefusalChangesNothing"},
			Edits: []simulationtest.Edit{{File: "entity.go", Old: "	if !changed {\n		return nil", New: "	if !changed || mutant(NAME) {\n		return nil"}},
		},
		{
			Name: "a state that is to be undone is the start of the next", Tests: []string{"TestARefusalChangesNothing"},
			Edits: []simulationtest.Edit{{File: "entity.go", Old: "	i.state, i.since = none, 0\n", New: "	if !mutant(NAME) {\n		i.state, i.since = none, 0\n	}\n"}},
		},
		{
			Name: "a refusal after the save counts", Tests: []string{"TestARefusalAfterTheSaveIsAFailure"},
			Edits: []simulationtest.Edit{{File: "entity.go", Old: "		if err := f(); err != nil {\n", New: "		if err := f(); err != nil && mutant(NAME) {\n			return err\n		} else if err != nil {\n"}},
		},
		{
			Name: "an upgrade is left out", Tests: []string{"TestStatesOfEarlierForms"},
			Edits: []simulationtest.Edit{{
				File: "codec.go", Old: "	for n := form; n < u.Form(); n++ {\n", New: "	for n := form; n < u.Form(); n++ {\n		if mutant(NAME) && n == 2 {\n			continue\n		}\n",
			}},
		},
	})
}
