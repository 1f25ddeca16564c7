// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation_test

// seedsUsual is the number of seeds of the scenarios chaos and moves in a run of the tests;
// chaos runs twice as many. With the race detector there are fewer, see seeds_race_test.go.
const seedsUsual = 8

// few is the usual number of seeds of the other tests.
const few = 4

// many is the number of shards of the rolling restart with many shards.
const many uint32 = 1000
