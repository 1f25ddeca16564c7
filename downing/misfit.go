// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// Fitted is a strategy with parameters that fit some clusters and not others.
type Fitted interface {
	// Misfit says in a sentence what is wrong with the parameters for a cluster with
	// these members, and what to do; it returns "" if they fit.
	Misfit(members []*gossip.Member) string
}

var (
	_ Fitted = StaticQuorum{}
	_ Fitted = KeepOldest{}
	_ Fitted = LeaseMajority{}
)

// Misfit implements [Fitted]: a quorum larger than the cluster, one that two sides could
// have, or a role that no member has.
func (s StaticQuorum) Misfit(members []*gossip.Member) string {
	n := countWith(s.Role, members)
	switch {
	case n == 0 && s.Role != "":
		return nobodyHas("static-quorum.role", s.Role)
	case n < s.Quorum:
		return fmt.Sprintf("downing.static-quorum.quorum-size is %d, and %d%s members are up: the cluster ends when the next member is lost; start more members, or set a smaller quorum",
			s.Quorum, n, named(s.Role))
	case n < 2*s.Quorum:
		return ""
	case s.Role == "":
		return fmt.Sprintf("downing.static-quorum.quorum-size is %d, and %d members are up: the quorum decides nothing, a majority does; set it to at least %d",
			s.Quorum, n, n/2+1)
	default:
		return fmt.Sprintf("downing.static-quorum.quorum-size is %d, and %d%s members are up: two sides could have the quorum, so none is kept when a member is lost; set it to at least %d",
			s.Quorum, n, named(s.Role), n/2+1)
	}
}

// Misfit implements [Fitted]: a role that no member has.
func (o KeepOldest) Misfit(members []*gossip.Member) string {
	if o.Role != "" && countWith(o.Role, members) == 0 {
		return nobodyHas("keep-oldest.role", o.Role)
	}
	return ""
}

// Misfit implements [Fitted]: a role that no member has.
func (l LeaseMajority) Misfit(members []*gossip.Member) string {
	if l.Role != "" && countWith(l.Role, members) == 0 {
		return fmt.Sprintf("downing.lease-majority.role is %q, and no member that is up has this role: no side asks for the lease first; correct the role, or start members that have it", l.Role)
	}
	return ""
}

// countWith returns how many members with a role are up or leaving.
func countWith(role string, members []*gossip.Member) (n int) {
	for _, m := range members {
		if votes(m) && m.HasRole(role) {
			n++
		}
	}
	return n
}

func nobodyHas(key, role string) string {
	return fmt.Sprintf("downing.%s is %q, and no member that is up has this role: no side is kept when a member is lost; correct the role, or start members that have it", key, role)
}
