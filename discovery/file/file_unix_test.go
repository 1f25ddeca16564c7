// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package file_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/discovery"
)

// Opening a pipe waits for its writer, which may never come.
func TestPipeIsRefusedAtOnce(t *testing.T) {
	config := settings(t)
	require.NoError(t, syscall.Mkfifo(config.Path, 0o600))
	_, err := newFile(t, config).Lookup(t.Context(), discovery.Query{})
	require.ErrorContains(t, err, "regular file")
}
