// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

// RememberAtMost has an endpoint remember fewer inbound sessions, so that a test can
// fill its memory.
func RememberAtMost(e *Endpoint, n int) { e.inMax = n }
