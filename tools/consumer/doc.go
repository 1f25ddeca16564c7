// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package consumer has the tests that see the modules as their users do. A release of the
// work tree as it stands is made in a clone, with commits and tags like any other; the
// content of the tags is fetched through a module proxy, outside the workspace. The tests
// find faults that no build inside the repository can: a file that lies outside its
// module, a requirement that only the workspace satisfies, a replace that survives, a
// leaf that has grown a dependency, a program that has grown fat.
package consumer
