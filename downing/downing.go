// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"

	"github.com/quorate/quorate/gossip"
)

// Provider decides, from the view of one side, which members must be downed. The leader of a side calls it, one call at
// a time, when the view has been stable, on a goroutine on which it may block until ctx ends. Other users may call it
// from several goroutines. It must not modify or keep the view; the caller owns the decision. An error, or a decision
// that fails [Check], downs no member: the caller then asks another node or, in time, downs its own side. Whatever the
// answers, a node calls three times a second at most.
//
// The member that asks may have joined through its side alone, so that no other side has
// ever heard of it, and a side may know of members, and of what they do, that no other side
// knows. So a provider that rules out the members of the sides that it does not keep has
// to rule out everybody else, not a list of those whom the side that it keeps knew.
type Provider interface {
	// Class is constant, does not block, and may be called at any time.
	Class() Class
	// Decide returns the decision for the view.
	Decide(ctx context.Context, v View) (Decision, error)
}

// Immediate is a [Provider] that can decide without waiting for anything, so
// that a protocol machine may call it directly.
type Immediate interface {
	Provider
	// DecideNow is Decide without a context. It is a pure function and never
	// blocks.
	DecideNow(v View) (Decision, error)
}

// Class is what a provider promises. The zero value promises nothing.
type Class struct {
	// Pure: equal views get equal decisions, at any time, and on any node of the side.
	Pure bool
	// MajorityOnly: no side survives without a majority of the voters. [Check]
	// enforces it. A provider that lets a smaller side survive, for example by asking
	// a witness, must leave it false, and then failover waits longer: the losing side
	// cannot tell from its own contacts that it has lost.
	MajorityOnly bool
}

// Verdict summarises a decision. The numbers are part of the contract with providers
// in other processes.
type Verdict uint8

// The verdicts. The zero value is None.
const (
	// None: no member is downed now.
	None Verdict = iota
	// KeepSide: this side goes on, without its named members; the named members of
	// other sides are downed as well.
	KeepSide
	// DownSide: this side gives up. All of its members that can be downed are named,
	// and no others, since another side may have won.
	DownSide
	// DownAll: no side survives. All members that can be downed are named.
	DownAll
)

// String returns the verdict in lower case with hyphens.
func (v Verdict) String() string {
	switch v {
	case None:
		return "none"
	case KeepSide:
		return "keep-side"
	case DownSide:
		return "down-side"
	case DownAll:
		return "down-all"
	default:
		return "invalid"
	}
}

// Decision is the answer to a [View].
type Decision struct {
	// Verdict summarises the decision.
	Verdict Verdict
	// Down are the members to be marked down, sorted, each once. A node that carries
	// the decision out marks others before itself.
	Down []gossip.NodeID
	// Reason is the reason for people, with the numbers that decided; at most
	// [MaxReason] bytes.
	Reason string
}
