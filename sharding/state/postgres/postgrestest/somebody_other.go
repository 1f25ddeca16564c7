// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package postgrestest

import "syscall"

// crash ends a server without that it shuts down.
const crash = syscall.SIGKILL

// somebody runs the process as whoever runs this one.
func somebody(string) (*syscall.SysProcAttr, error) { return nil, nil }
