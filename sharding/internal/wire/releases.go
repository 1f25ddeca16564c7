// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/quorate/quorate/machine/wire"

// What two releases can be to each other: [Spared] are the fields of control messages that one of them may lack,
// required says of all others why not.

// Spared returns the fields without which a node does what the others expect of it: what is said for people, and
// settings of which an absent one says nothing.
func Spared() []wire.SparedField {
	return []wire.SparedField{
		wire.Spared("Settings.hosting", wire.Path{4, 1, 5}, wire.Path{13, 5}),
		wire.Spared("Settings.on_stuck", wire.Path{4, 1, 6}, wire.Path{13, 6}),
		wire.Spared("Settings.handoff", wire.Path{4, 1, 7}, wire.Path{13, 7}),
		wire.Spared("Control.setting", wire.Path{10}),
		wire.Spared("Control.coordinator", wire.Path{11}),
		wire.Spared("Control.region", wire.Path{12}),
		wire.Spared("Explanation.detail", wire.Path{15, 3}),
		wire.Spared("Explanation.decision", wire.Path{15, 9}),
		wire.Spared("Explanation.reason", wire.Path{15, 11}),
		wire.Spared("Moved.reason", wire.Path{15, 13, 6}),
		wire.Spared("Scaling.detail", wire.Path{32, 2}),
	}
}

// required says of each message why its fields, but for those of [Spared], are in every release. What is added to them,
// and a node cannot do without, is used when all members speak the version of the protocol that has it: a coordinator
// keeps nothing of a control message that it does not know.
func required() map[string]string {
	const (
		one      = "it says which instance of a shard may run, and where"
		compared = "it is compared with that of the other nodes"
		drawn    = "it is drawn for an operator, who sees less without it and asks for it"
	)
	return map[string]string{
		"Control": one, "Term": one, "Shard": one, "Layout": one, "Epoch": one, "NodeID": one,
		"Settings": compared, "Registration": "the coordinator gives shards by it, slowly to a region that is young", "Scale": one,
		"Scaling":  "an operator is told whether a change has begun",
		"Position": "each home makes it anew, and a stream without it delivers twice",
		"Snapshot": "the data is the entity's own, in its own encoding, and goes on as it came",
		"Moved":    drawn, "Explanation": drawn,
	}
}
