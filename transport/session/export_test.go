// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

// RememberAtMost lowers how many inbound sessions an endpoint remembers, so that a
// test can reach the bound.
func RememberAtMost(e *Endpoint, n int) { e.inMax = n }

// Claims returns for how many nodes an endpoint remembers which process speaks as the
// node.
func Claims(e *Endpoint) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.claims)
}
