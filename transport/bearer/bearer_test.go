// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bearer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/transport/bearer"
)

// A file without a token is of no use to who starts, and lets nobody in under a program that runs.
func TestAFileWithoutATokenIsRefusedAtAStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	require.ErrorIs(t, bearer.Check(path), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("# nobody yet\n"), 0o600))
	require.ErrorContains(t, bearer.Check(path), path+" has no token, so that nobody is let in")
	tokens, err := bearer.Read(path)
	require.NoError(t, err)
	_, err = tokens.Owner("secret", time.Now())
	require.ErrorIs(t, err, bearer.ErrUnknown)
	require.NoError(t, os.WriteFile(path, []byte("alice never "+strings.Repeat("ab", 32)+"\n"), 0o600))
	require.NoError(t, bearer.Check(path))
}
