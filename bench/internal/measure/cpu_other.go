// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package measure

import "time"

// CPUTime returns zero: how much processor time this process has used is only
// known after its end here. Figures then show no processor time.
func CPUTime() time.Duration { return 0 }
