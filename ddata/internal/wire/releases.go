// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/quorate/quorate/machine/wire"

// Which fields a release may lack that works together with this one: [Spared] are those that it may, required says of
// all others why it may not.

// Spared returns the fields without which a replica does what the others expect of it.
func Spared() []wire.SparedField {
	return []wire.SparedField{
		wire.Spared("DeltasTaken.Refusals.Reason", wire.Path{22, 4, 2}),
		wire.Spared("PutTaken.Refusals.Reason", wire.Path{24, 4, 2}),
		wire.Spared("Ask.Hash", wire.Path{25, 3}), // The answer is the whole entry.
		wire.Spared("Committed.Refusals.Reason", wire.Path{39, 5, 2}),
		wire.Spared("Committed.Reason", wire.Path{39, 6}),
	}
}

// required says of the envelope, and of each body and part, why its fields, but for those of [Spared], are in every
// release. What is added to them, and a replica cannot do without, is used when all members speak the version of the
// protocol that has it.
func required() map[string]string {
	const (
		decided  = "a register is decided once, by who has promised what"
		answered = "an answer is found by its question, and says what was taken and what was not"
		compared = "tables are equal when their hashes are: what one side lacks, the other one takes for a difference"
		swept    = "a tombstone falls when all replicas hold the same ones"
		counted  = "what it says counts among the answers of a majority"
	)
	return map[string]string{
		"Envelope": "it says in which generation the sender is, and what its word counts for",
		"Register": "all replicas have to have it alike; what a later release adds is kept",
		"Entry":    "a value has an encoding of its own, and a type that a replica does not know is refused by name",
		"Change":   "it is counted by its origin, and joined by its type",

		"Hello": decided, "Prepare": decided, "Promise": decided, "Accept": decided, "Accepted": decided,
		"Deltas": answered, "DeltasTaken": answered, "Put": answered, "PutTaken": answered, "Ask": answered, "Answer": answered,
		"EntryRequest": answered, "EntryReply": answered, "Commit": answered, "RemoveKey": answered, "Committed": answered,
		"Compare": compared, "Groups": compared, "AskBuckets": compared, "BucketHashes": compared, "Pull": compared, "PullReply": compared,
		"Sweep": swept, "SweepReply": swept, "OlderStore": counted,
	}
}
