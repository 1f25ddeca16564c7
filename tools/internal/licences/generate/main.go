// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command generate writes docs/licences.md, or says which licence is not allowed. See package licences. Its argument is
// the root of the repository.
//
//	go run ./tools/internal/licences/generate .
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/quorate/quorate/tools/internal/licences"
	"github.com/quorate/quorate/tools/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("generate: one argument is needed, the root of the repository")
	}
	tree, err := release.Load(args[0], release.Unreleased())
	if err != nil {
		return err
	}
	ours := map[string]string{}
	for _, m := range tree.Modules {
		ours[m.Path] = m.Dir
	}
	modules, err := licences.Linked(ctx, args[0], ours)
	if err != nil {
		return err
	}
	return licences.Write(args[0], modules)
}
