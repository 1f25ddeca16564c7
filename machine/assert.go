// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is the value with which [Assert] panics: an invariant of the program
// itself is broken. No driver recovers from it, since a process that goes on with a
// broken invariant would spread the damage to its peers.
type Violation struct { //nolint:errname // It is the value of a panic; that it prints like an error is a convenience.
	// Invariant is the number under which the invariant is stated where its
	// data is declared, and the statement in a few words.
	Invariant string

	// Values alternates between names and values of what was found.
	Values []any
}

// Error returns the invariant and the values on one line.
func (v *Violation) Error() string {
	var b strings.Builder
	b.WriteString("broken invariant: ")
	b.WriteString(v.Invariant)
	for i := 0; i+1 < len(v.Values); i += 2 {
		fmt.Fprintf(&b, " %v=%v", v.Values[i], v.Values[i+1])
	}
	return b.String()
}

// Assert panics with a [*Violation] unless ok. It is for invariants of the
// caller's own, never for input. Values alternates between names and values.
func Assert(ok bool, invariant string, values ...any) {
	if !ok {
		// A copy is kept, so that the list of values takes no memory of the heap where the
		// invariant holds.
		panic(&Violation{Invariant: invariant, Values: slices.Clone(values)})
	}
}
