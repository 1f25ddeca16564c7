// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !seeds

package simulation_test

// seedsUsual is the usual number of seeds: as many as somebody waits for who has changed a line.
// With the build tag seeds there are more, see seeds_more_test.go.
const seedsUsual = 4
