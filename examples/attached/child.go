// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package attached

import (
	"io"
	"log/slog"
	"os"
)

// EndWithParent is what the program of a node does for its flag -attached: from now on it ends at once, as if
// killed, when its standard input ends. The exit status is 1.
func EndWithParent() {
	// Ends with the process.
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		slog.Error("the parent has ended", "error", err)
		os.Exit(1)
	}()
}
