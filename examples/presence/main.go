// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command presence is a node with a page that shows who is online, on all nodes.
//
//	presence -config cluster.yaml -http 127.0.0.1:8081
//
// Its first line on the standard output is one JSON object that names the node and the
// address of the page. On SIGTERM the node leaves the cluster in order. With -attached it
// ends at once, as if killed, when its standard input ends.
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
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/examples/attached"
)

// leaveTimeout bounds an orderly leave.
const leaveTimeout = 40 * time.Second

func main() {
	file := flag.String("config", "cluster.yaml", "the `file` of the node")
	listen := flag.String("http", "127.0.0.1:0", "`address` of the page, loopback unless you mean otherwise")
	child := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	flag.Parse()
	if *child {
		attached.EndWithParent()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	if err := run(ctx, *file, *listen); err != nil {
		slog.Error("presence", "error", err)
		os.Exit(1)
	}
}

// options are those of the node. They link the store of the durable keys, and the type of the
// seen keys, which is the program's own.
func options(file string) []cluster.Option {
	return []cluster.Option{
		cluster.WithFile(file), cluster.WithStore(durable.OpenIn),
		cluster.WithData(ddata.WithTypes(crdt.TypeOf[crdt.LWWRegister[seen]]())),
	}
}

// run starts the node and serves the page, until ctx ends or the node is gone. It takes the
// port of the page before it joins, so that a port in use disturbs no cluster.
func run(ctx context.Context, file, listen string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("presence: cannot serve the page at %s, choose another address with -http: %w", listen, err)
	}
	defer func() { _ = listener.Close() }() // The server closes it as well, which does no harm.
	node, err := cluster.Start(ctx, options(file)...)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Leave nothing is left that could fail.
	p := open(node, slog.Default())
	defer p.close()
	server := &http.Server{Handler: routes(p), ReadHeaderTimeout: 2 * time.Second}
	served := make(chan error, 1) // It has room for the result, so that the goroutine never waits.
	// Owned by run; ends with Close below.
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Close() }() // Streams do not end by themselves, and are cut.
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"node": node.Self().String(), "http": listener.Addr().String()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		return errors.Join(node.Leave(ctx), node.Err())
	case <-node.Done():
		return node.Err()
	case err := <-served:
		return err
	}
}
