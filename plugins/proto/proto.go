// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package proto has the contract between nodes and plugins as text, for programs that make
// code of it in other languages. The code for Go is in quorate/plugin/v1.
package proto

import (
	"embed"
	"io/fs"
)

//go:embed quorate/plugin/v1/*.proto
var files embed.FS

// Files returns the files of the contract, such as quorate/plugin/v1/plugin.proto, under the
// names by which they import each other. The files never change while a program runs, and may be
// read from any goroutine.
func Files() fs.FS { return files }
