// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package release says which modules get which versions, makes what their tags contain, and checks it.
//
// A module gets a version when it has changed since its last one, what it requires of siblings left out: by how much is
// said by its changelog, and checked against its interface. It requires a sibling at the lowest version that works;
// what it needs and is not released yet is pending, and then both are in the next release. Whoever requires a module
// that takes something away follows it.
//
// On the main branch each module replaces its siblings by their directories, so that a
// change over several modules is one commit. A module that is published with replaces can
// be imported, but its programs cannot be installed, and a requirement of a version that
// was never published cannot be satisfied. So a release is two commits in a clone of the
// repository. The first one is for the main branch: the changelogs get the versions, and
// pending requirements are raised. The second one is for the tags: the replaces
// are dropped, and each go.sum gets the hashes of the siblings. These are published
// nowhere yet: the modules are packed in the order in which they need each other, into a
// directory that the go command takes for a proxy.
//
//	tree, err := release.Load(root, without) // modules, in the order of release
//	next, err := tree.Check(ctx)             // which get which versions, and what forbids it
//	err = tree.Against(ctx, module, scratch) // whether its requirements are the lowest that work
//	r, err := release.Cut(ctx, plan)         // clone, commits, tags
//	err = r.Verify(ctx, proxy)               // what the tags hold, packed as go would
//
// The working repository is only read.
package release
