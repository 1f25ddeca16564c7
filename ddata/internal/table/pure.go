// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import "fmt"

// Functions of entries, without a table.

// Merge returns the join of two entries of one key, as a table makes it. The error is a
// *[TypeError], or wraps [ErrKey] or [ErrValue].
func Merge(a, b Entry) (Entry, error) {
	k := newKinds()
	mine, err := k.image(&a)
	if err != nil {
		return Entry{}, err
	}
	theirs, err := k.image(&b)
	if err != nil {
		return Entry{}, err
	}
	if a.Key != b.Key {
		return Entry{}, fmt.Errorf("%w: the join of %q and %q", ErrValue, a.Key, b.Key)
	}
	next, outcome, err := k.made(a.Key, &mine, theirs.kind, 0, func(mine *image) (image, Outcome) {
		next, _ := joined(mine, &theirs)
		return next, Applied
	})
	if outcome != Applied {
		return Entry{}, err
	}
	return next.entry(a.Key), nil
}

// HashOfEntry returns the hash that [Table.Summaries] gives to an entry, zero for one that
// no table makes.
func HashOfEntry(e Entry) uint64 {
	k := newKinds()
	m, err := k.image(&e)
	if err != nil {
		return 0
	}
	return m.hash(HashKey(e.Key))
}

// SizeOf returns about how many bytes an entry takes, in memory and in a message.
func SizeOf(e Entry) int {
	const numbers, versionBytes = 32, 16
	size := len(e.Key) + numbers + versionBytes*(len(e.Versions)+len(e.Floor))
	if e.State == Live && e.Type != nil {
		size += e.Type.Size(e.Value)
	}
	return size
}
