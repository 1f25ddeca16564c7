// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command bank-demo runs a bank on five real processes while it kills them,
// and counts every cent.
//
//	bank-demo -seed 7
//
// It starts five nodes from one file with default timings, spreads a thousand
// accounts over them, and sends transfers at a steady pace. Meanwhile it kills
// the oldest node, freezes one until the others have removed it, restarts all nodes one by
// one, drains one, and kills one while the number of shards of the accounts changes, in an
// order and at moments that the seed decides. -phases chooses some of that, or all: then
// another node is killed too, two start, one leaves in order, and the number of shards
// changes while nothing else happens.
//
//	bank-demo -phases rolling_restart,freeze
//
// With -plugins the nodes ask two plugins where shards go and which nodes go after a
// partition, and the phase plugins kills one of them and stops the other. The last line
// says for how long each was away. A downing strategy that may let a minority survive
// makes failover wait longer, so the promise for a kill is another one then.
//
// In the end it compares the journals with what the clients were told. The last
// line is one JSON object; the exit status is 1 when money or an acknowledged
// transfer was lost, doubled, or written by an owner that had been replaced.
//
// For each phase the last line has the longest gap of any account: the time between two
// successive answers of an account, as far as a request waited for it. A failed ask is a
// request that a node answered with an error; clients repeat such requests, and others
// that broke off, until they are answered, which counts as retried. Each figure stands beside
// what is allowed. Promises that were not kept are listed as missed, or as not judged when the
// machine stood still for half a second, or programs waited for a processor half of the time; they
// depend on the machine and do not change the exit status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// errTooLong ends a demo that hangs.
var errTooLong = errors.New("the demo did not end within 240 s")

func main() {
	self, _ := os.Executable() // An empty path is caught below: no bank lies beside it.
	opts := options{}
	flag.Uint64Var(&opts.seed, "seed", 1, "`number` that decides what is killed and when")
	flag.IntVar(&opts.accounts, "accounts", 1000, "`number` of accounts")
	flag.IntVar(&opts.rate, "rate", 300, "transfers a `second`")
	flag.StringVar(&opts.program, "program", filepath.Join(filepath.Dir(self), "bank"), "`path` of the node program")
	flag.StringVar(&opts.dir, "dir", "", "`directory` for journals and logs (default: a temporary one, removed when all is well)")
	flag.BoolVar(&opts.plugins, "plugins", false, "let plugins decide: zoneaware and witness, from the directory of the program")
	phases := flag.String("phases", "", fmt.Sprintf("`list` of phases, separated by commas, from %v, or %s (default: what shows most in a minute)", possible(true), allPhases))
	flag.Parse()
	var err error
	if opts.phases, err = parsePhases(*phases, opts.plugins); err != nil {
		fmt.Fprintln(os.Stderr, "bank-demo:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the demo at once.
	// The demo promises an end within 180 s; the rest is for the nodes' own.
	ctx, cancel := context.WithTimeoutCause(ctx, 240*time.Second, errTooLong)
	defer cancel()
	ok, err := run(ctx, opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bank-demo:", err)
	}
	if err != nil || !ok {
		os.Exit(1) // The deferred cancels only release what the exit releases too.
	}
}
