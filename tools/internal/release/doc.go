// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package release makes what the tags of a version contain, and checks it.
//
// On the main branch each module replaces its siblings by their directories, so that a
// change over several modules is one commit. A module that is published with replaces can
// be imported, but its programs cannot be installed, and a requirement of a version that
// was never published cannot be satisfied. So a release is two commits in a clone of the
// repository. The first one is for the main branch: the changelogs get the version, and
// requirements of siblings are raised to it. The second one is for the tags: the replaces
// are dropped, and each go.sum gets the hashes of the siblings. These are published
// nowhere yet: the modules are packed in the order in which they need each other, into a
// directory that the go command takes for a proxy.
//
//	tree, err := release.Load(root, without) // modules, in the order of release
//	err = tree.Check(ctx, version)           // what forbids the release
//	r, err := release.Cut(ctx, plan)         // clone, commits, tags
//	err = r.Verify(ctx, proxy)               // what the tags hold, packed as go would
//
// The working repository is only read. All modules are released together, with
// one version: a user who raises one of them has no table of combinations to
// consult, and no combination is published that was not tested.
package release
