// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package consumer has the tests that see the modules as their users do: packed,
// fetched through a module proxy, outside the workspace, without replaces. They
// find what no build inside the repository can: a file that lies outside its
// module, a requirement that only the workspace satisfies, a leaf that has grown
// a dependency.
package consumer
