// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package contract describes what a policy is made of, so that the code that runs,
// serves, tests and tries plugins treats all policies alike.
//
//	                     ┌─ Client ───> host, sdktest    a strategy in another process
//	one policy ── Of[T] ───┼─ Register ─> sdk              the services that ask a strategy
//	                     ├─ Class ────> sdk              what a strategy promises
//	                     └─ Try ──────> quorate plugin check
//
// A policy is a package under internal/policies, and a row of the table there.
//
// # Lifecycle and concurrency
//
// Descriptions are plain values that never change. Their functions may be called from
// any goroutine.
package contract
