// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

import "net"

// SocketsCounted tells whether this system counts packets by connection.
const SocketsCounted = false

// SocketsNow returns an empty snapshot.
func SocketsNow() (Snapshot, error) { return Snapshot{}, nil }

// Exchanged knows nothing.
func Exchanged(net.Conn) (sent, received Traffic, ok bool) { return sent, received, false }
