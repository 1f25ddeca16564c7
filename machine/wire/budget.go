// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "reflect"

// Budget is how much memory the lists of one message may still take, which follows from the length of the message. An
// item without content has two bytes in a message, and may take a hundred times as much in memory. So a decoder counts
// the items with [Count], gets each of its lists from [List], once and in its full length, and gets an error where the
// budget is exceeded.
type Budget struct{ bytes int }

const (
	// budgetPerByte is what lists may take for each byte of a message. A decoder may allocate eight: one is left for
	// texts.
	budgetPerByte = 7
	// budgetLeast is what lists may take besides, also in the smallest message.
	budgetLeast = 4 << 10
)

// BudgetOf returns the budget of all lists of a message.
func BudgetOf(b []byte) Budget { return Budget{budgetLeast + budgetPerByte*len(b)} }

// List returns an empty list with a capacity of n, and nil for none. It is malformed if the lists of the message take
// more than seven bytes for each of its bytes, and four KiB.
func List[T any](budget *Budget, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	if err := budget.Take(n, int(reflect.TypeFor[T]().Size())); err != nil {
		return nil, err
	}
	return make([]T, 0, n), nil
}

// Take takes n items of a size off the budget, for a caller that makes the list by itself. It is malformed if that is
// more than is left.
func (b *Budget) Take(n, size int) error {
	if n > b.bytes/max(size, 1) {
		return Malformed("a list of %d items has less than a seventh of their %d bytes each", n, size)
	}
	b.bytes -= n * size
	return nil
}

// Count returns how many fields of a number b has, up to the first that is malformed.
func Count(b []byte, number Number) (n int) {
	for len(b) > 0 {
		f, rest, err := Next(b)
		if err != nil {
			return n
		}
		if f.Number == number {
			n++
		}
		b = rest
	}
	return n
}
