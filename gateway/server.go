// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/transport/bearer"
	"github.com/quorate/quorate/transport/gate"
	"github.com/quorate/quorate/transport/mutual"
)

// Serve listens and starts the goroutines; a connection passes the gate, its calls the tap (service.go), and a request
// takes the way of exchange.go; Close, or the leave of the node (leave.go), ends exchanges, connections and goroutines
// in that order, with a bound for each.

const (
	// handshakeTimeout bounds the time until a connection is ready for requests.
	handshakeTimeout = 5 * time.Second
	// idleTimeout ends a connection without calls.
	idleTimeout = time.Minute
	// pingEvery is how often a silent client is asked whether it is there, and pingTimeout how long
	// it may take to answer.
	pingEvery, pingTimeout = 30 * time.Second, 10 * time.Second
	// pingsApart is how often a client may ask.
	pingsApart = 5 * time.Second
	// closeTimeout is how long Close waits for the outcomes of requests.
	closeTimeout = 2 * time.Second
	// batchBytes is what a message may have beside the payload of its largest request: many small requests, names and
	// numbers.
	batchBytes = 64<<10 + 4<<10
	// headBytesMax bounds the metadata of a call.
	headBytesMax = 16 << 10
	// callsMax bounds the calls of one connection that are under way at a time.
	callsMax = 128
	// streamWindow is how much of a call waits in memory for the node to take it.
	streamWindow = 256 << 10
	// pendingMax bounds the connections whose clients are not known yet.
	pendingMax = 512
)

// Server takes requests until it is closed.
type Server struct {
	cfg      Config
	host     sharding.Host
	log      *slog.Logger
	grpc     *grpc.Server
	gate     *gate.Gate // Nil if nothing listens.
	arrivals *arrivals
	files    *mutual.Files // Nil without TLS.
	running  sync.WaitGroup
	ctx      context.Context    //nolint:containedctx // The life of the server.
	cancel   context.CancelFunc // Ends it.
	going    chan struct{}      // Closed when the server begins to end.
	listen   func(ctx context.Context, address string) (net.Listener, error)
	closing  sync.Once
	measure  func() (stop func()) // Begins to observe the counters, until stop is called.
	measured func()

	counters counters
}

// counters are the numbers of [Stats], and what bounds the requests under way.
type counters struct {
	calls, requests, bytes                                    atomic.Int64
	answered, overloaded, refused, closed, cut, crowded, late atomic.Uint64
}

// Stats is what a gateway has done since it was started.
type Stats struct {
	Connections int // Open connections of clients.
	Pending     int // Open connections on which no client has been let in yet.
	Calls       int // Calls of clients that are under way.
	Requests    int // Requests without an outcome.
	Arriving    int // Bytes of messages that have come in part, with what calls cost by themselves.

	Answered          uint64 // Requests that have an outcome, of whatever kind.
	Overloaded        uint64 // Requests sent back since MaxRequests or MaxBytes were reached.
	Refused           uint64 // Calls of clients that may not ask.
	Unread            uint64 // Clients closed since they did not read.
	Crowded           uint64 // Calls ended since too many bytes of messages were on their way.
	Late              uint64 // Calls ended since their message did not come in time.
	RefusedConnection uint64 // Connections closed since there were too many, or since too much came before a client was let in.
}

// Stats returns what the gateway has done.
func (s *Server) Stats() Stats {
	c := &s.counters
	now := Stats{
		Calls: int(c.calls.Load()), Requests: int(c.requests.Load()),
		Answered: c.answered.Load(), Overloaded: c.overloaded.Load(), Refused: c.refused.Load(), Unread: c.cut.Load(),
		Crowded: c.crowded.Load(), Late: c.late.Load(), RefusedConnection: c.closed.Load(),
	}
	if s.gate != nil {
		now.Pending, now.Connections = s.gate.Open()
		now.Arriving = s.arrivals.held()
	}
	return now
}

// Option is a collaborator that only code can give.
type Option func(*Server)

// WithLogger sets where the gateway logs: what listens, and who is refused or closed. The default is [slog.Default].
func WithLogger(l *slog.Logger) Option { return func(s *Server) { s.log = l } }

// WithListen sets what listens on the configured address, in place of a socket: for a program that hands sockets over,
// or for a test in virtual time. The addresses of the listener and of its connections have to be host and port.
func WithListen(f func(ctx context.Context, address string) (net.Listener, error)) Option {
	return func(s *Server) { s.listen = f }
}

// listenTCP listens on a socket.
func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// Serve listens on the configured address, and passes the requests of clients on to the kinds that run on the host,
// also those that are started later. Without an address it returns a server that does nothing. The context bounds Serve
// alone. The error says what is wrong with the configuration, the files, or the address.
func Serve(ctx context.Context, cfg Config, host sharding.Host, opts ...Option) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	s := &Server{
		cfg: cfg, host: host, log: slog.Default(), going: make(chan struct{}), listen: listenTCP,
		measure: func() func() { return func() {} }, measured: func() {},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, opt := range opts {
		opt(s)
	}
	s.log = machine.LimitLog(s.log)
	if cfg.Address == "" {
		return s, nil
	}
	if err := s.open(); err != nil {
		s.cancel()
		return nil, err
	}
	listener, err := s.listen(ctx, cfg.Address)
	if err != nil {
		s.cancel()
		return nil, fmt.Errorf("gateway: address %s: %w", cfg.Address, err)
	}
	if err := s.start(listener); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// open reads the files once, so that a mistake is an error of the start.
func (s *Server) open() error {
	if s.cfg.TokenFile != "" {
		if err := bearer.Check(s.cfg.TokenFile); err != nil {
			return fmt.Errorf("gateway: token-file: %w", err)
		}
	}
	if s.cfg.TLS.IsZero() {
		return nil
	}
	files, err := mutual.Open(s.cfg.TLS, s.certificates)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	s.files = files
	if text := mutual.LooseKey(s.cfg.TLS.Key); text != "" {
		s.log.Warn(text)
	}
	return nil
}

// start begins to accept connections, if the bound address may be served: a name, localhost too, stands for
// whatever the resolver of the machine says.
func (s *Server) start(listener net.Listener) error {
	host, _, err := net.SplitHostPort(listener.Addr().String())
	secure := s.files != nil || s.cfg.AllowInsecure
	if err != nil || (!s.cfg.AllowRemote || !secure) && !loopback(host) {
		_ = listener.Close() // No connection was accepted.
		return fmt.Errorf("gateway: address %s: stands for %s, which is not on the loopback interface: use 127.0.0.1", s.cfg.Address, listener.Addr())
	}
	s.gate = gate.New(listener, gate.Config{
		Pending: pendingMax, HostPending: pendingMax, Admitted: s.cfg.MaxConnections, Bytes: gate.PendingBytes, AllBytes: gate.AllPendingBytes, Closed: s.turnedAway, Failed: s.notAccepted,
	})
	largest := sharding.EncodedBytesMax(s.host) + batchBytes
	s.arrivals = newArrivals(s.cfg.MaxBytes, largest, s.gaveWay)
	security := insecure.NewCredentials()
	if s.files != nil {
		security = guarded(s.files.TLS())
		// Owned by the server: ends with its context, and Close waits for it.
		s.running.Go(func() { s.files.Watch(s.ctx) })
	}
	// Owned by the server: ends with its context, and Close waits for it.
	s.running.Go(s.sweep)
	s.measured = s.measure()
	s.grpc = grpc.NewServer(s.options(security, largest)...)
	s.grpc.RegisterService(s.service(), s)
	// Owned by the server: ends when Close stops gRPC, and Close waits for it. The goroutines of
	// connections belong to gRPC, which waits for them.
	s.running.Go(func() {
		if err := s.grpc.Serve(s.gate); err != nil {
			s.log.Error("the gateway does not accept connections any more", "error", err)
		}
	})
	if err := s.attach(); err != nil {
		return errors.Join(err, s.Close())
	}
	s.log.Info("the gateway listens for clients", "address", s.Address(), "tls", s.files != nil, "kinds", s.cfg.Kinds)
	return nil
}

// options are those of gRPC.
func (s *Server) options(security credentials.TransportCredentials, largest int) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(frameCredentials{security, s.arrivals}), grpc.ReadBufferSize(0), // See frameConn.
		grpc.InTapHandle(s.tap), grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxRecvMsgSize(largest), grpc.MaxHeaderListSize(headBytesMax),
		grpc.MaxConcurrentStreams(callsMax), grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(4 * streamWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsApart, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}
}

// sweep looks for messages that do not come.
func (s *Server) sweep() {
	tick := time.NewTicker(s.cfg.ReadTimeout / sweeps)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.arrivals.sweep()
		case <-s.ctx.Done():
			return
		}
	}
}

// gaveWay counts a call that was ended for what it had not sent.
func (s *Server) gaveWay(why error) {
	if errors.Is(why, errLate) {
		s.counters.late.Add(1)
		return
	}
	s.counters.crowded.Add(1)
	s.log.Warn("the gateway ends calls whose messages are on their way, since these are too many bytes: raise gateway.max-bytes")
}

// turnedAway counts a connection that the gate has closed.
func (s *Server) turnedAway(remote net.Addr, why gate.Reason) {
	s.counters.closed.Add(1)
	switch why {
	case gate.Full, gate.FullHost:
		s.log.Warn("the gateway closes connections because clients have all places: raise gateway.max-connections", "places", s.cfg.MaxConnections, "peer", remote.String())
	case gate.GaveWay:
		s.log.Warn("the gateway closes connections on which no client was let in, because there are too many", "places", pendingMax, "peer", remote.String())
	case gate.TooManyBytes:
		s.log.Warn("the gateway closes a connection on which too much came before a client was let in", "peer", remote.String())
	}
}

func (s *Server) notAccepted(err error) {
	s.log.Warn("the gateway cannot accept connections", "error", err)
}

// Address returns the address on which the gateway listens, with the port that it got; empty if it does not.
func (s *Server) Address() string {
	if s.gate == nil {
		return ""
	}
	return s.gate.Addr().String()
}

// Close tells all clients that the gateway ends, waits up to two seconds for the outcomes of what they have asked, and
// for every goroutine. It may be called twice.
func (s *Server) Close() error {
	s.end()
	s.running.Wait()
	return nil
}

// end ends exchanges and connections, and returns when they are over, also where another goroutine ends them.
func (s *Server) end() {
	s.closing.Do(func() {
		close(s.going)
		if s.grpc != nil {
			s.drain()
		}
		s.cancel()
		s.measured()
	})
}

// drain ends all connections: in order when their calls are over, and after closeTimeout in any case.
func (s *Server) drain() {
	stopped := make(chan struct{})
	// Owned by Close, which waits for it: ends when no connection is left.
	go func() {
		defer close(stopped)
		s.grpc.GracefulStop()
	}()
	limit := time.NewTimer(closeTimeout)
	defer limit.Stop()
	select {
	case <-stopped:
	case <-limit.C:
		s.cancel()
		s.grpc.Stop()
		<-stopped
	}
}

// ending reports whether the server has begun to end.
func (s *Server) ending() bool {
	select {
	case <-s.going:
		return true
	default:
		return false
	}
}
