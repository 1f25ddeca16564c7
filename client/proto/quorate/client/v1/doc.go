// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package clientv1 is the contract between nodes and clients that are no members, as generated code.
package clientv1
