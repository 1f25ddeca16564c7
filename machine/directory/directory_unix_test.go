// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package directory_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/directory"
)

func TestErrorsThatSayThatThereIsNoRoom(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		require.True(t, directory.Full(&fs.PathError{Op: "write", Path: "log", Err: err}), err)
	}
}
