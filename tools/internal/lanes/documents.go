// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Documents are the files of the tree that are no Go: pages, manifests, files of the tests of another module. The go
// command does not see that one of them has changed, so [Tests] has the packages that read them tested anew.
type Documents struct{ root, now string }

// Documents looks at the documents as they are now.
func (w *Workspace) Documents(ctx context.Context) (Documents, error) {
	names, err := w.Git(ctx, "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return Documents{}, err
	}
	h := sha256.New()
	for _, name := range names {
		if strings.HasSuffix(name, ".go") {
			continue
		}
		// One that is gone is not in the hash.
		if info, err := os.Lstat(filepath.Join(w.Root, filepath.FromSlash(name))); err == nil {
			fmt.Fprintf(h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return Documents{w.Root, fmt.Sprintf("%x", h.Sum(nil))}, nil
}

// Changed reports whether they have changed since the tests that read them passed here.
func (d Documents) Changed() bool {
	text, err := os.ReadFile(logFile(d.root, "documents", ".sum"))
	return err != nil || string(text) != d.now
}

// Passed notes that the tests that read them have passed.
func (d Documents) Passed() error {
	return os.WriteFile(logFile(d.root, "documents", ".sum"), []byte(d.now), 0o600)
}
