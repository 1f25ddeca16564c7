// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cause is by whom a member was declared down, and why. It stands with the member
// and, when the member was removed, with its tombstone, so that whoever is asked
// can tell it to the node that was declared down. Nothing is decided by it.
//
// The zero Cause is none: the member is not down, or a version that writes no
// causes declared it down.
type Cause struct {
	By  NodeID // The node that made the decision.
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

// compareCauses is a total order in which no cause is the least. The greater of two
// is their join: two nodes that declare a member down at once both tell the truth,
// so any order will do that all nodes share.
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

// fitCause makes a text one that every node takes: control characters become
// spaces, what is not UTF-8 is marked as such, and what is too long is cut.
func fitCause(why string) string {
	why = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r // Of bytes that are no character, this is the replacement character.
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
