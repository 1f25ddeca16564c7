// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package grpc

import (
	"net"
	"time"
)

// limitUnacknowledged does nothing: how long bytes may stay unacknowledged is up to the
// system.
func limitUnacknowledged(net.Conn, time.Duration) error { return nil }

// acknowledge does nothing: when bytes are acknowledged is up to the system.
func acknowledge(net.Conn) {}
