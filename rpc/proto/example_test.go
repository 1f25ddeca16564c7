// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package proto_test

import (
	"fmt"
	"io/fs"

	"github.com/quorate/quorate/rpc/proto"
)

// A program writes the contract to where the compiler of its language looks for it.
func ExampleFiles() {
	text, err := fs.ReadFile(proto.Files(), "quorate/rpc/v1/rpc.proto")
	fmt.Println(len(text) > 0, err)
	// Output: true <nil>
}
