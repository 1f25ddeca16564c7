// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Floors are what the machine can do at most, measured with the same messages and the same checks
// as the product: over a channel ([Channel]), and in files of their own over TCP and over gRPC. What
// the latter two have in common comes last: askers that share a connection ([askOver]).

// The roles of the peers of floors.
const (
	roleTCPSink  = "tcp-sink"
	roleTCPEcho  = "tcp-echo"
	roleGRPCSink = "grpc-sink"
	roleGRPCEcho = "grpc-echo"
)

// Servers returns the peers of the floors, and of experiments on processors that are kept awake.
func Servers() map[string]Server {
	return map[string]Server{
		roleTCPSink: serveTCPSink, roleTCPEcho: serveTCPEcho, roleGRPCSink: serveGRPCSink, roleGRPCEcho: serveGRPCEcho,
		RoleAwake: ServeAwake,
	}
}

// ChannelFloor is the floor within one process.
func ChannelFloor() Experiment {
	return Single(Channel, Spec{Size: 64, Senders: Senders}, figure.Figure{Name: "floor-channel"}).AsFloor()
}

// channelDepth is how many messages a channel of the floor holds: enough that neither
// side waits for every single one.
const channelDepth = 1024

// Channel measures the floor of everything local: each sender passes its messages
// over a channel to a goroutine that checks them.
func Channel(ctx context.Context, s Spec, _ *Link) (figure.Outcome, error) {
	var found Tally
	payload := make([]byte, s.Size-HeaderBytes)
	channels := make([]chan *Message, s.Senders)
	var receivers sync.WaitGroup
	for i := range channels {
		channels[i] = make(chan *Message, channelDepth)
		r := found.Receiver(s.Senders, s.Size)
		// Owned by this function: ends when its channel is closed below.
		receivers.Go(func() {
			for m := range channels[i] {
				r.Take(m.Sender, m.Seq, HeaderBytes+len(m.Payload))
			}
		})
	}
	defer receivers.Wait()
	out, err := Flood{
		Senders: s.Senders, Time: s.Time, Mark: Marks(found.Totals, NoCPU),
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			for !stop.Load() {
				n++
				channels[sender] <- &Message{Sender: sender, Seq: n, Payload: payload}
			}
			return n, nil
		},
	}.Run(ctx)
	for _, c := range channels {
		close(c)
	}
	return out, err
}

// An askers' connection: ask sends a question with one number of one asker, next waits for the next
// answer, and close makes next fail.
type connection struct {
	ask   func(asker uint32, seq uint64) error
	next  func() (asker uint32, seq uint64, err error)
	close func() error
}

// askOver measures the floor of asks: all askers share one connection to an echo in another process.
func askOver(ctx context.Context, s Spec, k *Link, echo string, open func(ctx context.Context, address string) (connection, error)) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(echo))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := open(life, address)
	if err != nil {
		return figure.Outcome{}, err
	}
	answers := newAnswers(s.Senders)
	var reader sync.WaitGroup
	// Owned by this function: ends when the connection is closed below.
	reader.Go(func() {
		for {
			asker, seq, err := c.next()
			if err != nil {
				answers.end(err)
				return
			}
			answers.deliver(asker, seq)
		}
	})
	out, err := Asking{
		Askers: s.Senders, Time: s.Time, Mark: p.Marks,
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			if err := c.ask(asker, seq); err != nil {
				return err
			}
			return answers.await(ctx, asker, seq)
		},
	}.Run(ctx)
	err = errors.Join(err, c.close())
	reader.Wait()
	return out, err
}

// answers hands answers to the waiting askers.
type answers struct {
	to    []chan uint64 // By asker; of capacity one, since an asker asks one question at a time.
	ended chan struct{}
	err   error // Set before ended is closed.
}

// newAnswers returns answers for a number of askers.
func newAnswers(askers int) *answers {
	a := &answers{to: make([]chan uint64, askers), ended: make(chan struct{})}
	for i := range a.to {
		a.to[i] = make(chan uint64, 1)
	}
	return a
}

// deliver hands over an answer. It belongs to the reader's goroutine.
func (a *answers) deliver(asker uint32, seq uint64) {
	if int(asker) < len(a.to) {
		a.to[asker] <- seq
	}
}

// end says that no more answers come.
func (a *answers) end(err error) {
	a.err = err
	close(a.ended)
}

// await waits for the answer to a question.
func (a *answers) await(ctx context.Context, asker uint32, seq uint64) error {
	select {
	case got := <-a.to[asker]:
		if got != seq {
			return fmt.Errorf("the answer is to question %d, want %d", got, seq)
		}
		return nil
	case <-a.ended:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
