// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package simulation_test

// seedsUsual is the usual number of seeds: with the race detector a seed takes ten times as
// long, and the detector can find nothing in machines without goroutines.
const seedsUsual = 3
