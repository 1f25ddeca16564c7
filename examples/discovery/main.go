// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command discovery is a node that finds the others by DNS, and hosts nothing.
//
//	discovery -config cluster.yaml
//
// Its first line on the standard output is one JSON object that names the node and the
// address of its HTTP interface. On SIGTERM the node leaves the cluster in order. With
// -attached it ends at once, as if killed, when its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/dns"
	"github.com/quorate/quorate/examples/attached"
)

// leaveTimeout bounds an orderly leave.
const leaveTimeout = 40 * time.Second

func main() {
	file := flag.String("config", "cluster.yaml", "the `file` of the node")
	child := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	flag.Parse()
	if *child {
		attached.EndWithParent()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	if err := run(ctx, *file); err != nil {
		slog.Error("discovery", "error", err)
		os.Exit(1)
	}
}

// run starts the node, and ends with it or with ctx. The option links the method: its
// settings are the section discovery-dns of the file.
func run(ctx context.Context, file string) error {
	node, err := cluster.Start(ctx, cluster.WithFile(file),
		cluster.WithDiscovery(dns.Method, dns.Default(), func(c dns.Config) (discovery.Discovery, error) { return dns.New(c) }))
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Leave nothing is left that could fail.
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"node": node.Self().String(), "http": node.ManagementAddress()}); err != nil {
		return err
	}
	select {
	case <-node.Done():
		return node.Err()
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		return errors.Join(node.Leave(ctx), node.Err())
	}
}
