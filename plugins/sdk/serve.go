// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/server"
)

// [Serve] decides whether a host started the process, serves the strategy through
// go-plugin, and ends the process by the host's word, by SIGTERM or when the host has
// died.

const (
	// exitNotServed is the exit code of a plugin that could not listen; the log
	// says why.
	exitNotServed = 1
	// exitByHand is the exit code of a plugin that was not started by a host.
	exitByHand = 2
	// drain is how long running calls may take when the process is to end.
	drain = time.Second
)

// Serve serves the strategy until the host says stop, the process is terminated or the
// host has died, and then ends the process: it is the whole of a plugin's main function.
// A process that was not started by a host says so and exits with code 2.
//
// The process runs Go code on one processor at a time unless GOMAXPROCS is in its
// environment: a host asks one question at a time, and to wake a second processor for
// parts of it takes longer than they do. A strategy that computes in parallel has
// GOMAXPROCS in the environment of its plugin, or sets it when it is made.
func Serve(s Strategy, opts ...Option) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	os.Exit(serve(s, aboutOf(opts), os.Getenv, os.Stderr))
}

// serve returns the exit code.
func serve(s Strategy, a about, env func(string) string, stderr io.Writer) int {
	if env(plugins.CookieKey) != plugins.CookieValue {
		byHand(stderr, s, a)
		return exitByHand
	}
	// go-plugin replaces standard output and error by pipes, so the logger keeps the
	// original.
	log := slog.New(newLogHandler(stderr))
	slog.SetDefault(log)
	// ctx ends when the process is to end.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	// The goroutine ends with the context or with the host; it is not waited for, since
	// the process ends with either.
	var orphaned atomic.Bool
	go func() {
		switch err := awaitHost(ctx, hostPID(env)); {
		case err == nil:
			orphaned.Store(true)
			cancel()
		case ctx.Err() == nil:
			log.Warn("the host cannot be watched", "error", err)
		}
	}()
	// It ends, unwaited for, as the one above.
	go func() {
		if err := guardChildren(ctx); err != nil && ctx.Err() == nil {
			log.Warn("what this plugin has started will outlive it if its host is killed", "error", err)
		}
	}()
	var stop stopper
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: plugins.CookieKey, MagicCookieValue: plugins.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{plugins.Version1: {plugins.SetName: &served{server: s.server(log, a)}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			g := grpc.NewServer(append(opts, server.Options()...)...)
			stop.after(ctx, g)
			return g
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, JSONFormat: true, Output: stderr}),
	})
	cancel()
	served := stop.wait()
	if orphaned.Load() {
		endGroup() // A host that lives ends the group itself.
	}
	if !served {
		return exitNotServed
	}
	return 0
}

// byHand tells a person at a terminal what this program is.
func byHand(w io.Writer, s Strategy, a about) {
	// A failed write has no other place to be reported.
	_, _ = fmt.Fprintf(w, "%s is a %s plugin for Quorate: it is started by the nodes of a cluster, not by hand.\n"+
		"Name it in the file of the cluster, with the checksum of this file:\n\n"+
		"    plugins:\n      my-%s: { policy: %s, path: %s, sha256: ... }\n",
		nameOf(a), s.service.Policy, s.service.Policy, s.service.Policy, os.Args[0])
}

func nameOf(a about) string {
	if a.version == "" {
		return a.name
	}
	return a.name + " " + a.version
}

// hostPID returns the id of the host's process.
func hostPID(env func(string) string) int {
	if pid, err := strconv.Atoi(env(plugins.HostPID)); err == nil && pid > 0 {
		return pid
	}
	return os.Getppid()
}

// stopper stops a gRPC server when a context ends, and waits for that.
type stopper struct {
	group  sync.WaitGroup
	served bool // Written before wait, by the same goroutine.
}

// after starts to wait for the end of the context.
func (s *stopper) after(ctx context.Context, g *grpc.Server) {
	s.served = true
	// The goroutine ends soon after the context, which ends with serve; wait
	// waits for it.
	s.group.Go(func() {
		<-ctx.Done()
		hard := time.AfterFunc(drain, g.Stop)
		defer hard.Stop()
		g.GracefulStop()
	})
}

// wait reports whether there was a server to stop, once it has stopped.
func (s *stopper) wait() bool {
	s.group.Wait()
	return s.served
}

// served hands the plugin's services to go-plugin.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	server *server.Server
}

var _ plugin.GRPCPlugin = (*served)(nil)

// GRPCServer registers the services.
func (p *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	p.server.Register(g)
	return nil
}

// GRPCClient is needed only by hosts, and never called here.
func (p *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("sdk: a plugin has no client")
}
