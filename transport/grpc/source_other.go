// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package grpc

import "syscall"

// lateSourcePort does nothing: only Linux chooses the port of a bound socket
// late.
func lateSourcePort(_, _ string, _ syscall.RawConn) error { return nil }
