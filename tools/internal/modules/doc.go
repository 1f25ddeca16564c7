// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package modules makes a module of this repository, and derives what others say of it: the requirements of siblings
// and their replaces in each go.mod come from the imports of its files, and the last column of the table in
// docs/architecture.md from each go.mod.
//
//	err := modules.Create(root, "discovery/zookeeper", "finds them in ZooKeeper")
//	err = modules.Derive(root)
//
// Both change files, and nothing else: what is written may be looked at before it is committed.
package modules
