// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command bank is one node of the bank: it joins the cluster of its file,
// hosts accounts, and takes transfers over HTTP.
//
//	bank -config cluster.yaml -journal /srv/bank
//
// The address and everything else of the node come from the file and the
// environment (QUORATE_NODE__ADDRESS=127.0.0.2:7946). Its first line on the
// standard output is one JSON object that names the HTTP address. On SIGTERM
// the node leaves the cluster in order. With -attached it ends at once, as if
// killed, when its standard input ends: no parent that dies leaves it behind.
// The exit status says how it ended:
//
//	0  it left in order
//	1  something else, which the last line on the standard error names
//	2  the configuration or the command line is wrong; one line a fault
//	3  the others declared it down and went on without it
//	4  its cluster met another one of its name and yielded; started again it joins that
//	5  its disk failed: the record in node.data-dir could be neither written nor removed
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/plugins/host"
)

func main() {
	file := flag.String("config", "cluster.yaml", "the cluster's `file`")
	dir := flag.String("journal", "journal", "`directory` of the journals, shared by all nodes")
	listen := flag.String("http", "127.0.0.1:0", "HTTP `address`, loopback unless you mean otherwise")
	child := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	flag.Usage = usage
	flag.Parse()
	log.SetFlags(log.LstdFlags | log.Lmicroseconds) // Moves of accounts take milliseconds.
	if *child {
		attached.EndWithParent()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	if err := run(ctx, *file, *dir, *listen); err != nil {
		os.Exit(explain(err))
	}
}

// usage prints the flags, and how the process exits.
func usage() {
	fmt.Fprintln(flag.CommandLine.Output(), "Usage of bank:")
	flag.PrintDefaults()
	fmt.Fprintln(flag.CommandLine.Output(), `The exit status says how the node ended:
  0  it left in order
  1  something else, which the last line names
  2  the configuration or the command line is wrong
  3  the others declared it down and went on without it: start it again
  4  its cluster yielded to another one of its name: start it again to join that
  5  its disk failed: mend it, or delete its data directory, then start it again`)
}

// explain prints why the node ended, and returns the exit status.
func explain(err error) int {
	if faults, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(os.Stderr, faults) // One line per fault, as a compiler does it.
		return cluster.ExitConfig
	}
	switch {
	case errors.Is(err, membership.ErrDown):
		slog.Error("the cluster went on without this node", "error", err)
		return cluster.ExitDown
	case errors.Is(err, membership.ErrYielded):
		slog.Error("another cluster of this name goes on: start this node again to join it", "error", err)
		return cluster.ExitYielded
	case errors.Is(err, membership.ErrDisk):
		slog.Error("the disk failed: mend it, or delete the data directory, before this node is started again", "error", err)
		return cluster.ExitDisk
	}
	slog.Error("bank", "error", err)
	return cluster.ExitFailed
}

// run starts the node and serves until ctx ends or the node is gone. It takes
// the HTTP port before it joins, so that a port in use disturbs no cluster.
func run(ctx context.Context, file, dir, listen string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("bank: cannot serve HTTP on %s, choose another address with -http: %w", listen, err)
	}
	defer func() { _ = listener.Close() }() // The server closes it as well, which does no harm.
	node, err := cluster.Start(ctx, cluster.WithFile(file), cluster.WithMetrics(prometheus.Endpoint()), cluster.WithPlugins(host.New()))
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Leave nothing is left that could fail.
	accounts, err := bank.Open(node, dir)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes(node, accounts), ReadHeaderTimeout: 2 * time.Second}
	served := make(chan error, 1) // It has room for the result, so that the goroutine never waits.
	// Owned by run; ends with Shutdown or Close below.
	go func() { served <- server.Serve(listener) }()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{
		"http": listener.Addr().String(), "node": node.Self().String(),
	}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return leave(node, server)
	case <-node.Done():
		return errors.Join(node.Err(), server.Close())
	case err := <-served:
		return err
	}
}

// leave takes the node out of the cluster in order. Requests are answered until the
// accounts have moved, and refused after that. If the time runs out, as it does for a
// process that was frozen meanwhile, the node gets another chance to leave or to learn
// that the others went on without it.
func leave(node *cluster.Node, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	err := node.Leave(ctx)
	if ctx.Err() != nil {
		return errors.Join(node.Close(), node.Err(), server.Close())
	}
	return errors.Join(err, server.Shutdown(ctx))
}
