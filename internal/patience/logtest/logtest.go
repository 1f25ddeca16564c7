// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package logtest keeps what is logged, for tests that read it while goroutines or processes still write.
package logtest

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/patience"
)

// Buffer keeps what is written to it. The zero Buffer is empty, and any goroutine may use it.
type Buffer struct {
	mu   sync.Mutex // Guards text.
	text bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written since the last [Buffer.Take].
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Take returns what String does, and removes it.
func (b *Buffer) Take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// Await waits until words are in the buffer. The test fails, and shows the buffer, if they do not come.
func (b *Buffer) Await(tb testing.TB, words string) {
	tb.Helper()
	has := func() bool { return strings.Contains(b.String(), words) }
	defer func() {
		if tb.Failed() {
			tb.Logf("the log:\n%s", b)
		}
	}()
	patience.Eventually(tb, has, "%q is in the log", words)
}
