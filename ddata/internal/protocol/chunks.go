// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"iter"
	"time"

	"github.com/quorate/quorate/ddata/internal/table"
)

// chunks cuts entries into parts of about limit bytes, each of at least one entry.
func chunks(entries []table.Entry, limit int) iter.Seq[[]table.Entry] {
	return func(yield func([]table.Entry) bool) {
		for len(entries) > 0 {
			n, size := 0, 0
			for n < len(entries) && (n == 0 || size < limit) {
				size += table.SizeOf(entries[n])
				n++
			}
			if !yield(entries[:n]) {
				return
			}
			entries = entries[n:]
		}
	}
}

// jitter returns a random part of an interval.
func (m *env) jitter(interval time.Duration) time.Duration {
	if interval <= 0 {
		return 0
	}
	return time.Duration(m.cfg.Rand.Int64N(int64(interval)))
}
