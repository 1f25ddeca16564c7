// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// logFile returns the name of a file about a run: its events, or how long it took.
func logFile(root, name, suffix string) string {
	return filepath.Join(root, ".tmp", "log", strings.ReplaceAll(name, "/", "-")+suffix)
}

// keepDuration notes how long a run took, for [Last]. Nothing is decided by it.
func keepDuration(root, name string, took time.Duration) error {
	return os.WriteFile(logFile(root, name, ".took"), []byte(strconv.Itoa(int(took.Seconds()))), 0o600)
}

// Last tells how long the lane took here when it last ran, as a whole or in parts.
func Last(root string, l Lane) string {
	read := func(name string) (int, bool) {
		text, err := os.ReadFile(logFile(root, name, ".took"))
		seconds, bad := strconv.Atoi(string(text))
		return seconds, err == nil && bad == nil
	}
	if whole, ok := read(l.Name); ok {
		return fmt.Sprintf("%d s", whole)
	}
	sum, parts := 0, 0
	for part := range l.Parts {
		if seconds, ok := read(Unit{Lane: l, Part: part + 1}.Name()); ok {
			sum, parts = sum+seconds, parts+1
		}
	}
	if parts == 0 {
		return "never"
	}
	return fmt.Sprintf("%d s, %d of %d parts", sum, parts, l.Parts)
}
