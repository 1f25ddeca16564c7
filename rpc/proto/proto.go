// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package proto has the form of calls as text, for programs without generated code and for other
// languages. The code for Go is in quorate/rpc/v1.
package proto

import (
	"embed"
	"io/fs"
)

//go:embed quorate/rpc/v1/*.proto
var files embed.FS

// Files returns the .proto files under the names by which they are imported, such as
// quorate/rpc/v1/rpc.proto. They never change while a program runs, and may be read from any
// goroutine.
func Files() fs.FS { return files }
