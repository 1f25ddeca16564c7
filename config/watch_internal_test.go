// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// Where no changes are reported, the files are polled.
func TestFilesAreLookedAtWithoutReports(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("a: {}\n"), 0o600))
	file, err := Loader{}.Load(path)
	require.NoError(t, err)
	reports := make(chan *File, 10)
	w := watch(file, func(f *File, _ error) { reports <- f }, nil, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(path, []byte("b: {}\n"), 0o600))
	f := patience.Receive(t, reports, "a report")
	require.True(t, f == nil || f.Has("b"), "empty, if it was seen between truncation and writing")
	require.NoError(t, w.Close())
}
