// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(process && linux)

package host_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The tests with processes look for leaks themselves, and for more than goroutines.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
