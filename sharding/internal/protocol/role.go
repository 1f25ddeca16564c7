// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// AnyHasRole reports whether a member that comes or stays has a role, so that shards of a kind that is bound
// to the role have, or get, a home.
func AnyHasRole(s *gossip.State, role string) bool {
	return slices.ContainsFunc(s.Members(), func(m *gossip.Member) bool { return m.Status < gossip.Leaving && m.HasRole(role) })
}

// NoRole says that [AnyHasRole] does not hold.
func NoRole(role string) string { return fmt.Sprintf("no node has the role %q", role) }
