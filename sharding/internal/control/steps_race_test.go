// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package control_test

// stride is the distance between the messages of moves at which a fault is tried. With the
// race detector it is every fourth message: the detector makes the test several times
// slower, and can find nothing in machines without goroutines.
const stride = 4
