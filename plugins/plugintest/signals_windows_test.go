// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package plugintest

import "os"

// stubbornly lists what a stubborn process ignores: nothing, here.
func stubbornly() []os.Signal { return nil }
