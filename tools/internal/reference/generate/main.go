// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the reference of all settings, in the three forms in
// which it is committed. Its argument is the root of the repository.
//
//	go run ./tools/internal/reference/generate .
package main

import (
	"fmt"
	"os"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/tools/internal/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "generate: one argument is needed, the root of the repository")
		os.Exit(2)
	}
	if err := reference.Write(os.Args[1], cluster.Default()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
