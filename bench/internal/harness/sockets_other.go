// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

// SocketsCounted tells whether this system counts packets by connection.
const SocketsCounted = false

// SocketsNow returns an empty snapshot.
func SocketsNow() (Snapshot, error) { return Snapshot{}, nil }
