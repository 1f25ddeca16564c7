// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Check returns what becomes of each module in the next release of the commit that is checked out, and everything that
// forbids the release: what [Tree.NextVersions] finds, uncommitted files, and a root whose changelog says nothing.
func (t *Tree) Check(ctx context.Context) ([]*NextVersion, error) {
	var faults []error
	changed, err := git(ctx, t.Root, nil, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		faults = append(faults, fmt.Errorf("release: the work tree differs from its commit, and a tag holds a commit:\n%s", changed))
	}
	if _, err := os.ReadFile(filepath.Join(t.Root, changelogName)); err != nil {
		faults = append(faults, fmt.Errorf("release: %w", err))
	}
	all, err := t.NextVersions(ctx)
	return all, errors.Join(append(faults, err)...)
}
