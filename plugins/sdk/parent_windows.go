// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"os"
)

// awaitHost returns nil when the host has ended. The id of a parent never changes
// here, but a process that is no child can be waited for. The context is not
// heeded: the process ends soon after it.
func awaitHost(_ context.Context, host int) error {
	p, err := os.FindProcess(host)
	if err != nil {
		// There is no such process any more.
		return nil
	}
	_, err = p.Wait()
	return err
}

// endGroup does nothing: there are no groups here.
func endGroup() {}
