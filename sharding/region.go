// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Region is the way from one node to the entities of a kind, and this node's
// share of these entities.
type Region[C any] struct{ r *router }

// Tell sends a message to an entity. It returns when the message is accepted:
// an accepted message is handled once, or is reported in [System.Stats] when the host
// of the entity dies. While the mailbox of the entity is full, or too much is on its
// way to the shard, Tell waits. When ctx ends before there is room, the message was not
// accepted, and the error says what was full. Nobody may change the message after the
// call.
//
// The deadline of ctx bounds the waiting only: an accepted message does not
// expire. With a ctx of [Context.Context] it waits for at most five seconds, so that
// entities which wait for each other's mailboxes do not wait for ever.
func (g *Region[C]) Tell(ctx context.Context, id string, message C) error {
	return g.r.tell(ctx, id, message)
}

// Ask sends a message to an entity of g and waits for its reply, which must be
// an R: a pointer type that the kind's codec can decode. The ask ends with ctx, and
// after a minute when ctx has no deadline; the entity does not begin the message after
// that. The error wraps one of the sentinels in errors.go, which say whether the message
// may have been handled; a [MessageError] names the entity.
func Ask[R, C any](ctx context.Context, g *Region[C], id string, message C) (R, error) {
	var none R
	if t := reflect.TypeFor[R](); t.Kind() != reflect.Pointer {
		return none, &MessageError{g.r.name, clip(id), fmt.Sprintf("replies are pointers, asked for %s", t), ErrInvalid}
	}
	reply, err := g.r.ask(ctx, id, message)
	if err != nil {
		return none, err
	}
	return replyAs[R](g.r, id, reply)
}

// replyAs turns the reply of an entity into an R, or its code into an error.
func replyAs[R any](r *router, id string, reply *protocol.Reply) (R, error) {
	var none R
	if reply.Code != protocol.CodeOK {
		return none, &MessageError{Kind: r.name, Entity: id, Detail: reply.Detail, Err: errorOf(reply.Code)}
	}
	t := reflect.TypeFor[R]()
	if reply.Value != nil {
		value, ok := reply.Value.(R)
		if !ok {
			return none, &MessageError{r.name, id, fmt.Sprintf("the reply is a %T, asked for %s", reply.Value, t), ErrInvalid}
		}
		return value, nil
	}
	value := reflect.New(t.Elem()).Interface()
	if err := r.codec.Decode(reply.Payload, value); err != nil {
		return none, &MessageError{r.name, id, "reply: " + err.Error(), ErrInvalid}
	}
	return value.(R), nil
}
