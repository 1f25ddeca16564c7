// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(process && linux)

package host_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Tests with processes are built without this function: they look for leaks of goroutines
// themselves, and for processes, files and descriptors that are left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
