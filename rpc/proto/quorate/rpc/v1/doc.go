// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package rpcv1 is the form of calls as generated code. Package rpc writes and reads it by
// hand, and its tests compare the two.
package rpcv1
