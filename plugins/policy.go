// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import "fmt"

// Policy is what a plugin decides. The zero value is none.
type Policy string

// The policies. The contract has all of them; host.Policies returns those that a host
// runs.
const (
	Downing         Policy = "downing"          // Which nodes go after a partition.
	Allocation      Policy = "allocation"       // Where shards live.
	FailureDetector Policy = "failure-detector" // Whether nodes are believed alive.
	JoinDecider     Policy = "join-decider"     // What a node without a cluster does next.
	Discovery       Policy = "discovery"        // Where the nodes of a service are.
)

// Policies returns all policies, in the order of their numbers on the wire, which begin
// at 1.
func Policies() []Policy {
	return []Policy{Downing, Allocation, FailureDetector, JoinDecider, Discovery}
}

// Class is what a strategy promises beyond the form of its answers. The zero value
// promises nothing. The two fields mean what they mean in the packages of the
// policies; MajorityOnly is always false with policies other than [Downing].
type Class struct {
	// Pure: equal requests get equal answers, at any time and on any node.
	Pure bool
	// MajorityOnly: no side survives without a majority of the voters.
	MajorityOnly bool
}

// String names what is promised, such as "pure, majority-only", or "none".
func (c Class) String() string {
	switch {
	case c.Pure && c.MajorityOnly:
		return "pure, majority-only"
	case c.Pure:
		return "pure"
	case c.MajorityOnly:
		return "majority-only"
	default:
		return "none"
	}
}

// Manifest is what a plugin declares once it is configured.
type Manifest struct {
	// Name is the author's name of the strategy: 1 to 128 bytes. The cluster knows the
	// plugin by the name in its file.
	Name string
	// Version is the version of the plugin; may be empty.
	Version string
	// Policy is what the plugin decides.
	Policy Policy
	// Contract is the negotiated version of the contract, from 1.
	Contract int
	// Class is what the strategy promises. It does not change while the process
	// lives.
	Class Class
}

// String returns the manifest in one line, for people.
func (m Manifest) String() string {
	return fmt.Sprintf("%s %s (%s, contract %d, class %s)", m.Name, m.Version, m.Policy, m.Contract, m.Class)
}
