// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remember_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/remember"
)

// All parts are called at once, and that the set has a later owner comes before all else.
func TestEachPartOfASet(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	require.NoError(t, remember.Each(3, func(int) error {
		all.Done()
		all.Wait() // It would not end if they came one after the other.
		return nil
	}))
	require.NoError(t, remember.Each(0, nil))
	down := errors.New("the store is down")
	require.ErrorIs(t, remember.Each(2, func(i int) error { return []error{nil, down}[i] }), down)
	err := remember.Each(3, func(i int) error { return []error{down, fmt.Errorf("part 1: %w", remember.ErrFenced), nil}[i] })
	require.ErrorIs(t, err, remember.ErrFenced)
	require.NotErrorIs(t, err, down)
}
