// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The entities of most tests of this package, and what is known of them afterwards: first
// the journal, which all of them write; then the actor, with its start, its stop and its
// receive timeout, which depend on the beginning of its id; then the commands that an actor
// knows, by the first word of a message.

// shardOf returns the shard of an id when its kind has 12 shards, as in these tests.
func shardOf(id string) protocol.ShardID { return protocol.ShardOf(id, 12) }

// entry is one act of an entity: a start, a stop, a message, or the ring of a timer.
type entry struct {
	at    time.Time
	node  int
	id    string
	what  string
	epoch sharding.Epoch
}

// journal holds the entries of all entities of a world, in order.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
}

// of returns the entries of an entity whose text begins with a prefix.
func (j *journal) of(id, prefix string) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []entry
	for _, e := range j.entries {
		if e.id == id && strings.HasPrefix(e.what, prefix) {
			found = append(found, e)
		}
	}
	return found
}

// words returns the texts of the entries of an entity that begin with a prefix, without
// the prefix.
func (j *journal) words(id, prefix string) []string {
	var words []string
	for _, e := range j.of(id, prefix) {
		words = append(words, strings.TrimPrefix(e.what, prefix))
	}
	return words
}

// inOrder expects that an entity handled the numbers from 1 to n of a sender, each once,
// in order.
func (w *world) inOrder(id, sender string, n int) {
	w.t.Helper()
	words := w.journal.words(id, sender+" ")
	require.Len(w.t, words, n, "%s of %s", sender, id)
	for i, s := range words {
		require.Equal(w.t, strconv.Itoa(i+1), s)
	}
}

// actor is an entity that does as it is told, and writes the journal. The first word of a
// message is the command.
type actor struct {
	n    *node
	busy atomic.Bool
}

func (a *actor) note(c *sharding.Context, what string) {
	a.n.w.journal.add(entry{time.Now(), a.n.i, c.ID(), what, c.Epoch()})
}

// enter panics if another call of the same instance is under way. The caller calls the
// returned function at its end.
func (a *actor) enter() func() {
	if a.busy.Swap(true) {
		panic("two calls of one entity at a time")
	}
	return func() { a.busy.Store(false) }
}

func (a *actor) Start(c *sharding.Context) error {
	defer a.enter()()
	a.note(c, "start")
	switch {
	case strings.HasPrefix(c.ID(), "bad-start"):
		return errors.New("no storage")
	case strings.HasPrefix(c.ID(), "panic-start"):
		panic("no storage")
	case strings.HasPrefix(c.ID(), "exit-start"):
		runtime.Goexit()
	case strings.HasPrefix(c.ID(), "slow-start"):
		<-a.n.w.hold
	case strings.HasPrefix(c.ID(), "brief"):
		c.Passivate()
	}
	return nil
}

func (a *actor) Stop(c *sharding.Context) {
	defer a.enter()()
	a.note(c, "stop "+c.StopReason().String())
	switch {
	case strings.HasPrefix(c.ID(), "panic-stop"):
		panic("stop")
	case strings.HasPrefix(c.ID(), "exit-stop"):
		runtime.Goexit()
	case strings.HasPrefix(c.ID(), "slow-stop"):
		<-a.n.w.hold
	case strings.HasPrefix(c.ID(), "late-timer"):
		c.After("late", 0, func(c *sharding.Context) error { a.note(c, "rang late"); return nil })
	}
}

// ReceiveTimeout writes its call into the journal.
func (a *actor) ReceiveTimeout(c *sharding.Context) error {
	defer a.enter()()
	a.note(c, "timeout")
	if strings.HasPrefix(c.ID(), "impatient") {
		return errors.New("nobody talks to me")
	}
	return nil
}

func (a *actor) Receive(c *sharding.Context, m text) error {
	defer a.enter()()
	command, _, _ := strings.Cut(m.GetValue(), " ")
	a.note(c, m.GetValue())
	if act, ok := acts()[command]; ok {
		return act(a, c, m)
	}
	return c.Reply(say("heard " + m.GetValue()))
}

// acts returns the commands that actors know.
func acts() map[string]func(*actor, *sharding.Context, text) error {
	return map[string]func(*actor, *sharding.Context, text) error{
		"where": func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(say(c.Node().String())) },
		"epoch": func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(say(c.Epoch().String())) },
		"kind":  func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(say(c.Kind() + "/" + c.ID())) },
		"wait": func(a *actor, c *sharding.Context, _ text) error {
			<-a.n.w.hold
			return c.Reply(say("waited"))
		},
		"nap": func(_ *actor, c *sharding.Context, _ text) error {
			nap(time.Millisecond)
			return c.Reply(say("slept"))
		},
		"nap-long": func(*actor, *sharding.Context, text) error {
			nap(40 * time.Second)
			return nil
		},
		"context": func(a *actor, c *sharding.Context, _ text) error {
			<-c.Context().Done()
			a.note(c, "ended")
			return c.Reply(say("ended"))
		},
		"look": func(a *actor, c *sharding.Context, _ text) error {
			for ctx := c.Context(); ctx.Err() == nil; {
				nap(time.Millisecond)
			}
			a.note(c, "ended")
			return c.Reply(say("ended"))
		},
		"pass": func(a *actor, c *sharding.Context, m text) error {
			_, to, _ := strings.Cut(m.GetValue(), " ")
			return a.n.region.Tell(c.Context(), to, say("passed by "+c.ID()))
		},
		"endless": func(a *actor, c *sharding.Context, m text) error {
			_, left, _ := strings.Cut(m.GetValue(), " ")
			if n, _ := strconv.Atoi(left); n > 0 {
				return a.n.region.Tell(c.Context(), c.ID(), say("endless "+strconv.Itoa(n-1)))
			}
			return nil
		},
		"ask": func(a *actor, c *sharding.Context, m text) error {
			_, to, _ := strings.Cut(m.GetValue(), " ")
			reply, err := sharding.Ask[text](c.Context(), a.n.region, to, say("x"))
			if err != nil {
				return c.Reply(say(err.Error()))
			}
			return c.Reply(reply)
		},
		"flood": func(a *actor, c *sharding.Context, m text) error {
			_, to, _ := strings.Cut(m.GetValue(), " ")
			nap(time.Millisecond) // Whoever floods this entity is in the middle of a message then, too.
			for range 100 {
				if err := a.n.region.Tell(c.Context(), to, say("x")); err != nil {
					a.note(c, "overloaded")
					if !errors.Is(err, sharding.ErrOverloaded) {
						return err
					}
					break
				}
			}
			return c.Reply(m)
		},
		"fail":   func(*actor, *sharding.Context, text) error { return errors.New("broken") },
		"panic":  func(*actor, *sharding.Context, text) error { panic("broken") },
		"exit":   func(*actor, *sharding.Context, text) error { runtime.Goexit(); return nil },
		"silent": func(*actor, *sharding.Context, text) error { return nil },
		"long":   func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(say(strings.Repeat("x", 5000))) },
		"huge":   func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(say(strings.Repeat("x", 200<<10))) },
		"nil": func(_ *actor, c *sharding.Context, _ text) error {
			return errors.Join(c.Reply(nil), c.Reply(text(nil)))
		},
		"twice": func(_ *actor, c *sharding.Context, m text) error { return errors.Join(c.Reply(m), c.Reply(m)) },
		"passivate": func(_ *actor, c *sharding.Context, _ text) error {
			c.Passivate()
			return c.Reply(say("good night"))
		},
		"after": after,
		"cancel": func(_ *actor, c *sharding.Context, m text) error {
			return c.Reply(say(fmt.Sprint(c.CancelTimer(words(m)[1]))))
		},
		"patience": func(_ *actor, c *sharding.Context, m text) error {
			c.SetReceiveTimeout(duration(words(m)[1]))
			return c.Reply(m)
		},
		"trace": func(a *actor, c *sharding.Context, _ text) error {
			in := trace.SpanContextFromContext(c.Context())
			seen := fmt.Sprintf("trace %s %t %s", in.TraceID(), in.IsSampled(), in.TraceState())
			a.note(c, seen)
			return c.Reply(say(seen))
		},
		"baggage": func(_ *actor, c *sharding.Context, _ text) error {
			return c.Reply(say(baggage.FromContext(c.Context()).String()))
		},
		"lease": func(_ *actor, c *sharding.Context, _ text) error {
			token, held := c.LeaseToken()
			if !held {
				return errors.New("no lease")
			}
			return c.Reply(say(fmt.Sprintf("lease %d", token)))
		},
		"number": func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(wrapperspb.Int64(1)) },
		"int":    func(_ *actor, c *sharding.Context, _ text) error { return c.Reply(new(int)) },
	}
}

func words(m text) []string { return strings.Fields(m.GetValue()) }

func duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return d
}

// after carries out the command "after name duration command...": it sets a timer that
// writes into the journal that it rang, and then carries out the other command, if there is
// one.
func after(a *actor, c *sharding.Context, m text) error {
	w := words(m)
	c.After(w[1], duration(w[2]), func(c *sharding.Context) error {
		defer a.enter()()
		a.note(c, "rang "+w[1])
		if len(w) > 3 {
			return acts()[w[3]](a, c, say(strings.Join(w[3:], " ")))
		}
		return nil
	})
	return c.Reply(m)
}

// goroutines returns the number of goroutines of the process.
func goroutines() int { return runtime.NumGoroutine() }
