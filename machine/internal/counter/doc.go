// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package counter reads the counter of ticks of the processor, which costs a fraction of
// reading the clock, and says whether the counter can be used as a measure of time.
//
// The counter is that from which the kernel computes both of its clocks, or there is none:
// see [Usable]. Reading it takes no lock and no memory, and is safe for concurrent use.
package counter
