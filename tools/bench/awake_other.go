// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bench

import "errors"

// awakePossible says whether serveAwake works on this system.
const awakePossible = false

// yieldToAll is not possible.
func yieldToAll() error { return errors.ErrUnsupported }
