// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/telemetry"
)

// The errors of messages: first the sentinels, with a table of which says that a retry is
// safe, and the code of the protocol that each belongs to; then the error types, which add
// the kind, the entity or the node.

// The ways in which a message fails. Each error says whether the message may
// have been handled, and so whether it is safe to send the message again.
//
//	ErrUnreachable     not handled          a retry is safe
//	ErrOverloaded      not handled          a retry is safe, later
//	ErrNotDelivered    not handled          a retry is safe
//	ErrNoStanding      not handled          a retry is safe, elsewhere
//	ErrExpired         not handled          a retry is safe
//	ErrEntityFailed    perhaps in part      a retry is safe if handling twice is
//	ErrUnknownOutcome  perhaps              a retry is safe if handling twice is
//	ErrAskedItself     never accepted       a retry is of no use
//	ErrInvalid         never accepted       a retry is of no use
//
// So it is safe to send a message again if, and only if, its error is ErrNotDelivered and not
// ErrAskedItself: the error of a message that is one of the first five is ErrNotDelivered as well.
//
// ErrInvalid has one exception: a reply of another type than was asked for is
// ErrInvalid as well, as far as that is noticed (see [Ask]), and its message has been handled.
var (
	// ErrFixed: [System.Reload] was given another value for a setting that cannot
	// change while the node runs.
	ErrFixed = errors.New("a setting has changed that cannot change while the node runs: restart the node")
	// ErrUnreachable: members do not hear from the home of the shard, and the context
	// ended before the message could be accepted, or before it left this node. An
	// UnreachableError says since when.
	ErrUnreachable = errors.New(protocol.CodeUnreachable.String())
	// ErrOverloaded: the mailbox of the entity, or what may be on its way to its shard,
	// was full, and no room came before the context ended.
	ErrOverloaded = errors.New(protocol.CodeOverloaded.String())
	// ErrNotDelivered: the message was given back before it was handled: a node
	// stopped, or the asker's context ended while the message was still on this node,
	// waiting for room, a home, a connection or its turn.
	ErrNotDelivered = errors.New(protocol.CodeNotDelivered.String())
	// ErrNoStanding: the node that hosts the shard may not host at present, since it does
	// not hear from enough others, and the context ended before the message could be
	// accepted.
	ErrNoStanding = errors.New(protocol.CodeNoStanding.String())
	// ErrExpired: the home of the shard says that the deadline had passed before the
	// entity got to the message.
	ErrExpired = errors.New(protocol.CodeExpired.String())
	// ErrEntityFailed: the entity could not be started, its Receive failed, it rests
	// after such failures, or it gave no usable reply. The detail of the MessageError
	// says why, in the entity's own words.
	ErrEntityFailed = errors.New(protocol.CodeEntityFailed.String())
	// ErrUnknownOutcome: the message had gone into a connection, or the entity had begun
	// it, and its host is gone, or no answer came in time.
	ErrUnknownOutcome = errors.New(protocol.CodeUnknownOutcome.String())
	// ErrAskedItself: an entity asked itself, with a context of [Context.Context], while
	// it handled a message: the answer could come only after it has returned. The error
	// wraps ErrNotDelivered as well. Call the code directly, or send the message with Tell.
	ErrAskedItself = errors.New("an entity asked itself, and would wait for itself: call its code directly, or use Tell")
	// ErrInvalid: the id, the message or the type of the reply is not acceptable;
	// the error says why.
	ErrInvalid = errors.New("invalid")
	// ErrNoRoom: a kind does not run, since with it there would be more shards than max-shards in all kinds of this
	// node, or more shards or kinds than the coordinator keeps. The error of [Start] wraps it, and so does a
	// [SettingsError].
	ErrNoRoom = errors.New("there is no room for a further kind of this number of shards")
	// ErrUndrained is the error of [System.Drain] when the node was told to host again meanwhile.
	ErrUndrained = errors.New("sharding: the node was told to host again")
	// ErrClosed: the node has ended. The error of a message wraps ErrNotDelivered as well.
	ErrClosed = errors.New("sharding: closed")
)

// errorOf returns the error that goes with a code, nil for [protocol.CodeOK]. A code of
// a later version says nothing about what became of the message.
func errorOf(c protocol.Code) error {
	switch c {
	case protocol.CodeOK:
		return nil
	case protocol.CodeUnreachable:
		return ErrUnreachable
	case protocol.CodeOverloaded:
		return ErrOverloaded
	case protocol.CodeNotDelivered:
		return ErrNotDelivered
	case protocol.CodeUnknownOutcome:
		return ErrUnknownOutcome
	case protocol.CodeEntityFailed:
		return ErrEntityFailed
	case protocol.CodeNoStanding:
		return ErrNoStanding
	case protocol.CodeExpired:
		return ErrExpired
	default:
		return fmt.Errorf("code %d: %w", uint8(c), ErrUnknownOutcome)
	}
}

// verdictOf says what went wrong with a message, in a word for an attribute and in a text
// for people; both are empty when nothing went wrong. An error that wraps several
// sentinels has the word of the most specific.
func verdictOf(reply *protocol.Reply, err error) (fault, text string) {
	switch {
	case err != nil:
		return wordOfError(err), err.Error()
	case reply != nil && reply.Code != protocol.CodeOK:
		return telemetry.Word(reply.Code), reply.Detail
	default:
		return "", ""
	}
}

func wordOfError(err error) string {
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		if code != protocol.CodeNotDelivered && errors.Is(err, errorOf(code)) {
			return telemetry.Word(code)
		}
	}
	if _, ok := errors.AsType[*SettingsError](err); ok {
		return "settings"
	}
	if errors.Is(err, ErrInvalid) {
		return "invalid"
	}
	return telemetry.Word(protocol.CodeNotDelivered)
}

// SettingsError says that the coordinator refused a kind of this node because
// one of its settings differs from that of the other nodes, or because it has no room for the kind ([ErrNoRoom]).
// All nodes must run a kind with equal settings: otherwise an entity could live in two shards.
type SettingsError struct {
	// Kind is the name of the kind.
	Kind string
	// Setting names the setting: "number-of-shards", "hash", "codec", "role", "hosting", "on-stuck" or
	// "handoff-timeout"; or the bound: "max-shards" or "kinds".
	Setting string
	// Coordinator is the value of the other nodes, Region that of this node; of a bound, what the coordinator keeps
	// at most, and what this node wants it to keep.
	Coordinator, Region string
}

// isBound reports whether the kind was refused for want of room.
func (e *SettingsError) isBound() bool {
	return e.Setting == control.MaxShardsSetting || e.Setting == control.MaxKindsSetting
}

// Is reports that a kind that was refused for want of room is [ErrNoRoom].
func (e *SettingsError) Is(target error) bool { return target == ErrNoRoom && e.isBound() }

// Error names the setting and both values.
func (e *SettingsError) Error() string {
	if e.isBound() {
		return fmt.Sprintf("kind %q: %v: %s: the coordinator keeps %q, and this node wants %q", e.Kind, ErrNoRoom, e.Setting, e.Coordinator, e.Region)
	}
	return fmt.Sprintf("kind %q: %s is %q here, but %q at the coordinator: all nodes need the same value",
		e.Kind, e.Setting, e.Region, e.Coordinator)
}

// UnreachableError says why the home of a shard takes no messages. It wraps
// [ErrUnreachable].
type UnreachableError struct {
	// Home is the node that hosts the shard.
	Home gossip.NodeID
	// Since is when the home last acknowledged a message of the shard to this node, or
	// when the first message began to wait.
	Since time.Time
	// Observers are the members that do not hear from the home.
	Observers []gossip.NodeID
}

// Error names the home, the time and the observers.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%v: %s, silent since %s, not heard by %v", ErrUnreachable, e.Home, e.Since.UTC().Format(time.RFC3339), e.Observers)
}

// Unwrap returns [ErrUnreachable].
func (e *UnreachableError) Unwrap() error { return ErrUnreachable }

// NoHostError says that a message waited for a home that its shard could not get: no member has the role to
// which the kind is bound, nor one that joins. The message waits for a node that comes until its context ends; a
// [MessageError] wraps this error then beside [ErrNotDelivered].
type NoHostError struct {
	// Kind is the name of the kind, Role the role of its hosts.
	Kind, Role string
}

// Error names the role.
func (e *NoHostError) Error() string {
	return protocol.NoRole(e.Role) + ", and the kind is bound to it: start one"
}

// MessageError is the error of one message. It wraps one or several of the sentinels of
// this file.
type MessageError struct {
	Kind   string
	Entity string
	Detail string // More about the cause, for people; may be empty.
	Err    error
}

// Error names the kind, the entity and the cause.
func (e *MessageError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("sharding: %s %q: %v", e.Kind, e.Entity, e.Err)
	}
	return fmt.Sprintf("sharding: %s %q: %v: %s", e.Kind, e.Entity, e.Err, e.Detail)
}

// Is reports that an error is [ErrNotDelivered] which says in other words that nobody has handled the message: so
// one question tells whether it is safe to send the message again.
func (e *MessageError) Is(target error) bool {
	wraps := func(err error) bool { return errors.Is(e.Err, err) }
	return target == ErrNotDelivered && slices.ContainsFunc([]error{ErrUnreachable, ErrOverloaded, ErrNoStanding, ErrExpired}, wraps) &&
		!wraps(ErrUnknownOutcome) && !wraps(ErrEntityFailed) // Of these the others are the cause.
}

// Unwrap returns the cause.
func (e *MessageError) Unwrap() error { return e.Err }

// several is an error with several causes, and with a text of one line: logs have a line
// for each error.
type several []error

// severalOf joins the errors that are not nil; a single one is returned as it is.
func severalOf(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return several(errs)
	}
}

// Error names all causes in one line, also a cause of the program with several lines.
func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	}
	return strings.Join(texts, ": ")
}

// Unwrap returns the causes.
func (s several) Unwrap() []error { return s }

// MoveError is the error of [System.Move] when the shard does not move.
type MoveError struct {
	Kind   string
	Shard  int
	To     string // The node as it was named.
	Reason string // Why, in words.
}

// Error names the shard and the node, and says why.
func (e *MoveError) Error() string {
	return fmt.Sprintf("sharding: shard %d of %s does not move to %s: %s", e.Shard, protocol.Clip(e.Kind), protocol.Clip(e.To), e.Reason)
}

// noKind is the error of a question about a kind that this node does not run.
func noKind(kind string) error {
	return fmt.Errorf("sharding: kind %q does not run on this node: %w", protocol.Clip(kind), ErrInvalid)
}
