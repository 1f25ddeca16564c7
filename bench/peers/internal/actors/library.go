// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// What a library is ([Actors], [Library]), then its messages ([Value], [Take]), and what is measured: tells and asks, here
// and between processes.

// Actors are the actors of a library that a process tells and asks. All methods but Close are safe for concurrent use.
type Actors interface {
	// Tell sends one of the actors a new message, and does not wait for it to be handled.
	Tell(ctx context.Context, actor int, sender uint32, seq uint64) error
	// Ask sends one of the actors a new message, and waits for the answer, which is that message.
	Ask(ctx context.Context, actor int, sender uint32, seq uint64) error
	Close()
}

// Library is what is measured.
type Library struct {
	Name string
	// Unbounded says that Tell never waits: mailboxes and queues have no bound. Then a sender waits, once in a while,
	// until all senders are at most [Ahead] messages each before the receivers.
	Unbounded bool
	// Here starts actors in this process, which check their messages and tell the tally what they find.
	Here func(ctx context.Context, s harness.Spec, found *harness.Tally) (Actors, error)
	// Host starts actors that other processes tell and ask, and returns the address of this process.
	Host func(ctx context.Context, s harness.Spec, found *harness.Tally) (address string, end func(), err error)
	// There finds the actors of the process at an address.
	There func(ctx context.Context, s harness.Spec, address string) (Actors, error)
}

// AskTimeout is how long libraries wait for an answer that take a time and no context.
const AskTimeout = 10 * time.Second

// Name is the name of the i-th actor.
func Name(i int) string { return "actor-" + strconv.Itoa(i) }

// questionBit marks, in the number of the sender, a message that is to be answered.
const questionBit = 1 << 31

// Value makes a message.
func Value(size int, sender uint32, seq uint64) *wrapperspb.BytesValue {
	b := make([]byte, size)
	harness.PutHeader(b, sender, seq)
	return wrapperspb.Bytes(b)
}

// Question makes a message that is to be answered, with itself.
func Question(size int, sender uint32, seq uint64) *wrapperspb.BytesValue {
	return Value(size, sender|questionBit, seq)
}

// Take checks a message that an actor has received, and reports whether it is a question.
func Take(r *harness.Receiver, m *wrapperspb.BytesValue) (question bool) {
	if len(m.GetValue()) < harness.HeaderBytes {
		r.Take(0, 0, len(m.GetValue())) // It is of no size that was sent.
		return false
	}
	sender, seq := harness.Header(m.GetValue())
	r.Take(sender&^questionBit, seq, len(m.GetValue()))
	return sender&questionBit != 0
}

// Answers returns an error if an answer is not to the question that is meant.
func Answers(answer any, size int, sender uint32, seq uint64) error {
	m, ok := answer.(*wrapperspb.BytesValue)
	if !ok || len(m.GetValue()) != size {
		return fmt.Errorf("the answer to question %d of %d is a %T of another size", seq, sender, answer)
	}
	if asker, question := harness.Header(m.GetValue()); asker != sender|questionBit || question != seq {
		return fmt.Errorf("the answer is to question %d of %d, not to %d of %d", question, asker&^questionBit, seq, sender)
	}
	return nil
}

// Receiver returns what checks the messages of one actor: from the senders, and from one more that asks it first.
func Receiver(s harness.Spec, found *harness.Tally) *harness.Receiver {
	return found.Receiver(s.Senders+1, s.Size)
}

// LocalTells measures tells to actors of the same process.
func (l Library) LocalTells(ctx context.Context, s harness.Spec, _ *harness.Link) (figure.Outcome, error) {
	var found harness.Tally
	a, err := l.Here(ctx, s, &found)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer a.Close()
	return l.tellAll(ctx, s, a, harness.Marks(found.Totals, harness.NoCPU), localLook)
}

// RemoteTells measures tells to actors of another process.
func (l Library) RemoteTells(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	err = l.there(ctx, s, k, func(a Actors, at harness.MarkFunction) error {
		out, err = l.tellAll(ctx, s, a, at, remoteLook)
		return err
	})
	return out, err
}

// Asks measures questions to actors of another process, each asker with an actor of its own.
func (l Library) Asks(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	err = l.there(ctx, s, k, func(a Actors, at harness.MarkFunction) error {
		if err := prime(ctx, s, a); err != nil {
			return err
		}
		out, err = harness.Asking{
			Askers: s.Senders, Time: s.Time, Mark: harness.Without(uint64(s.Entities), at),
			Ask: func(ctx context.Context, asker uint32, seq uint64) error {
				return a.Ask(ctx, int(asker)%s.Entities, asker, seq)
			},
		}.Run(ctx)
		return err
	})
	return out, err
}

// Serve hosts the actors of [Library.RemoteTells] and [Library.Asks].
func (l Library) Serve(ctx context.Context, s harness.Spec, k *harness.Link) error {
	var found harness.Tally
	address, end, err := l.Host(ctx, s, &found)
	if err != nil {
		return err
	}
	defer end()
	return k.HostMarks(address, &found)
}

// there calls f with the actors of another process, which it starts and ends.
func (l Library) there(ctx context.Context, s harness.Spec, k *harness.Link, f func(Actors, harness.MarkFunction) error) error {
	p, address, err := k.Peer(ctx, s.As(l.Name))
	if err != nil {
		return err
	}
	defer p.Stop()
	a, err := l.There(ctx, s, address)
	if err != nil {
		return err
	}
	defer a.Close()
	return f(a, p.Marks)
}

// prime asks every actor once, so that all are there and connections are open.
func prime(ctx context.Context, s harness.Spec, a Actors) error {
	for i := range s.Entities {
		if err := a.Ask(ctx, i, uint32(s.Senders), uint64(i)+1); err != nil {
			return fmt.Errorf("bench: the first question to actor %d: %w", i, err)
		}
	}
	return nil
}
