// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/management"
)

// ids returns the ids of the members that an operator has named, by one look at what the node
// knows. A command goes on with them: whoever is started at an address after the look is not
// meant by it. An id is taken as it is.
func (r *RemoteFlags) ids(names ...string) ([]string, error) {
	ids := slices.Clone(names)
	if !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(name, "#") }) {
		return ids, nil
	}
	var got management.ClusterMembers
	if _, err := r.get("/v1/members", nil, &got); err != nil {
		return nil, err
	}
	for i, name := range names {
		var err error
		if ids[i], err = member(got, name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// member returns the id of the member that a name stands for now.
func member(got management.ClusterMembers, name string) (string, error) {
	switch {
	case name == management.SelfName:
		return got.Self, nil
	case strings.Contains(name, "#"):
		return name, nil
	}
	address, err := gossip.ParseAddress(name)
	if err != nil {
		return "", RejectedError{Text: fmt.Sprintf("%q names no member: give its address, or its id, as quorate members prints them, or %s", name, management.SelfName)}
	}
	var live, down []string
	for _, m := range got.Members {
		id, err := gossip.ParseNodeID(m.Node)
		switch {
		case err != nil || id.Address != address:
		case m.Status == gossip.Down.String():
			down = append(down, m.Node)
		default:
			live = append(live, m.Node)
		}
	}
	if len(live) == 0 {
		live = down
	}
	switch {
	case len(live) == 1:
		return live[0], nil
	case len(live) > 1:
		return "", fmt.Errorf("more than one member is at %s: give the id of %s", name, strings.Join(live, " or "))
	case len(got.Members) == 0 && got.Waiting != nil:
		return "", fmt.Errorf("%s is a member of no cluster, it waits for one (%s): ask a member", printable(got.Self), printable(got.Waiting.Reason))
	case len(got.Members) == 0:
		return "", fmt.Errorf("%s is a member of no cluster: ask a member", printable(got.Self))
	}
	return "", fmt.Errorf("no member is at %s, says %s: quorate members lists them, and quorate decisions tells who has gone", name, printable(got.Self))
}
