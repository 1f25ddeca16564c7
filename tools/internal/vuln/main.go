// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command vuln has govulncheck look for known vulnerabilities in what the packages of the workspace call, if its
// database can be reached. If not, it says so in one line, and succeeds: that is no verdict.
//
//	go run ./tools/internal/vuln .tmp/bin/govulncheck
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	database := flag.String("db", "https://vuln.go.dev", "the URL of the database")
	limit := flag.Duration("limit", 5*time.Second, "how long the database may take to answer, above 0")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *database, *limit, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(1)
	}
}

// run asks the database whether it is there, and then has the tool look.
func run(ctx context.Context, w io.Writer, database string, limit time.Duration, args []string) error {
	if len(args) != 1 {
		return errors.New("one argument is needed, the program govulncheck")
	}
	if err := reach(ctx, database, limit); err != nil {
		fmt.Fprintf(w, "   left out: known vulnerabilities, since their database did not answer within %v: %v\n", limit, err)
		return nil
	}
	// The tool needs a module to start from. With a go.work, "work" are the packages of all.
	cmd := exec.CommandContext(ctx, args[0], "-db", database, "-C", "tools", "work")
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w; for what was found, raise its module to the version under \"Fixed in\" and run make tidy (use a "+
			"newer Go for the standard library), or take the call out of the code", err)
	}
	return nil
}

// reach gets the smallest file of a database.
func reach(ctx context.Context, database string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, database+"/index/db.json", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(get)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", get.URL, answer.Status)
	}
	return nil
}
