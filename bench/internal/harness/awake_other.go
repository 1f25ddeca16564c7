// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

import "errors"

// AwakePossible says whether keeping processors awake works on this system.
const AwakePossible = false

// yieldToAll fails: this system has no such priority.
func yieldToAll() error { return errors.ErrUnsupported }
