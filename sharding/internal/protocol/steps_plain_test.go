// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package protocol_test

// stride is how far apart the steps are at which faults strike. The race detector
// makes them several times slower, and the machines have no goroutines.
const stride = 1
