// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// A process that another has forked ends with the group of both, also on systems where
// nothing else finds it. Both hold a pipe, which ends when the last of them has ended.
func TestAGroupEndsTogether(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sleep 60 & echo forked; wait")
	cmd.Stdout, cmd.SysProcAttr = write, attributes(nil)
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	patience.Bound(t, read)
	out := bufio.NewReader(read)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "forked\n", line)
	killGroup(cmd.Process)
	_, err = out.ReadByte()
	require.ErrorIs(t, err, io.EOF, "what was forked lives")
	require.NoError(t, read.Close())
	require.Error(t, cmd.Wait())
}
