// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package control_test

// stride is the distance between the messages of moves at which a fault is tried: every
// message without the race detector, under which the test is several times slower.
const stride = 1
