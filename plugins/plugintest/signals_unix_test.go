// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && !windows

package plugintest

import (
	"os"
	"syscall"
)

// stubbornly lists what a stubborn process ignores.
func stubbornly() []os.Signal { return []os.Signal{syscall.SIGTERM} }
