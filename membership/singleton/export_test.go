// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton

// Fences returns how many fences are remembered.
func (c *Core) Fences() int { return len(c.fenced) }
