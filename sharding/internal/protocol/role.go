// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// AnyHasRole reports whether a member that joins or is up has a role, so that shards of a kind that is bound to the
// role have a home or will get one.
func AnyHasRole(s *gossip.State, role string) bool {
	return slices.ContainsFunc(s.Members(), func(m *gossip.Member) bool { return m.Status < gossip.Leaving && m.HasRole(role) })
}

// NoRole returns the text of the error when [AnyHasRole] is false.
func NoRole(role string) string { return fmt.Sprintf("no node has the role %q", role) }
