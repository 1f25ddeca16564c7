// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package remembered_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a test fail, most of them one of the suite that all stores have.
func TestMutantsAreCaught(t *testing.T) {
	const file, contract, unfinished, full = "remembered.go", "TestTheStoreKeepsTheContract", "TestAClaimThatWasNotFinished", "TestASetThatIsFull"
	const apart = "TestOwnersThatDoNotHearOfEachOther"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, old, to string }{
		{"nobody is locked out before what is left is read", contract, "	err := s.update(ctx, key, owned{}, func(at crdt.Origin, all owned) (owned, error) {\n		return", "	announce := s.update\n	if mutant(NAME) {\n		announce = func(context.Context, ddata.Key[owned], owned, func(crdt.Origin, owned) (owned, error)) error { return nil }\n	}\n	err := announce(ctx, key, owned{}, func(at crdt.Origin, all owned) (owned, error) {\n		return"},
		{"a claim locks nobody out", unfinished, "		if owner = max(owner, name); !claims {", "		if claims && mutant(NAME) {\n			continue\n		}\n		if owner = max(owner, name); !claims {"},
		{"a claim is a set", contract, "		return all.Update(at, claimed+s.owner,", "		return all.Update(at, claimed[:len(claimed)*map[bool]int{false: 1}[mutant(NAME)]]+s.owner,"},
		{"a change is confirmed without a look at a majority", apart, "	if owner != s.owner {", "	if owner != s.owner && !mutant(NAME) {"},
		{"an earlier owner takes the set back", contract, "owner > s.owner {", "owner > s.owner && !mutant(NAME) {"},
		{"a majority is this node", apart, "ddata.Get(ctx, s.store.host, key, ddata.Majority())", "ddata.Get(ctx, s.store.host, key, map[bool]ddata.Consistency{false: ddata.Majority(), true: ddata.Local()}[mutant(NAME)])"},
		{"two owners of one epoch are one", contract, "s.owners.Add(1))", "s.owners.Add(map[bool]uint64{false: 1}[mutant(NAME)]))"},
		{"what the owner before had is gone", contract, "	_, ids := last(all)\n", "	_, ids := last(all)\n	if mutant(NAME) {\n		ids = crdt.ORSet[string]{}\n	}\n"},
		{"former owners stay", "TestNothingIsLeftOfFormerOwners", "			next = next.Remove(o)\n", "			if !mutant(NAME) {\n				next = next.Remove(o)\n			}\n"},
		{"shards share their keys", contract, "strconv.Itoa(shard.Number)", "strconv.Itoa(shard.Number*map[bool]int{false: 1}[mutant(NAME)])"},
		{"numbers of shards share their sets", contract, "strconv.Itoa(shard.Of)", "strconv.Itoa(shard.Of*map[bool]int{false: 1}[mutant(NAME)])"},
		{"the first part only is read", contract, "	for _, part := range parts {\n		ids", "	for i, part := range parts {\n		if i > 0 && mutant(NAME) {\n			break\n		}\n		ids"},
		{"nothing is forgotten", contract, "				own = own.Remove(id)\n", "				if !mutant(NAME) {\n					own = own.Remove(id)\n				}\n"},
		{"ids without room are remembered", full, "	if len(over.IDs) > 0 {", "	if len(over.IDs) > 0 && !mutant(NAME) {"},
		{"a full set forgets nothing", full, "		if len(remove) > 0 {", "		if len(remove) > 0 && !mutant(NAME) {"},
		{"a full set has no room for its next owner", full, "	most -= most / roomKept\n", "	if !mutant(NAME) {\n		most -= most / roomKept\n	}\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
