// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

// Codec turns the messages of one component into bytes and back. It is called
// from several goroutines at once.
type Codec interface {
	// Append appends the encoding of message to dst and returns the extended
	// slice. An error means that message is not one of the component's
	// messages, which is a defect of the component.
	Append(dst []byte, message any) ([]byte, error)

	// Decode returns the message that b holds. b is only valid during the
	// call. Any byte sequence is possible: Decode returns an error for what
	// it does not understand, never panics, and allocates in proportion to
	// len(b).
	Decode(b []byte) (any, error)
}

// Component is a machine as a node sees it.
type Component struct {
	// Name identifies the component in logs, metrics and traces: "membership",
	// "sharding/account".
	Name string

	// Service is the number of the component's messages, unique on a node.
	Service Service

	Machine Machine
	Codec   Codec
}
