// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package management

import "net"

// peer cannot name the user on this system: the mode of the socket permits the user of the
// node and root.
func peer(*net.UnixConn) (string, error) { return "the user of the node, or root", nil }
