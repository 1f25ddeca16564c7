// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command devices takes readings of many devices over HTTP and keeps them in PostgreSQL: one node of
// a small product, as a program outside of the project would be.
//
//	devices -config cluster.yaml -database postgres://devices@db.internal/devices -http :8080
//
//	POST /devices/ID/readings {"sequence": 7, "value": 21.5}    takes a reading
//	GET /devices/ID                                             the state of the device
//	GET /traces                                                 the last spans of this node
//
// Any node answers for any device. The sequence numbers of a device are its own choice, from 1, and
// rise: a reading is counted once, however often it is sent. Both requests on a device answer
// {"count": 7, "sequence": 7, "last": 21.5, "sum": 147}, or say with the header "Outcome" what became
// of the request:
//
//	503  not-handled  nothing was begun: send it again, to any node
//	500  unknown      it may have been handled: send a reading again only with its own number
//	400  not-handled  the request is wrong
//
// One node at a time writes the total of all devices, every second. On SIGTERM the node says that it is
// not ready, ends what is under way, hands over its devices and ends with the status of
// cluster.ExitStatus. With -attached it ends at once, as if killed, when its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/prometheus"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership/shutdown"
	"github.com/quorate/quorate/sharding/singleton"
	"github.com/quorate/quorate/sharding/state/postgres"
	"github.com/quorate/quorate/sharding/state/store"
)

// The program starts, serves and ends here. What a device does is in device.go, how requests reach it in
// server.go, the periodic total in total.go, and where spans go in traces.go.

func main() {
	file := flag.String("config", "cluster.yaml", "the `file` of the node")
	database := flag.String("database", "", "`how` to connect to PostgreSQL: a URL, or keywords and values")
	listen := flag.String("http", "127.0.0.1:0", "`address` for devices, loopback unless you mean otherwise")
	attached := flag.Bool("attached", false, "end at once when the standard input ends, as it does when the parent dies")
	flag.Parse()
	if *attached {
		// Ends with the process.
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			slog.Error("the parent has ended", "error", err)
			os.Exit(cluster.ExitFailed)
		}()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := run(ctx, *file, *database, *listen)
	if faults, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(os.Stderr, faults)
	} else if err != nil {
		slog.Error("devices", "error", err)
	}
	os.Exit(cluster.ExitStatus(err))
}

// run starts a node and serves until ctx ends or the node is gone.
func run(ctx context.Context, file, database, listen string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("devices: cannot serve HTTP on %s, choose another address with -http: %w", listen, err)
	}
	defer func() { _ = listener.Close() }() // The server closes it as well, which does no harm.
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return fmt.Errorf("devices: -database: %w", err)
	}
	defer pool.Close() // After the node, whose entities use it until they have stopped.
	states := postgres.New(pool, postgres.Options{})
	if err := errors.Join(states.Create(ctx), createTotals(ctx, pool)); err != nil {
		return err
	}
	traces := newTraces()
	node, err := cluster.Start(ctx,
		cluster.WithFile(file), cluster.WithMetrics(prometheus.Endpoint()), cluster.WithTracerProvider(traces.provider),
		cluster.WithStates("postgres", struct{}{}, func(struct{}) (store.Store, error) { return states, nil }),
	)
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // After Run nothing is left that could fail.
	if _, err := node.OnShutdown(shutdown.Close, "traces", traces.provider.Shutdown); err != nil {
		return err
	}
	devices, err := open(node)
	if err != nil {
		return err
	}
	if err := singleton.Start(node, singleton.Config{Name: "total", Run: singleton.Every(totalInterval, total{pool, node.Self().String()}.write)}); err != nil {
		return err
	}
	handler, err := routes(devices, traces, node.MeterProvider())
	if err != nil {
		return err
	}
	return serve(ctx, node, &http.Server{Handler: handler, ReadHeaderTimeout: 2 * time.Second}, listener)
}

// serve answers requests until ctx ends or the node is gone, and ends both in order. A server that fails
// ends the node.
func serve(ctx context.Context, node *cluster.Node, server *http.Server, listener net.Listener) error {
	if _, err := node.OnShutdown(shutdown.Serve, "devices over HTTP", server.Shutdown); err != nil {
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
