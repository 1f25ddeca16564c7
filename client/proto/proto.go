// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package proto has the contract between nodes and clients that are no members as text, for programs
// that make code of it in other languages. The code for Go is in quorate/client/v1.
package proto

import (
	"embed"
	"io/fs"
)

//go:embed quorate/client/v1/*.proto
var files embed.FS

// Files returns the .proto files under the names by which they are imported, such as
// quorate/client/v1/client.proto. They never change while a program runs, and may be read from any
// goroutine.
func Files() fs.FS { return files }
