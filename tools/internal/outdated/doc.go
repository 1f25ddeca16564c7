// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package outdated says which modules of others are behind their newest version, and why they stay.
//
// [Requirements] reads the direct requirements of each go.mod of the tree, and those that go-plugin and grpc bring;
// [Newest] asks the go command for newer versions, which asks the module proxy. The reasons why a module stays are in
// held.txt, a line each: the path of the module, and the reason; [Look] refuses one that holds nothing back any more.
package outdated
