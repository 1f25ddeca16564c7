// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

// RememberAtMost has an endpoint remember fewer inbound sessions, so that a test can
// fill its memory.
func RememberAtMost(e *Endpoint, n int) { e.inMax = n }

// Claims returns of how many nodes an endpoint remembers by which process they speak.
func Claims(e *Endpoint) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.claims)
}
