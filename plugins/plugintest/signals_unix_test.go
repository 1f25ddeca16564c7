// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && !windows

package plugintest

import (
	"os"
	"syscall"
)

// stubbornly lists the signals that the stubborn plugin ignores.
func stubbornly() []os.Signal { return []os.Signal{syscall.SIGTERM} }
