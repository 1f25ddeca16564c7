// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package membershipsim_test

// seedsUsual is how many seeds a run of the tests tries. The race detector
// makes a run about ten times slower, and has nothing to find in it: a world
// has one goroutine.
const seedsUsual = 40

// splitsStride says that a run of the tests tries one of this many splits.
const splitsStride = 1

// callSplitsStride is the same for the splits with strategies that are asked.
const callSplitsStride = 8
