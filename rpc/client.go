// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Caller leads to the entities of one kind. Generated clients stand on it. It may be called from any
// goroutine.
type Caller interface {
	// Ask sends a call to the entity with an id and waits for the reply, until ctx
	// ends at the latest. The error says whether the entity may have handled the call, in the
	// way of the implementation.
	Ask(ctx context.Context, id string, call *Call) (*Reply, error)

	// Tell sends a call and returns when it is accepted.
	Tell(ctx context.Context, id string, call *Call) error
}

// message is a pointer to a generated message T.
type message[T any] interface {
	*T
	proto.Message
}

// Ask asks an entity by a caller. Generated clients call it. The error is a [*Fault] when the
// entity has refused the call, wraps [ErrInvalid] when the message is nil or the reply
// cannot be decoded, and is that of the caller otherwise.
func Ask[R any, PR message[R], M any, PM message[M]](ctx context.Context, c Caller, id, method string, m PM) (PR, error) {
	if m == nil {
		return nil, fmt.Errorf("rpc: %s: %w: the message is nil", method, ErrInvalid)
	}
	reply, err := c.Ask(ctx, id, &Call{Method: method, Message: m})
	if err != nil {
		return nil, err
	}
	if reply.Fault != nil {
		return nil, reply.Fault
	}
	if typed, ok := reply.Message.(PR); ok {
		return typed, nil
	}
	if reply.Message != nil {
		return nil, fmt.Errorf("rpc: %s: %w: the reply is a %T", method, ErrInvalid, reply.Message)
	}
	out := PR(new(R))
	if err := Unmarshal(reply.Encoded, out); err != nil {
		return nil, fmt.Errorf("rpc: %s: %w: the reply cannot be decoded: %w", method, ErrInvalid, err)
	}
	return out, nil
}

// Tell tells an entity by a caller. Generated clients call it for one-way methods. The error
// wraps [ErrInvalid] when the message is nil, and is that of the caller otherwise.
func Tell[M any, PM message[M]](ctx context.Context, c Caller, id, method string, m PM) error {
	if m == nil {
		return fmt.Errorf("rpc: %s: %w: the message is nil", method, ErrInvalid)
	}
	return c.Tell(ctx, id, &Call{Method: method, OneWay: true, Message: m})
}
