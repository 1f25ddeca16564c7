// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race && !process

package durable

// With the race detector each costs ten times as much.
const (
	historyCount = 15
	flipEach     = 71
	killCount    = 2
)
