// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/state/internal/simulation"
)

// A history finds each way in which a store may have gone wrong.
func TestAHistoryFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		final []string
		read  []string
		want  string
	}{
		"lost":             {[]string{"a"}, nil, "S1: acknowledged and lost: b"},
		"twice":            {[]string{"a", "b", "a"}, nil, "S2: a is change 0 and change 2"},
		"from nowhere":     {[]string{"a", "x", "b"}, nil, "S2: change 1, x, was asked for by nobody"},
		"out of order":     {[]string{"b", "a"}, nil, "S3: a, change 1"},
		"read and gone":    {[]string{"a", "b"}, []string{"c"}, "S4: [c] was read"},
		"read beyond":      {[]string{"a", "b"}, []string{"a", "b", "c"}, "S4"},
		"fine":             {[]string{"a", "b"}, []string{"a"}, ""},
		"fine with unsure": {[]string{"c", "a", "b"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := simulation.NewHistory()
			h.Ask("c")
			for _, text := range []string{"a", "b"} {
				h.Ask(text)
				h.Acknowledge(text)
			}
			h.Read(c.read)
			err := h.Check(c.final)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
