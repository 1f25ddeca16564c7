// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package awake

import "errors"

// Possible says whether serveAwake works on this system.
const Possible = false

// yieldToAll is not possible.
func yieldToAll() error { return errors.ErrUnsupported }
