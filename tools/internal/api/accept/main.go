// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command accept stores what the public packages declare at present, for later changes to
// be compared with. Its argument is the root of the repository.
//
//	go run ./tools/internal/api/accept .
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quorate/quorate/tools/internal/api"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "accept: one argument is needed, the root of the repository")
		os.Exit(2)
	}
	root, err := filepath.Abs(os.Args[1])
	if err == nil {
		err = api.Accept(context.Background(), root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "accept:", err)
		os.Exit(1)
	}
}
