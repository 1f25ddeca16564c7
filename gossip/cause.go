// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// Cause says which node declared a member down, and why. It is kept in the member and,
// after its removal, in its tombstone, so that any node can tell it to the node that
// was declared down. No decision depends on it.
//
// The zero Cause is none: the member is not down, or a node of a version without
// causes declared it down.
type Cause struct {
	By  NodeID // The node that declared the member down.
	Why string // For people: printable UTF-8 of at most [MaxCauseBytes].
}

// IsZero reports whether c is no cause.
func (c Cause) IsZero() bool { return c == Cause{} }

// String returns the node and its reason, "" for no cause.
func (c Cause) String() string {
	switch {
	case c.IsZero():
		return ""
	case c.Why == "":
		return c.By.String()
	}
	return c.By.String() + ": " + c.Why
}

// Validate reports whether c can be in a state. The errors unwrap to
// [ErrInvalid].
func (c Cause) Validate() error {
	if c.IsZero() {
		return nil
	}
	if err := c.By.Validate(); err != nil {
		return err
	}
	return validateText(c.By, "reason to declare a member down", c.Why, MaxCauseBytes)
}

// compareCauses is a total order in which the zero Cause is the least. The join of two
// causes is the greater: when two nodes declare a member down at once both causes are
// true, so that any order will do that is the same on all nodes.
func compareCauses(a, b *Cause) int {
	if a.IsZero() || b.IsZero() {
		return compareNil(a.IsZero(), b.IsZero())
	}
	return cmp.Or(compareNodes(&a.By, &b.By), strings.Compare(a.Why, b.Why))
}

// maxCause returns the greater of two causes.
func maxCause(a, b Cause) Cause {
	if compareCauses(&a, &b) < 0 {
		return b
	}
	return a
}

// fitCause makes a text acceptable to every node: characters that do not print become spaces,
// bytes that are not UTF-8 become replacement characters, and a text that is too long
// is cut.
func fitCause(why string) string {
	why = strings.Map(func(r rune) rune {
		if isUnprinted(r) && r != utf8.RuneError {
			return ' '
		}
		return r // For bytes that are no character, r is the replacement character.
	}, why)
	if len(why) <= MaxCauseBytes {
		return why
	}
	end := MaxCauseBytes
	for !utf8.RuneStart(why[end]) {
		end--
	}
	return why[:end]
}
