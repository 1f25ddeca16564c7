// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation_test

// seedsUsual is how many seeds a run of the tests tries at least. The race
// detector makes them several times slower, and the machines have no goroutines.
const seedsUsual = 1

// few is how many seeds the tests of one scenario try.
const few = 1

// many is the number of shards where it matters that there are many.
const many uint32 = 150
