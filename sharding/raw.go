// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "fmt"

// Bytes is a message or a reply that is its own encoding. A kind for which the
// program encodes by itself is a Kind[*Bytes] with the codec [Raw].
type Bytes []byte

// Raw passes [Bytes] on as they are.
type Raw struct{}

var _ Codec = Raw{}

// Name returns "raw".
func (Raw) Name() string { return "raw" }

// Check fails for what is not a *Bytes.
func (Raw) Check(message any) error {
	_, err := asBytes(message)
	return err
}

// Size returns the number of bytes.
func (Raw) Size(message any) int {
	m, err := asBytes(message)
	if err != nil {
		return 0
	}
	return len(*m)
}

// Append appends the bytes.
func (Raw) Append(dst []byte, message any) ([]byte, error) {
	m, err := asBytes(message)
	if err != nil {
		return dst, err
	}
	return append(dst, *m...), nil
}

// Decode copies b.
func (Raw) Decode(b []byte, message any) error {
	m, err := asBytes(message)
	if err != nil {
		return err
	}
	*m = append(Bytes(nil), b...)
	return nil
}

// asBytes returns message as bytes.
func asBytes(message any) (*Bytes, error) {
	m, ok := message.(*Bytes)
	if !ok {
		return nil, fmt.Errorf("%T is not a *sharding.Bytes, which the raw codec needs", message)
	}
	return m, nil
}
