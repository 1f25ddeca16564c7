// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/gossip"
)

var (
	// ErrName is wrapped by the error about the name of a topic or a group that is no text
	// of 1 to 255 bytes of UTF-8.
	ErrName = errors.New("pubsub: invalid name")
	// ErrOption is wrapped by the error about an option that nothing can have.
	ErrOption = errors.New("pubsub: invalid option")
	// ErrTooLarge is wrapped by the error about a message that is larger than a message
	// between nodes may be. Nobody has got it.
	ErrTooLarge = errors.New("pubsub: the message is too large")
	// ErrFull is in a [PublishError] when the connection to a node has taken as much as
	// may wait there.
	ErrFull = errors.New("pubsub: too many messages wait for the node")
	// ErrSlow is in a [PublishError] when a subscriber with the policy [Fail] has no room.
	ErrSlow = errors.New("pubsub: a subscriber has no room")
	// ErrClosed is returned, wrapped, when a subscription or the node has ended.
	ErrClosed = errors.New("pubsub: closed")
)

// PublishError says which nodes, or which groups, a message was not sent to. All others
// have been sent it.
type PublishError struct {
	Topic  string
	Failed []Failure
}

// Failure says where a message did not go, and why.
type Failure struct {
	Node  gossip.NodeID
	Group string // The group that has not got the message; "" for the other subscribers on the node.
	Err   error  // [ErrFull], [ErrSlow], an error of the transport or that of the context.
}

// Error names the topic and the nodes.
func (e *PublishError) Error() string {
	parts := make([]string, len(e.Failed))
	for i, f := range e.Failed {
		parts[i] = f.Node.String()
		if f.Group != "" {
			parts[i] += fmt.Sprintf(" (group %q)", f.Group)
		}
		parts[i] += ": " + f.Err.Error()
	}
	return fmt.Sprintf("pubsub: topic %q: not sent to %s", e.Topic, strings.Join(parts, "; "))
}

// Unwrap returns the causes.
func (e *PublishError) Unwrap() []error {
	causes := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		causes[i] = f.Err
	}
	return causes
}

// CodecError says that a message could not be encoded, and nobody has got it; or that one
// that was received could not be decoded, and is passed over.
type CodecError struct {
	Topic string
	From  gossip.NodeID // The node that has published the message.
	Err   error
}

// Error names the topic and the node.
func (e *CodecError) Error() string {
	return fmt.Sprintf("pubsub: topic %q: a message of %s: %v", e.Topic, e.From, e.Err)
}

// Unwrap returns the cause.
func (e *CodecError) Unwrap() error { return e.Err }
