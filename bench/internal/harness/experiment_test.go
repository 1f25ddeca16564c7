// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
)

func TestSingleShowsTheRate(t *testing.T) {
	e := Single(Channel, Spec{}, figure.Figure{Name: "n", Target: 5})
	require.Equal(t, []figure.Figure{{Name: "n", Value: "rate", Unit: "msg/s", Better: figure.Higher, Target: 5}}, e.Figures)
	require.False(t, e.Floor)
	require.True(t, e.AsFloor().Floor)
	require.False(t, e.Floor, "the experiment itself is not changed")
}

// The figures on processors that are kept awake stand on floors that were measured the
// same way, and those on the machine as it is stay what they are.
func TestAwakeFiguresStandOnAwakeFloors(t *testing.T) {
	floor := Single(nil, Spec{}, figure.Figure{Name: "floor"}).AsFloor()
	beside := Single(nil, Spec{}, figure.Figure{Name: "figure", Floors: []string{"floor"}})
	all := WithAwake(floor, beside)
	require.Equal(t, []Experiment{floor, beside}, all[:2])
	if !AwakePossible {
		require.Len(t, all, 2)
		return
	}
	require.Len(t, all, 4)
	require.Equal(t, "awake-floor", all[2].Figures[0].Name)
	require.True(t, all[2].Floor)
	require.Equal(t, []string{"awake-floor"}, all[3].Figures[0].Floors)
	require.Equal(t, []string{"floor"}, all[1].Figures[0].Floors)
	require.True(t, all[3].Spec.Awake)
	require.False(t, all[1].Spec.Awake)
}
