// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package states

import "syscall"

// somebody runs the process as whoever runs this one.
func somebody(string) (*syscall.SysProcAttr, error) { return nil, nil }
