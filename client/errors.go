// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorate/quorate/client/internal/broker"
)

// The ways in which a request fails, which mirror those of a member. Each error says whether the message may have
// been handled, and so whether it is safe to send it again.
//
//	ErrNotDelivered    not handled          a retry is safe
//	ErrOverloaded      not handled          a retry is safe, later
//	ErrNoStanding      not handled          a retry is safe, elsewhere
//	ErrUnreachable     not handled          a retry is safe
//	ErrExpired         not handled          a retry is safe
//	ErrUnknownKind     not handled          a retry is of no use, unless nodes were just starting
//	ErrRefused         not handled          a retry is of no use before the client may ask
//	ErrInvalid         never accepted       a retry is of no use
//	ErrEntityFailed    perhaps in part      a retry is safe if handling twice is
//	ErrUnknownOutcome  perhaps              a retry is safe if handling twice is
//
// All errors of messages that were not handled, but for ErrInvalid, wrap ErrNotDelivered as well.
var (
	// ErrNotDelivered: the message was not handled. The time was over before a node had it, or
	// the nodes gave it back.
	ErrNotDelivered = errors.New("not delivered")
	// ErrOverloaded: the mailbox of the entity, the way to it, a node or this client was full.
	ErrOverloaded = errors.New("overloaded")
	// ErrNoStanding: the nodes that were asked do not hear from enough others.
	ErrNoStanding = errors.New("no standing")
	// ErrUnreachable: the members do not hear from the host of the entity.
	ErrUnreachable = errors.New("unreachable")
	// ErrExpired: the deadline had passed before the entity got to the message.
	ErrExpired = errors.New("expired")
	// ErrUnknownKind: the nodes do not run the kind, or do not show it to clients.
	ErrUnknownKind = errors.New("unknown kind")
	// ErrRefused: no node lets this client ask: its certificate or token is not theirs.
	ErrRefused = errors.New("refused")
	// ErrInvalid: the kind, the id or the message is not acceptable.
	ErrInvalid = errors.New("invalid")
	// ErrEntityFailed: the entity could not be started, or failed at the message.
	ErrEntityFailed = errors.New("entity failed")
	// ErrUnknownOutcome: a node had the message, and no answer came.
	ErrUnknownOutcome = errors.New("unknown outcome")
	// ErrClosed: the client was closed. The error of a message wraps ErrNotDelivered as well.
	ErrClosed = errors.New("client: closed")
)

// MessageError is the error of one message. It wraps one or several of the sentinels of this file,
// and the cause of its context if that has ended.
type MessageError struct {
	Kind   string
	Entity string
	Detail string // More about the cause, for people; may be empty.
	Errs   []error
}

// Error names the kind, the entity and the cause.
func (e *MessageError) Error() string {
	parts := []string{fmt.Sprintf("client: %s %q", clip(e.Kind), clip(e.Entity))}
	for _, err := range e.Errs {
		parts = append(parts, err.Error())
	}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the causes.
func (e *MessageError) Unwrap() []error { return e.Errs }

// errsOf returns the sentinels that go with a code. A code of a later version says nothing about what
// became of the message.
func errsOf(c broker.Code) []error {
	switch c {
	case broker.NotDelivered:
		return []error{ErrNotDelivered}
	case broker.Expired:
		return []error{ErrExpired, ErrNotDelivered}
	case broker.EntityFailed:
		return []error{ErrEntityFailed}
	case broker.Overloaded:
		return []error{ErrOverloaded, ErrNotDelivered}
	case broker.NoStanding:
		return []error{ErrNoStanding, ErrNotDelivered}
	case broker.Unreachable:
		return []error{ErrUnreachable, ErrNotDelivered}
	case broker.Invalid:
		return []error{ErrInvalid}
	case broker.UnknownKind:
		return []error{ErrUnknownKind, ErrNotDelivered}
	case broker.Refused:
		return []error{ErrRefused, ErrNotDelivered}
	default:
		return []error{ErrUnknownOutcome}
	}
}

// clip shortens a text for an error.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
