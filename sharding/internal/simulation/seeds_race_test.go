// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation_test

// seedsUsual is the number of seeds of the scenarios chaos and moves in a run of the tests;
// chaos runs twice as many. It is one with the race detector, which makes the runs several
// times slower, and can find nothing in machines without goroutines.
const seedsUsual = 1

// few is the usual number of seeds of the other tests.
const few = 1

// many is the number of shards of the rolling restart with many shards.
const many uint32 = 150
