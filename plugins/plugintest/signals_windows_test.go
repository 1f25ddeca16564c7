// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package plugintest

import "os"

// stubbornly lists the signals that the stubborn plugin ignores; Windows has none.
func stubbornly() []os.Signal { return nil }
