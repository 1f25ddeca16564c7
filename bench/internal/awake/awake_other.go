// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package awake

import "errors"

// Possible says whether keeping processors awake works on this system.
const Possible = false

// yieldToAll fails: this system has no such priority.
func yieldToAll() error { return errors.ErrUnsupported }
