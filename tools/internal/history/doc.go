// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package history checks the commits of the repository: that their subjects fit on a line, and that a commit is one
// idea, or says why it is large.
package history
