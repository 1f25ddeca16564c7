// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/transport/bearer"
	"github.com/quorate/quorate/transport/mutual"
)

// [Serve] builds a server, listens and starts its goroutines; [Server.Close] ends
// connections, answers and goroutines in that order, with a bound for each.

const (
	// headTimeout bounds the TLS handshake, and the reading of a request. A client has
	// its request ready; a slow one holds a place that others want.
	headTimeout = time.Second
	// writeTimeout is how long the writing of an answer may take, in addition to the time
	// for finding it.
	writeTimeout = 5 * time.Second
	// idleTimeout ends a connection without requests.
	idleTimeout = 30 * time.Second
	// closeTimeout is how long Close waits for answers, and as long again after
	// it has ended their contexts.
	closeTimeout = time.Second
	// maxHeadBytes bounds the head of a request, and so path and query.
	maxHeadBytes = 16 << 10
	// maxProbes is how many probe routes are answered at a time, and how many connections
	// there may be for them besides the configured ones.
	maxProbes = 8
)

// Server answers requests until it is closed.
type Server struct {
	cfg       Config
	log       *slog.Logger
	mux       *http.ServeMux
	routes    routes
	http      *http.Server
	open      bool          // Whoever reaches the server is answered.
	listener  net.Listener  // Nil if the server does not listen on an address.
	socket    net.Listener  // Nil without a socket for operators.
	files     *mutual.Files // Nil without TLS, as is tls.
	tls       *mutual.TLS
	watching  sync.WaitGroup
	accepting sync.WaitGroup // Done when no connection is accepted any more.
	tell      func(Change)   // Is told of each operation.

	// Each answer holds a place in one of these. Close takes all places, so that no
	// answer is left.
	slots, probes, streams chan struct{}

	audience readers

	watched   context.Context    //nolint:containedctx // The life of all streams, which ends first.
	unwatched context.CancelFunc // Ends it.
	slow      atomic.Uint64      // Streams that were ended for being slow.

	ctx     context.Context    //nolint:containedctx // The life of the server, and the base of the contexts of all answers.
	cancel  context.CancelFunc // Ends it.
	closing sync.Once
	failure error // Error of Close; written by closing.
}

// Option is a collaborator that only code can give.
type Option func(*Server)

// WithLogger sets where the server logs: what listens, panics of answers, and
// at level debug connections that failed. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *Server) { s.log = l } }

// Serve listens on the configured address and answers the routes. Without an
// address it returns a server that does nothing. The context bounds Serve
// alone. The error says what is wrong with the configuration, the files of the
// certificate, a route, or the address.
func Serve(ctx context.Context, cfg Config, routes []Route, opts ...Option) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("management: %w", err)
	}
	s, err := newServer(cfg, slices.Concat(documented(routes), pageRoutes(cfg)), opts)
	if err != nil {
		return nil, err
	}
	if err := s.openFiles(); err != nil {
		return nil, err
	}
	if err := s.listenForOperators(ctx); err != nil {
		return nil, err
	}
	if _, err := s.listen(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// listenForOperators listens on the socket and reads the tokens once, so that a mistake is an
// error of the start.
func (s *Server) listenForOperators(ctx context.Context) error {
	if path := s.cfg.Operators.TokenFile; path != "" {
		if err := bearer.Check(path); err != nil {
			return fmt.Errorf("management: operators.token-file: %w", err)
		}
	}
	if s.cfg.Operators.Socket == "" {
		return nil
	}
	l, err := listenSocket(ctx, s.cfg.Operators.Socket)
	if err != nil {
		return err
	}
	s.socket = bounded(l, s.cfg.MaxConnections, s.log)
	s.accepting.Go(func() { s.accept(s.socket) }) // Like that of the address, see start.
	s.log.InfoContext(ctx, "management listens for operators", "socket", s.cfg.Operators.Socket)
	return nil
}

// ServeHealth is [Serve] for a listener that answers whoever reaches it: give it the routes of
// health checks, and those of metrics where they may be seen by everybody.
func ServeHealth(ctx context.Context, cfg HealthConfig, routes []Route, opts ...Option) (*Server, error) {
	if err := cfg.validate(""); err != nil {
		return nil, fmt.Errorf("management: %w", err)
	}
	whole := Default()
	whole.Address = cfg.Address
	s, err := newServer(whole, routes, opts)
	if err != nil {
		return nil, err
	}
	s.open = true
	return s.listen(ctx)
}

// listen listens on the configured address, if there is one.
func (s *Server) listen(ctx context.Context) (*Server, error) {
	if s.cfg.Address == "" {
		return s, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("management: address %s: %w", s.cfg.Address, err)
	}
	if err := s.start(listener); err != nil {
		return nil, err
	}
	return s, nil
}

// start begins to accept connections, if the bound address may be served: a name,
// localhost too, stands for whatever the resolver of the machine says.
func (s *Server) start(listener net.Listener) error {
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil || !s.open && (!s.cfg.AllowRemote || s.files == nil) && !loopback(host) {
		_ = listener.Close() // No connection was accepted.
		return fmt.Errorf("management: address %s: stands for %s, which is not on the loopback interface: use 127.0.0.1", s.cfg.Address, listener.Addr())
	}
	s.listener = bounded(listener, s.cfg.MaxConnections, s.log)
	accepting := s.listener
	if s.files != nil {
		accepting = tls.NewListener(accepting, s.tls.Server("http/1.1"))
		// Owned by the server: ends with its context, and Close waits for it.
		s.watching.Go(func() { s.files.Watch(s.ctx) })
	}
	// Owned by the server: ends when Close closes the listener, and Close waits
	// for it. The goroutines of connections belong to package http, and end
	// within the time-outs, or by Close.
	s.accepting.Go(func() { s.accept(accepting) })
	what := "management listens"
	if s.open {
		what = "management listens for health checks"
	}
	s.log.Info(what, "address", s.Address(), "tls", s.files != nil)
	return nil
}

// newServer builds a server without starting anything.
func newServer(cfg Config, routes []Route, opts []Option) (*Server, error) {
	s := &Server{
		cfg: cfg, log: slog.Default(), tell: func(Change) {},
		slots: make(chan struct{}, min(cfg.MaxRequests, cfg.MaxConnections)), probes: make(chan struct{}, maxProbes), streams: make(chan struct{}, maxStreams),
	}
	for _, opt := range opts {
		opt(s)
	}
	s.log = machine.LimitLog(s.log)
	var err error
	if s.mux, s.routes, err = newMux(routes, s.answering); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx, s.cancel = ctx, cancel
	s.watched, s.unwatched = context.WithCancel(ctx)
	plain := new(http.Protocols) // With HTTP/2 one connection could do the work of a hundred, and the bound on connections would mean nothing.
	plain.SetHTTP1(true)
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: plain,
		ReadHeaderTimeout: headTimeout, ReadTimeout: headTimeout, WriteTimeout: cfg.RequestTimeout + writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeadBytes,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnContext:    withPlace,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// accept serves until the listener is closed.
func (s *Server) accept(l net.Listener) {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("management accepts no connection any more", "error", err)
	}
}

// Address returns the "host:port" at which the server listens, "" if it does not listen.
func (s *Server) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Close ends the server: no connection is accepted any more, running answers have a
// second, and after that another second with their context ended. The error says that an
// answer ran even then. Close may be called again.
func (s *Server) Close() error {
	s.closing.Do(func() { s.failure = s.close() })
	return s.failure
}

func (s *Server) close() error {
	defer s.watching.Wait()
	defer s.cancel()
	s.unwatched() // A stream has no end of its own to wait for.
	if s.listener == nil && s.socket == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // Not in time: now by force.
		s.cancel()
		_ = s.http.Close() // The listener is closed already, and errors of connections do not matter.
	}
	s.accepting.Wait()
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	for _, places := range []chan struct{}{s.slots, s.probes, s.streams} {
		for range cap(places) {
			select {
			case places <- struct{}{}:
			case <-late.C:
				return fmt.Errorf("management: an answer has not ended within %v of the end of its context", closeTimeout)
			}
		}
	}
	return nil
}
