// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package simulation_test

// seedsUsual is the usual number of seeds. With the race detector there are fewer, see
// seeds_race_test.go.
const seedsUsual = 40
