// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package frugal_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/frugal"
)

// recorder is a test that notes how often it has failed.
type recorder struct {
	testing.TB

	failures int
}

func (r *recorder) Helper()                   { _ = r }
func (r *recorder) Logf(string, ...any)       { _ = r }
func (r *recorder) Errorf(f string, a ...any) { r.failures += min(1, len(fmt.Sprintf(f, a...))) }

// A decoder that keeps a value for each field, however small, is found; one that looks at what is there is not.
func TestWasteIsFound(t *testing.T) {
	var kept []*[64]byte
	wasteful := func(b []byte) {
		kept = nil
		for range len(b) / 2 {
			kept = append(kept, new([64]byte))
		}
	}
	r := &recorder{TB: t}
	frugal.RequireInputs(r, wasteful, map[string][]byte{"zeros": make([]byte, 64<<10)})
	require.Equal(t, 1, r.failures)
	require.Len(t, kept, 32<<10)
	var copied []byte
	frugal.Require(t, func(b []byte) { copied = append([]byte(nil), b...) }, []byte{1<<3 | 2, 1, 'x', 2 << 3, 1})
	require.NotEmpty(t, copied)
}

// A list that is copied for each field that adds to it costs as much as its square; it is found within messages too.
func TestWasteWithinMessagesIsFound(t *testing.T) {
	var kept []byte
	inner := func(b []byte) {
		for len(b) >= 3 && b[0] == 4<<3|2 {
			kept = append(slices.Clip(kept), b[2])
			b = b[3:]
		}
	}
	outer := func(b []byte) {
		if kept = nil; len(b) > 0 && b[0] == 2<<3|2 {
			_, n := binary.Uvarint(b[1:])
			inner(b[1+n:])
		}
	}
	r := &recorder{TB: t}
	frugal.Require(r, outer, []byte{2<<3 | 2, 3, 4<<3 | 2, 1, 'x'})
	require.Positive(t, r.failures)
}
