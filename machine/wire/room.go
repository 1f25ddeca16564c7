// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "reflect"

// Room bounds the lists of one message by its bytes. Items without content have two bytes each, and may take a hundred
// times as much in memory: a decoder counts the items with [Count], gets each of its lists from [List], once and in its
// full length, and is told when a message would cost more than it may.
type Room struct{ bytes int }

const (
	// roomPerByte leaves one of the eight bytes that a decoder may allocate for each byte to what texts take.
	roomPerByte = 7
	// roomLeast is how much the lists of the smallest message may take.
	roomLeast = 4 << 10
)

// RoomOf returns the room for all lists of a message.
func RoomOf(b []byte) Room { return Room{roomLeast + roomPerByte*len(b)} }

// List returns an empty list with a capacity of n, and nil for none. It is malformed if the lists of the message take
// more than seven bytes for each of its bytes, and four KiB.
func List[T any](r *Room, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	if err := r.Take(n, int(reflect.TypeFor[T]().Size())); err != nil {
		return nil, err
	}
	return make([]T, 0, n), nil
}

// Take takes room for n items of a size, for who makes the list by itself. It is malformed if there is not as much.
func (r *Room) Take(n, size int) error {
	if n > r.bytes/max(size, 1) {
		return Malformed("a list of %d items has less than a seventh of their %d bytes each", n, size)
	}
	r.bytes -= n * size
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
