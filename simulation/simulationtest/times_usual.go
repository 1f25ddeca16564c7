// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !seeds

package simulationtest

// Times is how many times as much a test does as usually: 1, or 8 with the build tag seeds. A test with a list of
// seeds or of cases, of which some are enough after each change, does all of them if it is more than 1.
const Times = 1
