// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/quorate/quorate/machine/wire"

// What two releases can be to each other: [Spared] are the fields of control messages that one of them may lack,
// required says of all others why not.

// path is where a field is: the numbers of the messages around it, from the frame inwards, and its own.
type path = []wire.Number

// Field is a field that the nodes of one cluster may lack, as those of a release before it do.
type Field struct {
	Name  string // In the .proto file.
	Paths [][]wire.Number
}

// Spared returns the fields without which a node does what the others expect of it: what is said for people, and
// settings of which an absent one says nothing.
func Spared() []Field {
	at := func(name string, paths ...path) Field { return Field{name, paths} }
	return []Field{
		at("Settings.hosting", path{4, 1, 5}, path{13, 5}),
		at("Settings.on_stuck", path{4, 1, 6}, path{13, 6}),
		at("Settings.handoff", path{4, 1, 7}, path{13, 7}),
		at("Control.setting", path{10}),
		at("Control.coordinator", path{11}),
		at("Control.region", path{12}),
		at("Explanation.detail", path{15, 3}),
		at("Explanation.decision", path{15, 9}),
		at("Explanation.reason", path{15, 11}),
		at("Moved.reason", path{15, 13, 6}),
		at("Scaling.detail", path{32, 2}),
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
