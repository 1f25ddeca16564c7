// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command visits counts the visits of pages: a node made for Docker and Kubernetes, whose manifests
// are in the directory deploy.
//
//	visits -config cluster.yaml -http :8080
//
//	POST /visits/PAGE    one more visit; answers with the number
//	GET /visits/PAGE     the number
//
// Each page is an entity that lives on one of the nodes. Its number is in memory: a shard that moves,
// as in a rolling update, takes its numbers along; a node that is killed loses those that it had.
//
// The first line on the standard output is one JSON object that names the node and its addresses. On
// SIGTERM the node leaves the cluster in order, within shutdown.deadline, and the process ends
// with one of these statuses, those of cluster.ExitStatus:
//
//	0  it left in order
//	1  something else, which the last line of the log names
//	2  the configuration is wrong; one line a fault
//	3  the others declared it down and went on without it: start it again
//	4  its cluster yielded to another one of its name: start it again
//	5  its disk failed: mend it first, or delete its data directory
//	6  it had not left in time: the others find it gone
//
// With -attached it ends at once, as if killed, when its standard input ends.
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
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/kubernetes"
	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/membership/shutdown"
)

func main() {
	file := flag.String("config", "cluster.yaml", "the `file` of the node")
	listen := flag.String("http", "127.0.0.1:0", "`address` for visits, loopback unless you mean otherwise")
	child := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	asJSON := flag.Bool("log-json", false, "log lines of JSON")
	flag.Parse()
	if *asJSON {
		slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	}
	if *child {
		attached.EndWithParent()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := run(ctx, *file, *listen)
	if faults, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(os.Stderr, faults)
	} else if err != nil {
		slog.Error("visits", "error", err)
	}
	os.Exit(cluster.ExitStatus(err))
}

// options are those of the node: what the files in the directory deploy ask for is linked here.
func options(file string) []cluster.Option {
	return []cluster.Option{
		cluster.WithFile(file), cluster.WithMetrics(prometheus.Endpoint()),
		cluster.WithDiscovery(kubernetes.Method, kubernetes.Default(), func(c kubernetes.Config) (discovery.Discovery, error) { return kubernetes.New(c) }),
	}
}

// run starts the node and serves until ctx ends or the node is gone. It takes the port for visits
// before it joins, so that a port in use disturbs no cluster.
func run(ctx context.Context, file, listen string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("visits: cannot serve HTTP on %s, choose another address with -http: %w", listen, err)
	}
	defer func() { _ = listener.Close() }() // The server closes it as well, which does no harm.
	node, err := cluster.Start(ctx, options(file)...)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Run nothing is left that could fail.
	pages, err := open(node)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes(pages), ReadHeaderTimeout: 2 * time.Second}
	if _, err := node.OnShutdown(shutdown.Serve, "visits over HTTP", server.Shutdown); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	served := make(chan error, 1) // It has room for the result, so that the goroutine never waits.
	// Owned by run; ends with Shutdown, which Run calls. A server that fails ends the node.
	go func() {
		err := server.Serve(listener)
		served <- err
		fail(err)
	}()
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{
		"http": listener.Addr().String(), "node": node.Self().String(), "health": node.HealthAddress(),
	}); err != nil {
		return err
	}
	err = node.Run(ctx)
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
