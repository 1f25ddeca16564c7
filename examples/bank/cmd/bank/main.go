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
// the node leaves the cluster in order and exits with 0; a node that the
// others declared down exits with 3.
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
	"syscall"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/membership"
)

// exitDown is the status of a node that the others declared down.
const exitDown = 3

func main() {
	config := flag.String("config", "cluster.yaml", "the cluster's `file`")
	dir := flag.String("journal", "journal", "`directory` of the journals, shared by all nodes")
	listen := flag.String("http", "127.0.0.1:0", "HTTP `address`, loopback unless you mean otherwise")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, *config, *dir, *listen)
	switch {
	case errors.Is(err, membership.ErrDown):
		slog.Error("the cluster went on without this node", "error", err)
		os.Exit(exitDown)
	case err != nil:
		slog.Error("bank", "error", err)
		os.Exit(1)
	}
}

// run starts the node and serves until ctx ends or the node is gone.
func run(ctx context.Context, config, dir, listen string) error {
	node, err := cluster.Start(ctx, cluster.File(config))
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Leave there is nothing left that could fail.
	accounts, err := bank.Open(node, dir)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("bank: cannot serve HTTP on %s: %w", listen, err)
	}
	server := &http.Server{Handler: routes(node, accounts), ReadHeaderTimeout: 2 * time.Second}
	served := make(chan error, 1) // One result, so that the goroutine never waits for us.
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

// leave takes the node out of the cluster in order. Requests are answered
// until the accounts have moved, and refused after that.
func leave(node *cluster.Node, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	return errors.Join(node.Leave(ctx), server.Shutdown(ctx))
}
