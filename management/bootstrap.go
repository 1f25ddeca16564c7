// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"time"

	"github.com/quorate/quorate/membership"
)

// BootstrapStatus is how the search of a node for contact points stands.
type BootstrapStatus struct {
	Self string `json:"self"` // The node that answers.
	// Waits says in one sentence what the node waits for.
	Waits string `json:"waits"`
	// Looks says that the node looks contact points up. Else they are listed as seed
	// nodes, or the program lets the node join, and there is nothing below.
	Looks bool `json:"looks"`

	ContactPoints []ContactPoint `json:"contactPoints,omitempty"` // Those that the last lookup has found, by address.
	Required      int            `json:"required,omitempty"`      // So many must answer and vote where nobody remembers a cluster.
	Stable        string         `json:"stable,omitempty"`        // For how long the set has been unchanged, as "3s".
	StableMargin  string         `json:"stableMargin,omitempty"`  // For how long it has to be.
	Fault         string         `json:"fault,omitempty"`         // Why the last lookup failed.
	LookedUp      *time.Time     `json:"lookedUp,omitempty"`      // When a lookup has answered last, by the clock of the node that answers.
}

// ContactPoint is one contact point.
type ContactPoint struct {
	Address string `json:"address"`
	Answers bool   `json:"answers"` // It has answered lately.
	Member  bool   `json:"member"`  // It is in a cluster that goes on.
}

// Bootstrap returns the route of the contact points, /bootstrap.
func Bootstrap(node *membership.Node) []Route {
	return []Route{{Path: "/bootstrap", Summary: "What the node waits for that looks contact points up", Result: BootstrapStatus{}, Answer: func(context.Context, Request) (any, error) {
		answer := bootstrapOf(node.Bootstrap())
		answer.Self = node.Self().String()
		return answer, nil
	}}}
}

// bootstrapOf describes a search, if there is one.
func bootstrapOf(b *membership.Bootstrap) BootstrapStatus {
	if b == nil {
		return BootstrapStatus{Waits: "nothing: this node looks no contact points up"}
	}
	answer := BootstrapStatus{
		Waits: b.Line, Looks: true, Required: b.Required, Fault: b.Fault,
		Stable: b.Stable.Truncate(time.Millisecond).String(), StableMargin: b.StableMargin.String(),
	}
	if !b.LookedUp.IsZero() {
		answer.LookedUp = &b.LookedUp
	}
	for _, p := range b.Points {
		answer.ContactPoints = append(answer.ContactPoints, ContactPoint{Address: p.Address, Answers: p.Answers, Member: p.Member})
	}
	return answer
}
