// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command post is one node of a post office: everything that a cluster does by itself, in one small program.
//
//	post -config cluster.yaml -journal /srv/post/journal -own /srv/post/node-1
//
// Letters are put into boxes, each by a producer that keeps a letter in a queue on the disk of its node until
// the box has it. A box counts each letter once, in a state that is saved, is remembered, so that it runs wherever
// its node goes, and is emptied by reminders. One node at a time has the postmaster, and eight counters are open,
// or as many as asked for: both write what they do into a ledger that all nodes share.
//
//	POST /boxes/ID/letters/LETTER    puts a letter into a box
//	POST /boxes/ID/reminders/NAME    has the box reminded in two seconds
//	GET  /boxes/ID                   {"letters": {LETTER: times}, "reminders": {NAME: times}}
//	GET  /boxes                      the boxes that run, and the nodes that did not say
//	POST /counters/N                 opens N counters
//
// The answer 200 is a promise: the letter will be in the box once, the reminder will come. On SIGTERM the node leaves
// in order; with -attached it ends at once, as if killed, when its standard input ends. The exit status is that of
// cluster.ExitStatus.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/membership/shutdown"
	"github.com/quorate/quorate/sharding/state/store"
)

// The program starts, serves and ends here. The boxes are in boxes.go, what runs without a message in jobs.go, and
// how requests come in server.go.

// options are the command line as values.
type options struct{ file, journal, own, http string }

func main() {
	var o options
	flag.StringVar(&o.file, "config", "cluster.yaml", "the `file` of the node")
	flag.StringVar(&o.journal, "journal", "journal", "`directory` of states and the ledger, shared by all nodes")
	flag.StringVar(&o.own, "own", "own", "`directory` of this node alone, for its queue")
	flag.StringVar(&o.http, "http", "127.0.0.1:0", "`address` for clients, loopback unless you mean otherwise")
	child := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	flag.Parse()
	if *child {
		attached.EndWithParent()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := run(ctx, o)
	if faults, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(os.Stderr, faults)
	} else if err != nil {
		slog.Error("post", "error", err)
	}
	os.Exit(cluster.ExitStatus(err))
}

// run starts a node and serves until ctx ends or the node is gone.
func run(ctx context.Context, o options) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.http)
	if err != nil {
		return fmt.Errorf("post: cannot serve HTTP on %s, choose another address with -http: %w", o.http, err)
	}
	defer func() { _ = listener.Close() }() // The server closes it as well, which does no harm.
	states, err := journal.Open(filepath.Join(o.journal, "states"), filepath.Base(o.own))
	if err != nil {
		return err
	}
	node, err := cluster.Start(ctx, cluster.WithFile(o.file),
		cluster.WithStates("journal", struct{}{}, func(struct{}) (store.Store, error) { return states, nil }))
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Run nothing is left that could fail.
	office, err := open(ctx, node, states, o)
	if err != nil {
		return err
	}
	if _, err := node.OnShutdown(shutdown.Close, "what is on its way", office.close); err != nil {
		return err
	}
	return serve(ctx, node, &http.Server{Handler: office.routes(), ReadHeaderTimeout: 2 * time.Second}, listener)
}

// serve answers requests until ctx ends or the node is gone, and ends both in order.
func serve(ctx context.Context, node *cluster.Node, server *http.Server, listener net.Listener) error {
	if _, err := node.OnShutdown(shutdown.Serve, "HTTP", server.Shutdown); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	served := make(chan error, 1) // It has room for the result, so that the goroutine never waits.
	// Owned by serve; ends with Shutdown, which Run calls.
	go func() {
		err := server.Serve(listener)
		served <- err
		fail(err)
	}()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"http": listener.Addr().String(), "node": node.Self().String()}); err != nil {
		return err
	}
	err := node.Run(ctx)
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
