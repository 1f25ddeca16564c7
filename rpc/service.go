// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Service is what the entities E of a service can be called for, with contexts of type C.
// Generated code makes it. It never changes.
type Service[E, C any] struct {
	name    string
	methods map[string]Method[E, C]
}

// Method is one method of a [Service]; see [Asked] and [Told].
type Method[E, C any] struct {
	name   string
	oneWay bool
	blank  func() proto.Message
	handle func(entity E, c C, m proto.Message) (*Reply, error)
}

// errNoReply: a method has returned neither a message nor an error.
var errNoReply = errors.New("rpc: the method returned no message")

// NewService returns a service by its full name, such as "bank.v1.Accounts". Generated code
// calls it.
func NewService[E, C any](name string, methods ...Method[E, C]) Service[E, C] {
	s := Service[E, C]{name: name, methods: make(map[string]Method[E, C], len(methods))}
	for _, m := range methods {
		s.methods[m.name] = m
	}
	return s
}

// Asked returns a method that answers.
func Asked[E, C, M, R any, PM message[M], PR message[R]](name string, f func(E, C, PM) (PR, error)) Method[E, C] {
	return Method[E, C]{
		name:  name,
		blank: func() proto.Message { return PM(new(M)) },
		handle: func(entity E, c C, m proto.Message) (*Reply, error) {
			typed, ok := m.(PM)
			if !ok {
				return nil, fmt.Errorf("rpc: %s: %w: the message is a %T", name, ErrInvalid, m)
			}
			reply, err := f(entity, c, typed)
			if fault, refused := errors.AsType[*Fault](err); refused {
				return &Reply{Fault: fault}, nil
			}
			if err == nil && reply == nil {
				err = errNoReply
			}
			if err != nil {
				return nil, err
			}
			return &Reply{Message: reply}, nil
		},
	}
}

// Told returns a one-way method, which does not answer.
func Told[E, C, M any, PM message[M]](name string, f func(E, C, PM) error) Method[E, C] {
	return Method[E, C]{
		name: name, oneWay: true,
		blank: func() proto.Message { return PM(new(M)) },
		handle: func(entity E, c C, m proto.Message) (*Reply, error) {
			typed, ok := m.(PM)
			if !ok {
				return nil, fmt.Errorf("rpc: %s: %w: the message is a %T", name, ErrInvalid, m)
			}
			return nil, f(entity, c, typed)
		},
	}
}

// Name returns the full name of the service.
func (s Service[E, C]) Name() string { return s.name }

// Methods returns the names of the methods, sorted.
func (s Service[E, C]) Methods() []string { return slices.Sorted(maps.Keys(s.methods)) }

// Handle has an entity handle a call. The reply is nil for a one-way method. An error means that
// the entity is not usable any more; a refusal is a reply with a fault, as is the answer to a call
// of a method that the service does not have, which the entity does not see. A [Fault] that
// a one-way method returns is the error, since nobody would hear of it.
//
// Whoever asks a one-way method, which generated clients do not do, gets an empty message.
func (s Service[E, C]) Handle(entity E, c C, call *Call) (*Reply, error) {
	m, known := s.methods[call.Method]
	if !known {
		return &Reply{Fault: unknown(s.name, call.Method)}, nil
	}
	reply, err := m.handle(entity, c, call.Message)
	if err == nil && reply == nil && !call.OneWay {
		return &Reply{Encoded: []byte{}}, nil
	}
	return reply, err
}

// Decode decodes a call. One of a method that the service does not have has no
// message, if somebody waits for the reply; if nobody does, nothing could be said to anybody, and Decode returns an
// error that wraps [ErrUnknownMethod]. It keeps nothing of b.
func (s Service[E, C]) Decode(b []byte) (Call, error) {
	method, encoded, oneWay, err := DecodeCall(b)
	if err != nil {
		return Call{}, err
	}
	m, known := s.methods[method]
	if !known {
		if oneWay {
			return Call{}, unknown(s.name, method)
		}
		return Call{Method: method}, nil
	}
	call := Call{Method: m.name, OneWay: oneWay, Message: m.blank()}
	if err := Unmarshal(encoded, call.Message); err != nil {
		return Call{}, fmt.Errorf("rpc: %s: %w", method, err)
	}
	return call, nil
}
