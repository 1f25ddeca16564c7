// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/steps"
)

type (
	first  struct{}
	second struct{}
	other  struct{}
)

// receive has a case for each of its messages, some of them in a switch within.
func receive(message any) string {
	switch message.(type) {
	case first:
		return "first"
	default:
		switch message.(type) {
		case second, other:
			return "another"
		}
	}
	return ""
}

func TestCasesOfAFunction(t *testing.T) {
	require.Equal(t, []string{"first", "other", "second"}, steps.Cases(t, "steps_test.go", "receive"))
	require.Equal(t, "another", receive(other{}))
}

func TestWhatIsAllocatedIsCounted(t *testing.T) {
	var kept [][]byte
	objects, bytes := steps.Allocated(func() {
		for range 100 {
			kept = append(kept, make([]byte, 1000))
		}
	})
	require.Len(t, kept, 100)
	require.GreaterOrEqual(t, objects, 100)
	require.GreaterOrEqual(t, bytes, 100_000)
}
