// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package durable

// The gate with processes, which has the most time, runs the most histories, kills the
// most processes, and flips every byte.
const (
	historyCount = 3000
	flipEach     = 1
	killCount    = 200
)
