// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package pluginv1 is the contract between hosts and plugins, version 1, as
// generated from the files beside it, which say what each field means.
//
// Go programs use the packages sdk and host instead; this one is public for tools
// that look at the wire, and its API follows the generator's.
package pluginv1
