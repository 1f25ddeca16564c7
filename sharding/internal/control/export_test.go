// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

// Fences returns how many nodes the control machine remembers as fenced.
func (c *Control) Fences() int { return c.fences.Len() }
