// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command write renews the figures of docs/downing.md. Its argument is the root of the
// repository.
//
//	go run ./tools/internal/figures/write .
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/quorate/quorate/tools/internal/figures"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "write: one argument is needed, the root of the repository")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	page, rendered, err := figures.Render(ctx, root, false)
	if err != nil {
		return err
	}
	for _, line := range figures.Differences(page, rendered) {
		fmt.Println(line)
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(figures.Page)), []byte(rendered), 0o644)
}
