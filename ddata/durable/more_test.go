// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race && !process

package durable

// How many histories with crashes the tests run, how often they kill a process, and which
// bytes they flip: each that is a multiple of flipEach.
const (
	historyCount = 150
	flipEach     = 17
	killCount    = 4
)
