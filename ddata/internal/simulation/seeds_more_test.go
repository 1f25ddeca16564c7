// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build seeds

package simulation_test

// seedsUsual is the number of seeds of `make seeds`: enough that every kind of fault meets every
// kind of operation.
const seedsUsual = 24
