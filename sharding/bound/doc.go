// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package bound has contexts for work that may go on only while something holds, such as the standing of its node or a
// lease, which ends by the clock.
//
// A context of package context ends when a goroutine ends it. After a freeze of the process, any other goroutine may
// run before that one, and sees a context that is open though the standing has passed and a successor runs. A
// context of this package looks at what it is bound to whenever it is looked at. The contexts that entities, singletons
// and daemons get are such; what is derived from them looks as well if it is derived by this package:
//
//	within, cancel := bound.WithTimeout(ctx, time.Second) // In place of context.WithTimeout.
//	defer cancel()
//
// # Life cycle
//
//	Err, Done ──> ended? ──> parent ended? ──> does it hold, by the clock? ──no──> ends, for good
//
// # Guarantees
//
//   - What Err and Done return is true by the clock of that call, whoever has run meanwhile.
//   - A context that has ended stays so, also when what it was bound to holds again.
//   - Done is closed whenever Err is not nil, and at the latest when whoever ends the context has run.
//   - Deadline is that of the parent, if any, or of [WithTimeout]: what a context is bound to may hold for longer
//     than is proven at present, so that its end is no deadline.
//
// # Limits
//
// Between a look and what follows it the process may freeze. And a context that the standard library derives, by
// context.WithTimeout for example, does not look: it ends when the process runs, or when somebody looks at its parent.
// One with a value more, by context.WithValue, does.
//
// # Concurrency
//
// All contexts may be used by several goroutines at a time, as those of package context.
package bound
