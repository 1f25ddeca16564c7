// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys that begin with a prefix may be of several groups, of one group alone, or of those that
// no rule names.
func TestTheGroupsWithinAPrefix(t *testing.T) {
	c := Default()
	c.Groups = []GroupConfig{{Prefix: "user/"}, {Prefix: "user/admin/"}}
	k := c.keyGroups()
	for prefix, groups := range map[string][]string{
		"": {"all", "user/*", "user/admin/*"}, "u": {"all", "user/*", "user/admin/*"}, "x": {"all"},
		"user/": {"user/*", "user/admin/*"}, "user/a": {"user/*", "user/admin/*"}, "user/b": {"user/*"},
		"user/admin/": {"user/admin/*"}, "user/admin/1": {"user/admin/*"},
	} {
		var within []string
		for i, g := range k.all {
			if k.within(uint8(i), prefix) {
				within = append(within, g.name)
			}
		}
		require.ElementsMatch(t, groups, within, "%q", prefix)
	}
}
