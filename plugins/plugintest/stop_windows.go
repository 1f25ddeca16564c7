// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import "syscall"

// stopSignals lists the signal that stops a process without ending it; Windows has none.
func stopSignals() []syscall.Signal { return nil }
