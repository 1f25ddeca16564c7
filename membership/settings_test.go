// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership"
)

// A node that differs in a setting of a component that must be equal is refused, with
// the key and both values; so is one that lacks the setting.
func TestSettingsThatMustBeEqualRefuseAJoiner(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		replicas := func(value string) membership.Option {
			return membership.WithSettings(membership.Setting{Key: "catalog.replicas", Value: value, MustEqual: true})
		}
		first := p.start(config(1), replicas("3"))
		p.awaitUp(first)
		for i, test := range []struct {
			opts []membership.Option
			want string
		}{
			{[]membership.Option{replicas("5")}, `catalog.replicas is "3" in the cluster and "5" here`},
			{nil, `catalog.replicas is "3" in the cluster and "" here`},
		} {
			err := p.ended(p.start(config(i+2), test.opts...))
			require.ErrorIs(t, err, membership.ErrRefused)
			require.ErrorContains(t, err, test.want)
		}
		p.awaitUp(first, p.start(config(4), replicas("3")))
	})
}

// A node that differs in a setting that should be equal joins, and both sides are warned
// with the key and both values.
func TestSettingsThatShouldBeEqualWarn(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		interval := func(value string) membership.Option {
			return membership.WithSettings(membership.Setting{Key: "catalog.interval", Value: value})
		}
		first := p.start(config(1), interval("1s"))
		p.awaitUp(first)
		p.awaitUp(first, p.start(config(2), interval("2s")))
		require.Equal(t, 2, strings.Count(p.log.String(), "key=catalog.interval member=1s joiner=2s"), "once on each node")
	})
}

// Settings that could not be compared are errors of the start.
func TestSettingsThatCannotBeComparedAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *place) {
		many := make([]membership.Setting, 129)
		for i := range many {
			many[i] = membership.Setting{Key: fmt.Sprintf("a.b%d", i), Value: "x"}
		}
		for want, settings := range map[string][]membership.Setting{
			"not a section, a dot and a name":       {{Key: "replicas", Value: "3"}},
			"section membership is compared":        {{Key: "membership.fence", Value: "3s"}},
			`"a.b" twice`:                           {{Key: "a.b", Value: "x"}, {Key: "a.b", Value: "y"}},
			"whose value is empty":                  {{Key: "a.b"}},
			"whose key or value is not UTF-8":       {{Key: "a.b", Value: "\xff"}},
			"key has 3 bytes and whose value has 1": {{Key: "a.b", Value: strings.Repeat("x", 1025)}},
			"129 settings, at most 128":             many,
		} {
			_, err := membership.Start(t.Context(), config(1), append(p.options(), membership.WithSettings(settings...))...)
			require.ErrorContains(t, err, want)
		}
	})
}
