// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package directory

import "errors"

// ErrInUse is wrapped by the error of [Lock] for a file that is locked already, by another
// process or by this one.
var ErrInUse = errors.New("another process uses it")
