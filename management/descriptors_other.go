// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package management

import "math"

// descriptors returns how many files and connections the process may have open: here it is
// not bounded by a number.
func descriptors() int { return math.MaxInt }
