// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Each fault of a plan is said.
func TestAPlanIsWhole(t *testing.T) {
	measure := func(context.Context, Spec, *Link) (out figure.Outcome, err error) { return out, nil }
	floor, on := Single(measure, Spec{}, figure.Figure{Name: "floor"}), Single(measure, Spec{}, figure.Figure{Name: "on", Floors: []string{"floor"}})
	require.NoError(t, Whole([]Group{{Name: "g", Experiments: []Experiment{floor, on}}, {Name: "h", Experiments: []Experiment{floor}}}))
	none := Experiment{Figures: []figure.Figure{{Name: "none"}}}
	require.EqualError(t, Whole([]Group{{Name: "g", Experiments: []Experiment{on, floor, floor, none}}}),
		"on stands on floor, which is not measured before it\nfloor is twice in g\nnothing measures g/none\nwhich way none is better is not said")
}
