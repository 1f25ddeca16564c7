// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
)

// First the sentinels, with a table of what each error says about the data; then the error
// types, which add the key and the nodes; then how the errors of the table become those.

// What an error says about the data, and what to do.
//
//	ErrNotFound         nothing was read: there is no value
//	ErrDeleted          nothing has changed: the key is deleted, and may be used again
//	                    when the tombstone was collected
//	*TypeError          nothing has changed: the key belongs to another type
//	*FunctionError      nothing has changed: the update function failed
//	*NotStoredError     nothing is stored anywhere: a retry is safe, the cause says when
//	*UnconfirmedError   stored, or perhaps stored, and on its way to all: a retry of an
//	                    update that counts would count twice
//	*NoQuorumError      as UnconfirmedError; the replicas that the level needs are gone
//	*HomesLostError     as NoQuorumError, for the keys of a bucket that has lost its replicas
//	*RefusedError       as UnconfirmedError; a replica did not take the value
//	*UnansweredError    nothing was read: too few replicas have answered
var (
	// ErrNotFound is returned, wrapped, by Get for a key without a value.
	ErrNotFound = errors.New("there is no value")
	// ErrDeleted is returned, wrapped, for a key that was deleted lately.
	ErrDeleted = errors.New("the key is deleted, it can be used again when all replicas have collected the tombstone")
	// ErrKey is wrapped by the error about a key that is empty, too long, not UTF-8, or has
	// characters that do not print.
	ErrKey = errors.New("invalid key")
	// ErrConsistency is wrapped by the error about a level that asks for no replica.
	ErrConsistency = errors.New("invalid consistency")
	// ErrUnknownType is wrapped by the error about a type that the replicator was not told
	// of.
	ErrUnknownType = errors.New("the type is not known to the replicator: name it with WithTypes, on all nodes")
	// ErrTooLarge is wrapped by the error about a value over ddata.max-value-bytes.
	ErrTooLarge = errors.New("the value is too large: split it over several keys, or raise ddata.max-value-bytes on all nodes")
	// ErrFull is wrapped by the error about an update beyond ddata.max-bytes.
	ErrFull = errors.New("the data of this node has reached ddata.max-bytes: delete keys, or raise the bound")
	// ErrOverloaded is wrapped by the error about an operation that found too many waiting.
	ErrOverloaded = errors.New("too many operations wait on this node: try later, or fewer at a time")
	// ErrNotHere is returned, wrapped, by a subscription on a node that does not hold the
	// key.
	ErrNotHere = errors.New("this node does not hold the key: subscribe on a node that does, or read it with Get")
	// ErrNoStore is wrapped by the error of [New] when keys are to be durable and the program
	// has not given a store.
	ErrNoStore = errors.New("keys are configured as durable, but no store is linked into this program: import github.com/quorate/quorate/ddata/durable, and start with the option WithStore(durable.OpenIn)")
	// ErrClosed is returned, wrapped, when the node has ended.
	ErrClosed = errors.New("ddata: closed")
)

// TypeError says that the key holds a value of another type.
type TypeError struct {
	Key  string
	Have string // The name of the type that is there.
	Want string // The name of the type that was asked for.
}

// Error names the key and both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("ddata: key %q holds a %s, not a %s: nothing has changed, use another key", e.Key, e.Have, e.Want)
}

// FunctionError says that an update function returned an error, panicked, or returned no
// value of the type, or one that cannot be encoded. Nothing has changed.
type FunctionError struct {
	Key string
	Err error // The error of the function or of the encoding, or the panic.
}

// Error names the key and what the function said.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("ddata: key %q: nothing has changed: %v", e.Key, e.Err)
}

// Unwrap returns the error of the function.
func (e *FunctionError) Unwrap() error { return e.Err }

// NotStoredError says that nothing is stored on any node, so that a retry is safe.
type NotStoredError struct {
	Key string
	Err error // Why: mostly an error of this package, or that of the context.
}

// Error names the key and the cause.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("ddata: key %q: nothing is stored anywhere: %v", e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *NotStoredError) Unwrap() error { return e.Err }

// UnconfirmedError says that a write is stored on some nodes, and that fewer than the level
// asks for have confirmed it in time. The write is not taken back: it goes on to all
// replicas, and is lost only if every node that has it fails before it got further.
type UnconfirmedError struct {
	Key string
	// Answered are the nodes that hold the write. Empty means that none is known to: the
	// node that was asked to write has not answered.
	Answered []string
	// Missing are the replicas that have not answered: their nodes, or their numbers if
	// the nodes are not known.
	Missing []string
	Err     error // Mostly the error of the context; may be nil.
}

// Error says where the write is.
func (e *UnconfirmedError) Error() string {
	return "ddata: " + stored(e.Key, e.Answered, e.Missing) + because(e.Err)
}

// Unwrap returns the cause.
func (e *UnconfirmedError) Unwrap() error { return e.Err }

// NoQuorumError says that so many replicas are gone that the level cannot be reached. What
// was to be written is stored where it says, and spreads when replicas come back.
type NoQuorumError struct {
	Key      string
	Answered []string
	Missing  []string      // As those of an [UnconfirmedError].
	Since    time.Duration // For how long the operation has waited for the missing replicas.
	// Then says what will or must happen, for people. It names an operator only where nothing else helps.
	Then string
}

// Error names those that are missing, and what will or must happen.
func (e *NoQuorumError) Error() string {
	return fmt.Sprintf("ddata: key %q: too few replicas are left, for %v: %s have answered, missing are %s: %s",
		e.Key, e.Since, list(e.Answered), list(e.Missing), e.Then)
}

// HomesLostError says that the key belongs to a bucket that has lost so many of its replicas for
// good that it was left behind when the others went on. It recovers when they come back with
// their disks, or when an operator accepts the loss ([Replicator.AcceptLoss]). It is a
// [NoQuorumError] too.
type HomesLostError struct {
	NoQuorumError // Missing are the replicas that are gone.
}

// Error names those that are gone.
func (e *HomesLostError) Error() string {
	return fmt.Sprintf("ddata: key %q: the replicas that held it are gone: %s; %s have answered: bring them back with their disks, or let an operator accept the loss of what they held",
		e.Key, list(e.Missing), list(e.Answered))
}

// Unwrap returns the error as one about a missing majority.
func (e *HomesLostError) Unwrap() error { return &e.NoQuorumError }

// RefusedError says that a replica which the level needs did not take the value, that the
// values of two replicas do not go together, or that this node cannot decode what another
// one holds. It is returned as soon as those that have not refused are too few for the level.
type RefusedError struct {
	Key string
	// Node is the node that has refused, "" for this one.
	Node     string
	Reason   string
	Answered []string // The nodes that hold the write.
	Err      error    // The cause if this node has refused, else nil.
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Error names the node and the reason.
func (e *RefusedError) Error() string {
	node := "this node"
	if e.Node != "" {
		node = e.Node
	}
	text := fmt.Sprintf("ddata: key %q: %s refused: %s", e.Key, node, e.Reason)
	if len(e.Answered) == 0 {
		return text
	}
	return text + "; stored on " + list(e.Answered)
}

// UnansweredError says that too few replicas have answered a read in time.
type UnansweredError struct {
	Key      string
	Answered []string
	Missing  []string
	Err      error // Mostly the error of the context.
}

// Error names those that are missing.
func (e *UnansweredError) Error() string {
	return fmt.Sprintf("ddata: key %q: too few replicas have answered: %s have, missing are %s%s", e.Key, list(e.Answered), list(e.Missing), because(e.Err))
}

// Unwrap returns the cause.
func (e *UnansweredError) Unwrap() error { return e.Err }

// stored says where a write is.
func stored(key string, answered, missing []string) string {
	if len(answered) == 0 {
		return fmt.Sprintf("key %q: perhaps stored: the node that was asked has not answered", key)
	}
	return fmt.Sprintf("key %q: stored on %s, not confirmed by %s", key, list(answered), list(missing))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// ofKey adds the key to a sentinel.
func ofKey(key string, err error) error { return fmt.Errorf("ddata: key %q: %w", key, err) }

// tableError returns the error of a local change. Nothing has changed.
func tableError(key string, err error) error {
	if typed, ok := errors.AsType[*table.TypeError](err); ok {
		return &TypeError{Key: key, Have: typed.Have, Want: typed.Got}
	}
	if typed, ok := errors.AsType[*TypeError](err); ok {
		return typed
	}
	switch {
	case errors.Is(err, table.ErrDeleted):
		return ofKey(key, ErrDeleted)
	case errors.Is(err, table.ErrFunction):
		return &FunctionError{Key: key, Err: err}
	default:
		return &NotStoredError{Key: key, Err: publicly(err)}
	}
}

// publicly puts the sentinel of this package before an error of the table that has one.
func publicly(err error) error {
	switch {
	case errors.Is(err, table.ErrKey):
		return fmt.Errorf("%w: %w", ErrKey, err)
	case errors.Is(err, table.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, table.ErrFull):
		return fmt.Errorf("%w: %w", ErrFull, err)
	default:
		return err
	}
}

// outcome is how an operation has ended, with nodes in place of replicas.
type outcome struct {
	protocol.Done

	answered []string
	missing  []string
	err      error // Why nothing more is waited for: that of the context, or ErrClosed.
}

// noQuorum is the error when too few replicas are left.
func (o *outcome) noQuorum(key string) error {
	err := NoQuorumError{Key: key, Answered: o.answered, Missing: o.missing, Since: o.Since, Then: textOfFate(o.Recovery)}
	if o.Verdict == protocol.HomesLost {
		return &HomesLostError{err}
	}
	return &err
}

// readError returns the error of a read, nil if it has an answer.
func (o *outcome) readError(key string) error {
	switch o.Verdict {
	case protocol.Confirmed:
		return nil
	case protocol.NoQuorum, protocol.HomesLost:
		return o.noQuorum(key)
	case protocol.Refused:
		err := o.refused(key)
		if not, ok := errors.AsType[*NotStoredError](err); ok { // A read stores nothing.
			return &RefusedError{Key: key, Reason: not.Err.Error(), Answered: o.answered, Err: not.Err}
		}
		return err
	case protocol.Overloaded:
		return ofKey(key, ErrOverloaded)
	case protocol.Gone:
		return ofKey(key, ErrClosed)
	default:
		return &UnansweredError{Key: key, Answered: o.answered, Missing: o.missing, Err: o.err}
	}
}

// writeError returns the error of a change that is in the table of a replica, nil if it
// was confirmed.
func (o *outcome) writeError(key string) error {
	why := o.err
	switch o.Verdict {
	case protocol.Confirmed:
		return nil
	case protocol.NoQuorum, protocol.HomesLost:
		return o.noQuorum(key)
	case protocol.Refused:
		return o.refused(key)
	case protocol.WasDeleted:
		return ofKey(key, ErrDeleted)
	case protocol.Overloaded:
		why = ErrOverloaded
	case protocol.Gone:
		why = ErrClosed
	default: // Unconfirmed; others begin the operation again.
	}
	return &UnconfirmedError{Key: key, Answered: o.answered, Missing: o.missing, Err: why}
}

// refused returns the error of a refusal: that of a replica, or of this node's own table.
func (o *outcome) refused(key string) error {
	if len(o.Refusals) > 0 {
		r := o.Refusals[0]
		return &RefusedError{Key: key, Node: r.Node.String(), Reason: r.Reason, Answered: o.answered}
	}
	if typed, ok := errors.AsType[*table.TypeError](o.Err); ok {
		return &TypeError{Key: key, Have: typed.Have, Want: typed.Got}
	}
	if o.Err != nil {
		return &NotStoredError{Key: key, Err: publicly(o.Err)}
	}
	return &RefusedError{Key: key, Reason: "no reason was given", Answered: o.answered}
}
