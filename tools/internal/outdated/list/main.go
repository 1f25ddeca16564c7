// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command list prints which modules of others are behind their newest version, and why they stay. See package outdated.
//
//	go run ./tools/internal/outdated/list
//	go run ./tools/internal/outdated/list -json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/quorate/quorate/tools/internal/outdated"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, asJSON bool) error {
	dirs, err := outdated.Modules(ctx, ".")
	if err != nil {
		return err
	}
	required, err := outdated.Requirements(".", dirs)
	if err != nil {
		return err
	}
	paths := make([]string, len(required))
	for i, r := range required {
		paths[i] = r.Path
	}
	fmt.Fprintf(os.Stderr, "   asking for the newest of %d modules\n", len(paths))
	latest, err := outdated.Newest(ctx, paths)
	if err != nil {
		return err
	}
	all, err := outdated.Look(required, latest)
	if asJSON {
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(all))
	}
	outdated.Print(os.Stdout, all)
	return err
}
