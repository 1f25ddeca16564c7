// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import "github.com/quorate/quorate/ddata/crdt"

// What a table holds of a key ([Entry]), updates of a key ([Change]), and the results of adding either to a table
// ([Outcome]).

// State is the state of a key.
type State uint8

// The states of a key.
const (
	// Live: the key has a value.
	Live State = iota + 1
	// Deleted: the key was deleted, and no update counts until the tombstone is swept.
	Deleted
	// Expired: the value was dropped, with all updates that the Floor means. The next update makes the key live again,
	// and begins with the zero value.
	Expired
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Deleted:
		return "deleted"
	case Expired:
		return "expired"
	default:
		return "none"
	}
}

// Entry is what a replica holds of a key. It is immutable.
//
//	state    Type  Value  Versions          Floor                      Stamp
//	Live     set   set    what Value holds  what expired before, rare  0
//	Deleted  nil   nil    nil               nil                        set
//	Expired  set   nil    nil               what expired               set
type Entry struct {
	Key string
	// Type is the type of the value. A deleted key has none, since a node may delete a key whose type it does not know.
	Type crdt.Type
	// Value is the join of exactly the updates that Versions means, settled.
	Value    any
	Versions Versions
	// Floor means the updates that have expired. A live entry has one if the key has come
	// back; it keeps old copies of the value from coming back too.
	Floor Versions
	State State
	// Stamp is the generation in which a tombstone was made, zero for a live entry.
	Stamp uint64
}

// Change is the updates (From, To] of one key by one origin. It is immutable.
type Change struct {
	Key    string
	Type   crdt.Type
	Origin crdt.Origin
	// From and To number the updates by the origin: From of them came before, To is the
	// number of the last. Equal numbers are no update, see [Table.Update].
	From, To uint64
	// Delta is the join of the updates, nil for none.
	Delta any
	// Whole says that the type has no deltas and Delta is the whole value.
	Whole bool
}

// Outcome is the result of adding an entry or a change of another replica to a table.
type Outcome uint8

// The outcomes.
const (
	// Applied: something was new, and is part of the entry now.
	Applied Outcome = iota + 1
	// Known: nothing was new.
	Known
	// Gap: an earlier update of the origin is missing, and nothing has changed. The whole
	// entry has to be asked for.
	Gap
	// Refused: nothing has changed, for the reason that the error says.
	Refused
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Known:
		return "known"
	case Gap:
		return "gap"
	case Refused:
		return "refused"
	default:
		return "none"
	}
}

// Summary says what an entry is, for a comparison with that of another table: equal
// hashes mean equal entries.
type Summary struct {
	Key     string
	KeyHash uint64 // See [HashKey]: for messages that do not carry keys.
	Hash    uint64
}
