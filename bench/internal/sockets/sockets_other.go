// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sockets

// Counted tells whether this system counts packets by connection.
const Counted = false

// Now returns an empty snapshot.
func Now() (Snapshot, error) { return Snapshot{}, nil }
