// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package wiretest sends messages of the contract with plugins through their bytes, in
// the tests of the policies.
package wiretest

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// Bytes returns the bytes of a message.
func Bytes(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Over reads the bytes of m into the message to, and returns that.
func Over[M proto.Message](tb testing.TB, m, to M) M {
	tb.Helper()
	if err := proto.Unmarshal(Bytes(tb, m), to); err != nil {
		tb.Fatal(err)
	}
	return to
}

// Again reads any bytes as a message, and returns the value that read makes of it and
// the one that arrives when write sends that value again: they are to be equal. It
// reports false where the bytes are no message, or where read refuses it. What read has
// accepted once, write must take, and read must accept once more.
func Again[V any, M proto.Message](tb testing.TB, b []byte, m M, read func(M) (V, error), write func(*V) (M, error)) (first, again V, ok bool) {
	tb.Helper()
	if proto.Unmarshal(b, m) != nil {
		return first, again, false
	}
	first, err := read(m)
	if err != nil {
		return first, again, false
	}
	sent, err := write(&first)
	if err != nil {
		tb.Fatalf("what was accepted cannot be sent again: %v", err)
	}
	if again, err = read(sent); err != nil {
		tb.Fatalf("what was accepted once is refused: %v", err)
	}
	return first, again, true
}
