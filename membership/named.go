// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// ParseMember parses the name of a member. The id, "host:port#hex" as [gossip.NodeID.String]
// gives it, names one incarnation: a process that is started again at the address is not
// meant. The address alone, "host:port", names whoever is the member there when a command is
// carried out; the result has no uid then.
func ParseMember(name string) (gossip.NodeID, error) {
	if strings.Contains(name, "#") {
		id, err := gossip.ParseNodeID(name)
		if err != nil {
			return gossip.NodeID{}, fmt.Errorf("membership: %w", err)
		}
		return id, nil
	}
	address, err := gossip.ParseAddress(name)
	if err != nil {
		return gossip.NodeID{}, fmt.Errorf("membership: %w", err)
	}
	return gossip.NodeID{Address: address}, nil
}

// Find returns the member of a name, see [ParseMember]. The error is an
// [*UnknownMemberError] if there is none.
func (v View) Find(name string) (*gossip.Member, error) {
	named, err := ParseMember(name)
	if err != nil {
		return nil, err
	}
	member, absent := protocol.Find(v.State, named)
	if absent != nil {
		return nil, unknownMember(absent)
	}
	return member, nil
}

// UnknownMemberError says that no member has the name that was given, and what became of it
// as far as the node knows. It unwraps to [ErrUnknownMember].
type UnknownMemberError struct {
	// Named is what was named, without a uid if it was an address.
	Named gossip.NodeID
	// Now is the member at that address, another one than was named. Zero: there is none.
	Now gossip.NodeID
	// Removed is how the node was removed or, if that is not known, the last one that was
	// removed at its address. Zero: none, or it was long ago.
	Removed gossip.Tombstone
}

func unknownMember(a *protocol.Absent) *UnknownMemberError {
	return &UnknownMemberError{Named: a.Named, Now: a.Now, Removed: a.Removed}
}

// Error says what became of the node.
func (e *UnknownMemberError) Error() string {
	name := e.Named.Address.String()
	if e.Named.UID != 0 {
		name = e.Named.String()
	}
	switch {
	case !e.Now.IsZero():
		return fmt.Sprintf("membership: %s is not a member any more: it was started again, and is %v now", name, e.Now)
	case e.Removed.Node.IsZero():
		return fmt.Sprintf("membership: %s is not a member of this cluster", name)
	}
	how := "after it had left"
	if !e.Removed.Downed.IsZero() {
		how = "after it was declared down: " + e.Removed.Downed.Why
	}
	return fmt.Sprintf("membership: %s is gone: %v was removed at %s, %s", name, e.Removed.Node, e.Removed.Time().Format("2006-01-02T15:04:05Z"), how)
}

// Unwrap returns [ErrUnknownMember].
func (e *UnknownMemberError) Unwrap() error { return ErrUnknownMember }

// orderError turns the machine's answer to a command about a member into an error.
func orderError(a protocol.CommandAnswered) error {
	switch {
	case a.Absent != nil:
		return unknownMember(a.Absent)
	case a.NotReady != "":
		return fmt.Errorf("%w: %s", ErrNotUp, a.NotReady)
	}
	return nil
}

// closedError is the error of a command to a node that has ended for a reason.
func closedError(why error) error {
	if why == nil || errors.Is(why, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrClosed, why)
}
