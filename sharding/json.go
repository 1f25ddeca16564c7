// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"encoding/json"
	"fmt"
)

// JSON encodes messages with encoding/json: C is a pointer to anything that it
// can encode. Fields that the receiving side does not know are ignored, so that
// nodes of two versions understand each other. It costs several times what
// [Protobuf] does, since a message is encoded to learn its size, too.
type JSON struct{}

var _ Codec = JSON{}

// Name returns "json".
func (JSON) Name() string { return "json" }

// Check fails for what encoding/json cannot encode, such as channels and
// functions.
func (JSON) Check(message any) error {
	if _, err := json.Marshal(message); err != nil {
		return fmt.Errorf("%T cannot be encoded as JSON: %w", message, err)
	}
	return nil
}

// Size returns the size of the encoding, 0 for what cannot be encoded.
func (JSON) Size(message any) int {
	b, err := json.Marshal(message)
	if err != nil {
		return 0
	}
	return len(b)
}

// Append appends the encoding.
func (JSON) Append(dst []byte, message any) ([]byte, error) {
	b, err := json.Marshal(message)
	if err != nil {
		return dst, fmt.Errorf("JSON: %w", err)
	}
	return append(dst, b...), nil
}

// Decode decodes b.
func (JSON) Decode(b []byte, message any) error {
	if err := json.Unmarshal(b, message); err != nil {
		return fmt.Errorf("JSON: %w", err)
	}
	return nil
}
