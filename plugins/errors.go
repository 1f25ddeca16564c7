// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The sentinels come first, then the error types that carry them: a plugin that cannot be
// used ([Error]), a call without an answer ([CallError]), refused settings
// ([SettingErrors]).

// These say why a plugin cannot be used. The errors of package host match them by
// [errors.Is].
var (
	// ErrChecksum: the file is not the one whose checksum is configured.
	ErrChecksum = errors.New("checksum differs")
	// ErrNotPlugin: the file cannot be run, or what runs is no plugin: it ended, or its
	// first line is no handshake.
	ErrNotPlugin = errors.New("not a plugin")
	// ErrVersion: host and plugin have no version of the contract in common.
	ErrVersion = errors.New("no common version of the contract")
	// ErrStartTimeout: the plugin was not ready within start-timeout.
	ErrStartTimeout = errors.New("start timed out")
	// ErrPolicy: the plugin is for another policy than the one that is configured or
	// asked for.
	ErrPolicy = errors.New("wrong policy")
	// ErrClass: the plugin promises something else than when it was opened.
	ErrClass = errors.New("class has changed")
	// ErrSettings: the plugin refuses its settings. There is a [SettingErrors] in
	// the chain.
	ErrSettings = errors.New("settings refused")
	// ErrClosed: the plugin was closed by its owner.
	ErrClosed = errors.New("closed")
)

// These say why a call to a plugin has no answer. The errors of strategies that a plugin
// serves match them by [errors.Is]. An error about the deadline or the end of the
// caller's context matches [context.DeadlineExceeded] or [context.Canceled] instead.
var (
	// ErrUnavailable: there is no process to ask. Package host adds an
	// [*UnavailableError].
	ErrUnavailable = errors.New("unavailable")
	// ErrStrategy: the strategy cannot decide now, and says why. The process is
	// healthy.
	ErrStrategy = errors.New("strategy has no answer")
	// ErrFault: a fault in the plugin, such as a panic. The process lives.
	ErrFault = errors.New("fault in the plugin")
	// ErrAnswer: the answer breaks the contract, in its form or in its content. No part
	// of it is used.
	ErrAnswer = errors.New("answer breaks the contract")
	// ErrRequest: the plugin holds that the request breaks the contract.
	ErrRequest = errors.New("request refused")
	// ErrLimit: the request or the answer is too large, the plugin has too many calls in
	// hand, or its process has more than its configuration permits.
	ErrLimit = errors.New("limit exceeded")
)

// Error says why a plugin cannot be used, with everything that an operator needs in one
// message: which plugin, which file, what is wrong, and what to do.
type Error struct {
	// Plugin is the plugin's name in the cluster's file.
	Plugin string
	// Path is the plugin's executable; may be empty.
	Path string
	// Err is one of the sentinels of this package.
	Err error
	// Cause is the detail of what is wrong; may be nil.
	Cause error
	// Cure says what to do; may be empty.
	Cure string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %q", e.Plugin)
	if e.Path != "" {
		fmt.Fprintf(&b, " (%s)", e.Path)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Cure != "" {
		fmt.Fprintf(&b, "; %s", e.Cure)
	}
	return b.String()
}

// Unwrap returns Err and, if there is one, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// CallError says why a call to a plugin has no answer.
type CallError struct {
	// Plugin is the name of the plugin.
	Plugin string
	// Call is the method: "describe", "configure", "decide", "allocate" or "rebalance".
	Call string
	// Err is one of the sentinels of this package, [context.DeadlineExceeded] or
	// [context.Canceled].
	Err error
	// Cause is the detail: an error of package downing or allocation when an answer fails
	// their checks, otherwise the text of the plugin, at most 1,024 bytes. May be nil.
	Cause error
}

// Error implements error.
func (e *CallError) Error() string {
	s := fmt.Sprintf("plugin %q: %s: %v", e.Plugin, e.Call, e.Err)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns Err and, if there is one, Cause.
func (e *CallError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// UnavailableError says that a plugin has no process that could answer. It matches
// [ErrUnavailable].
type UnavailableError struct {
	// Plugin is the plugin's name in the cluster's file.
	Plugin string
	// Since is when the plugin became unavailable.
	Since time.Time
	// Why is the reason; may be nil.
	Why error
	// NextTry is when the plugin is started again; zero if it is not started by itself,
	// or is being started now.
	NextTry time.Time
}

// Error implements error.
func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("plugin %q: unavailable since %s", e.Plugin, e.Since.Format(time.RFC3339))
	if e.Why != nil {
		s += ": " + e.Why.Error()
	}
	if !e.NextTry.IsZero() {
		s += "; next try at " + e.NextTry.Format(time.RFC3339)
	}
	return s
}

// Unwrap returns [ErrUnavailable] and, if there is one, Why.
func (e *UnavailableError) Unwrap() []error {
	if e.Why == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Why}
}

// SettingError is one fault of the settings of a plugin.
type SettingError struct {
	// Key is the key of the setting with dots between levels; empty if the fault is of no
	// single key.
	Key string
	// Reason says what is wrong, for an operator.
	Reason string
}

// Error describes the fault, beginning with its key.
func (e SettingError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return e.Key + ": " + e.Reason
}

// Field returns the key, as the faults of configurations do.
func (e SettingError) Field() string { return e.Key }

// SettingErrors are all faults of the settings of a plugin, at least one. They match
// [ErrSettings].
type SettingErrors []SettingError

// Error lists the faults in one line.
func (e SettingErrors) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "; ")
}

// Is reports whether target is [ErrSettings].
func (e SettingErrors) Is(target error) bool { return target == ErrSettings }

// Unwrap returns the faults.
func (e SettingErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}
