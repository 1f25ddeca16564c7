// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/client/internal/broker"
	"github.com/quorate/quorate/client/internal/wire"
	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// The connection to one node: run keeps a session there, and begins another one when it has ended. In a session
// one goroutine reads (session) and one writes (write): what is queued for the node when the
// writer comes goes in one message.

const (
	receiveBytes = 16 << 20 // Bound of a message of a node.
	retryFirst   = 50 * time.Millisecond
	pingEvery    = 10 * time.Second
	pingTimeout  = 5 * time.Second
	streamWindow = 1 << 20
)

// link is the connection to one node.
type link struct {
	c       *Client
	at      int
	address string
	conn    *grpc.ClientConn
	wake    chan struct{} // Has one token when the writer has something to take. Capacity one.
	going   atomic.Bool   // The node takes no further requests in this session.
}

// newLink prepares the connection to a node, which begins with the first session.
func newLink(c *Client, at int, address string) (*link, error) {
	secure, err := c.cfg.credentials(address)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if c.cfg.TokenFile != "" {
		if _, err := readToken(c.cfg.TokenFile); err != nil {
			return nil, fmt.Errorf("client: token-file: %w", err)
		}
	}
	var dial []grpc.DialOption
	if c.dial != nil {
		dial = append(dial, grpc.WithContextDialer(c.dial))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, append(dial,
		grpc.WithTransportCredentials(secure), grpc.WithNoProxy(), grpc.WithUserAgent("quorate-client"),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(receiveBytes)),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(streamWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: retryFirst, Multiplier: 2, Jitter: 0.2, MaxDelay: c.cfg.RetryInterval}, MinConnectTimeout: c.cfg.DialTimeout,
		}))...)
	if err != nil {
		return nil, fmt.Errorf("client: %s: %w", address, err)
	}
	return &link{c: c, at: at, address: address, conn: conn, wake: make(chan struct{}, 1)}, nil
}

func (l *link) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// run keeps a session with the node until ctx ends.
func (l *link) run(ctx context.Context) {
	pause := retryFirst
	for {
		began := time.Now()
		err := l.session(ctx)
		if ctx.Err() != nil {
			return
		}
		l.down(err)
		if time.Since(began) > l.c.cfg.RetryInterval {
			pause = retryFirst
		}
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, l.c.cfg.RetryInterval)
	}
}

// down tells the machine that the session has ended, and why.
func (l *link) down(err error) {
	text := l.address + ": " + err.Error()
	refused := status.Code(err) == codes.Unauthenticated || status.Code(err) == codes.PermissionDenied
	l.c.log.Warn("no connection to a node", "address", l.address, "error", err)
	l.c.step(func(broker.Instant) {
		l.c.why = errors.New(text)
		l.c.broker.Down(l.at, text, refused, &l.c.out)
	})
}

// session opens a call to the node, and reads until it ends.
func (l *link) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if file := l.c.cfg.TokenFile; file != "" {
		token, err := readToken(file)
		if err != nil {
			return err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	// The timer cancels a dial that exceeds DialTimeout; it runs on a goroutine of package time.
	limit := time.AfterFunc(l.c.cfg.DialTimeout, cancel)
	stream, err := clientv1.NewEntitiesClient(l.conn).Exchange(ctx)
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if !limit.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err == nil && first.GetWelcome() == nil {
		err = errors.New("the node does not begin with a welcome: it is not a gateway")
	}
	if err != nil {
		return err
	}
	l.going.Store(false)
	l.up(first.GetWelcome())
	written := make(chan struct{})
	// Owned by the session: ends with ctx, and the session waits for it.
	go func() {
		defer close(written)
		l.write(ctx, stream)
	}()
	err = l.read(stream)
	cancel()
	<-written
	return err
}

// up tells the machine what the node takes.
func (l *link) up(w *clientv1.Welcome) {
	l.c.log.Info("connected to a node", "address", l.address, "node", w.GetNode())
	l.c.step(func(now broker.Instant) {
		if !l.c.isUp {
			l.c.isUp = true
			close(l.c.ready)
		}
		l.c.broker.Up(now, l.at, w.GetNode(), int(w.GetWindow()), &l.c.out)
	})
}

// read hands the outcomes of the node to the machine until the call ends.
func (l *link) read(stream grpc.BidiStreamingClient[clientv1.Requests, clientv1.Outcomes]) error {
	var outcomes []broker.Outcome
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the node has ended the connection")
		}
		if err != nil {
			return err
		}
		outcomes = outcomes[:0]
		for _, o := range in.GetOutcomes() {
			outcomes = append(outcomes, wire.Outcome(o))
		}
		l.c.step(func(now broker.Instant) {
			l.c.broker.Heard(now, l.at, outcomes, &l.c.out)
		})
		if in.GetGoing() {
			l.c.step(func(broker.Instant) { l.c.broker.Going(l.at, &l.c.out) })
			l.going.Store(true)
			l.wakeUp()
		}
	}
}

// write sends what is queued for the node until ctx ends, or the call does.
func (l *link) write(ctx context.Context, stream grpc.BidiStreamingClient[clientv1.Requests, clientv1.Outcomes]) {
	var taken []*broker.Request
	for {
		runtime.Gosched() // Whoever asks at this moment comes along.
		out := new(clientv1.Requests)
		l.c.mu.Lock()
		now := l.c.now()
		taken = l.c.broker.Take(now, l.at, wire.FrameBytes, taken[:0], &l.c.out)
		out.Requests = wire.Requests(taken, now)
		l.c.deliver()
		l.c.mu.Unlock()
		clear(taken)
		if len(out.GetRequests()) > 0 {
			if err := stream.Send(out); err != nil {
				return // The reader hears why.
			}
			continue
		}
		if l.going.Load() {
			_ = stream.CloseSend() // It returns no error. The node answers what it has, and ends the call.
			return
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
	}
}
