// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package licences lists the modules of others that a program links which links one of ours, with their licences, and
// refuses a licence that nobody has agreed to.
//
// [Linked] finds them by the imports of all packages that are released, without tests, as they are on Linux, macOS and
// Windows. [Find] reads the files with licences beside the linked packages and above them. [Write] writes
// docs/licences.md, the list. Which licences are allowed is the table in licences.go.
package licences
