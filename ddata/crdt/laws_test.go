// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"testing"

	"github.com/quorate/quorate/ddata/crdt/crdttest"
)

// Every type keeps the laws of crdttest, and reads what its specification says.
func TestTypesKeepTheLawsAndTheirSpecifications(t *testing.T) {
	check(t, gcounters())
	check(t, pncounters())
	check(t, versionVectors())
	check(t, flags())
	check(t, gsets())
	check(t, orsets())
	check(t, ormultimaps())
	check(t, pncountermaps())
	check(t, lwwregisters())
	check(t, lwwmaps())
	check(t, mvregisters())
	check(t, ormapsOfCounters())
	check(t, ormapsOfSets())
	check(t, ormapsOfMaps())
	check(t, peaks())
	check(t, ormapsOfPeaks())
	t.Run("FirstWriteWins", func(t *testing.T) { check(t, firstWrites()) })
}

// The suite as a user runs it, from fixed seeds.
func TestTypesKeepTheLawsFromFixedSeeds(t *testing.T) {
	crdttest.TestLaws(t, orsets().subject())
	crdttest.TestLaws(t, ormapsOfSets().subject())
	crdttest.TestLaws(t, peaks().subject())
}
