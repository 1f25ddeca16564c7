// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build java && !windows

package plugintest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJavaExamplePasses(t *testing.T) {
	path := built(t, "java", "hosts")
	file := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(file, []byte("# contact points\n10.0.0.1:7946\n[fd00::1]:7946\nnode-three # without a port\n"), 0o600))
	tried(t, path, "file: "+file+"\n")
}
