// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The driver in virtual time, with machines that record their inputs and carry out
// commands. First come timers and a full inbox, closing, and components that are attached to
// a running node; then messages and effects, calls, and a benchmark.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a machine that records its inputs and carries out commands.
type recorder struct {
	mu     sync.Mutex
	inputs []machine.Input
	at     []machine.Instant
}

// do is a command that appends effects.
type do []machine.Effect

func (r *recorder) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if effects, ok := in.(do); ok {
		for _, e := range effects {
			out.Add(e)
		}
		return
	}
	r.inputs = append(r.inputs, in)
	r.at = append(r.at, now.Mono)
}

func (r *recorder) seen() []machine.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]machine.Input(nil), r.inputs...)
}

func start(t *testing.T, ports machine.Ports, inbox int) (*machine.Driver, *machine.Handle, *recorder) {
	t.Helper()
	if ports.Clock == nil {
		ports.Clock = machine.NewSystemClock()
	}
	d := machine.NewDriver(ports, inbox)
	r := new(recorder)
	h, err := d.Attach(machine.Component{Name: "recorder", Service: 9, Machine: r, Codec: text{}})
	require.NoError(t, err)
	d.Start()
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, h, r
}

// text is a codec of strings that do not begin with an exclamation mark.
type text struct{}

func (text) Append(dst []byte, message any) ([]byte, error) {
	return append(dst, message.(string)...), nil
}

func (text) Decode(b []byte) (any, error) {
	if len(b) > 0 && b[0] == '!' {
		return nil, errors.New("exclamation mark")
	}
	return string(b), nil
}

func TestTimersFireOnceAtTheirTimeUnlessTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, r := start(t, machine.Ports{}, 0)
		require.NoError(t, h.Post(do{
			machine.Arm{Timer: "late", At: machine.Instant(2 * time.Second)},
			machine.Arm{Timer: "early", At: machine.Instant(time.Second)},
			machine.Arm{Timer: "gone", At: machine.Instant(time.Second)},
			machine.Arm{Timer: "moved", At: machine.Instant(time.Second)},
			machine.Arm{Timer: "never", At: machine.Never},
			machine.Disarm{Timer: "gone"},
			machine.Arm{Timer: "moved", At: machine.Instant(3 * time.Second)},
		}))
		<-time.After(time.Hour)
		require.Equal(t, []machine.Input{
			machine.Started{}, machine.Fired{Timer: "early"}, machine.Fired{Timer: "late"}, machine.Fired{Timer: "moved"},
		}, r.seen())
		require.Equal(t, []machine.Instant{
			0, machine.Instant(time.Second), machine.Instant(2 * time.Second), machine.Instant(3 * time.Second),
		}, r.at)
	})
}

// A machine that arms timers in the past is fed its inbox nevertheless.
func TestTimerInThePastDoesNotShutOutInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan struct{})
		d := machine.NewDriver(machine.Ports{Clock: machine.NewSystemClock()}, 0)
		h, err := d.Attach(machine.Component{Name: "busy", Machine: script(
			func(_ machine.Now, in machine.Input, out *machine.Outbox) {
				if in == "stop" {
					close(heard)
					return
				}
				select {
				case <-heard:
				default:
					out.Arm("again", 0)
				}
			})})
		require.NoError(t, err)
		d.Start()
		require.NoError(t, h.Post("stop"))
		<-heard
		require.NoError(t, d.Close())
	})
}

func TestFullInboxRefusesOrMakesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d, h, r := start(t, machine.Ports{Publish: func(*machine.Component, any) { <-gate }}, 2)
		require.NoError(t, h.Post(do{machine.Publish{Event: "block"}}))
		synctest.Wait()
		require.NoError(t, h.Post(1))
		require.NoError(t, h.Post(2))
		require.ErrorIs(t, h.Post(3), machine.ErrFull)
		require.EqualValues(t, 1, d.Stats().Refused)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, h.PostWait(ctx, 4), context.DeadlineExceeded)

		go func() { close(gate) }()
		require.NoError(t, h.PostWait(t.Context(), 5))
		synctest.Wait()
		require.Equal(t, []machine.Input{machine.Started{}, 1, 2, 5}, r.seen())
	})
}

func TestEverythingIsRefusedAfterClose(t *testing.T) {
	d, h, _ := start(t, machine.Ports{}, 0)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, h.Post(1), machine.ErrClosed)
	require.ErrorIs(t, h.PostWait(t.Context(), 1), machine.ErrClosed)
	_, err := d.Attach(machine.Component{Name: "late", Machine: new(recorder)})
	require.ErrorIs(t, err, machine.ErrClosed)
	<-d.Done()

	never := machine.NewDriver(machine.Ports{Clock: machine.NewSystemClock()}, 0)
	require.NoError(t, never.Close())
	never.Start()
	<-never.Done()
}

func TestComponentCanBeAttachedToARunningNode(t *testing.T) {
	d, h, r := start(t, machine.Ports{}, 0)
	other := new(recorder)
	_, err := d.Attach(machine.Component{Name: "late", Service: 10, Machine: other})
	require.NoError(t, err)
	require.Equal(t, []machine.Input{machine.Started{}}, other.seen())
	_, err = d.Attach(machine.Component{Name: "later", Service: 10, Machine: new(recorder)})
	require.ErrorIs(t, err, machine.ErrTaken)
	require.NoError(t, h.Post(do{machine.Publish{Event: "news"}}))
	require.NoError(t, d.Close())
	require.Contains(t, r.seen(), machine.Attached{Name: "late", Service: 10})
}

func TestReceivedMessagesAreDecodedAndGarbledOnesCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h, r := start(t, machine.Ports{}, 0)
		from := gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: 7}
		require.NoError(t, h.Receive(t.Context(), from, []byte("hello")))
		require.ErrorContains(t, h.Receive(t.Context(), from, []byte("!")), "message of 1 bytes from a:1#7 for recorder")
		synctest.Wait()
		require.EqualValues(t, 1, d.Stats().Garbled)
		require.Equal(t, []machine.Input{machine.Started{}, machine.Received{From: from, Message: "hello"}}, r.seen())
	})
}

// Deliver waits until the machine has taken the message, and no longer than its
// context allows.
func TestDeliveredMessagesHaveBeenTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		_, h, r := start(t, machine.Ports{Publish: func(*machine.Component, any) { <-hold }}, 0)
		from := gossip.NodeID{Address: gossip.Address{Host: "b", Port: 1}, UID: 2}
		require.NoError(t, h.Deliver(t.Context(), from, []byte("large")))
		require.Contains(t, r.seen(), machine.Received{From: from, Message: "large"})
		require.Error(t, h.Deliver(t.Context(), from, []byte("!")))
		require.NoError(t, h.Post(do{machine.Publish{Event: "the driver stands still"}}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, h.Deliver(ctx, from, []byte("late")), context.DeadlineExceeded)
		close(hold)
	})
}

func TestEffectsReachTheirPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		type own struct{ n int }
		_, h, _ := start(t, machine.Ports{
			Send:    func(c *machine.Component, s machine.Send) { j.note("%s sends %v", c.Name, s.Message) },
			Publish: func(c *machine.Component, e any) { j.note("%s publishes %v", c.Name, e) },
			Decide:  func(c string, _ machine.Now, d machine.Decide) { j.note("%s decides %s", c, d.Verdict) },
			Other:   func(c *machine.Component, e machine.Effect) { j.note("%s asks for %v", c.Name, e) },
		}, 0)
		require.NoError(t, h.Post(do{
			machine.Send{Message: 1}, machine.Publish{Event: 2}, machine.Decide{Verdict: "3"}, own{4},
		}))
		synctest.Wait()
		require.Equal(t, []string{
			"recorder sends 1", "recorder publishes 2", "recorder decides 3", "recorder asks for {4}",
		}, j.lines)
	})
}

// silent is an error that panics when it is asked for its text, as one does that is a nil pointer.
type silent struct{ text string }

func (s *silent) Error() string { return s.text }

// An error of a call that has no text to give is one of the port, and not one of the machine that reads it.
func TestCallsWhoseErrorsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, r := start(t, machine.Ports{
			Call: func(context.Context, string, machine.Call) (any, error) { return nil, (*silent)(nil) },
		}, 0)
		require.NoError(t, h.Post(do{machine.Call{ID: 1, Port: "a", Limit: time.Second}}))
		synctest.Wait()
		called, ok := r.seen()[1].(machine.Called)
		require.True(t, ok)
		var panicked *machine.PanicError
		require.ErrorAs(t, called.Err, &panicked)
		require.NotEmpty(t, called.Err.Error())
	})
}

// covers F40, I34.
func TestCallsCannotHoldUpTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d, h, r := start(t, machine.Ports{
			Call: func(ctx context.Context, _ string, c machine.Call) (any, error) {
				switch c.Request {
				case "obey":
					<-ctx.Done()
					return nil, ctx.Err()
				case "ignore":
					<-release
					return "too late", nil
				case "panic":
					panic("boom")
				}
				return c.Request, nil
			},
		}, 0)
		ask := func(id machine.CallID, port string, request any) {
			port, key, _ := strings.Cut(port, "/")
			require.NoError(t, h.Post(do{machine.Call{ID: id, Port: port, Key: key, Request: request, Limit: time.Second}}))
		}
		answers := func(n int) map[machine.CallID]machine.Called {
			synctest.Wait()
			got := make(map[machine.CallID]machine.Called)
			for _, in := range r.seen() {
				if called, ok := in.(machine.Called); ok {
					got[called.ID] = called
				}
			}
			require.Len(t, got, n)
			return got
		}
		ask(1, "a", 42)
		ask(2, "b", "panic")
		got := answers(2)
		require.Equal(t, 42, got[1].Result)
		var panicked *machine.PanicError
		require.ErrorAs(t, got[2].Err, &panicked)
		require.Equal(t, "boom", panicked.Value)

		// One call runs, one waits, and the third is refused at once.
		ask(3, "c", "obey")
		synctest.Wait()
		ask(4, "c", "quick")
		synctest.Wait()
		ask(5, "c", "quick")
		require.ErrorIs(t, answers(3)[5].Err, machine.ErrBusy)
		<-time.After(time.Second)
		got = answers(5)
		require.ErrorIs(t, got[3].Err, context.DeadlineExceeded)
		require.Zero(t, d.Stats().Abandoned)

		// A call that ignores its context is answered at its limit, and its
		// port is busy until it returns. Other ports and keys are not.
		ask(6, "d", "ignore")
		<-time.After(2 * time.Second)
		require.ErrorIs(t, answers(6)[6].Err, context.DeadlineExceeded)
		require.EqualValues(t, 1, d.Stats().Abandoned)
		ask(7, "d", "quick")
		ask(8, "c", "quick")
		got = answers(8)
		require.ErrorIs(t, got[7].Err, machine.ErrBusy)
		require.Equal(t, "quick", got[8].Result)
		ask(9, "d/key", "quick")
		require.Equal(t, "quick", answers(9)[9].Result)
		close(release)
		synctest.Wait()
		ask(10, "d", "quick")
		require.Equal(t, "quick", answers(10)[10].Result)
	})
}

func TestCloseEndsCallsThatObey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		d, h, _ := start(t, machine.Ports{
			Call: func(ctx context.Context, _ string, _ machine.Call) (any, error) {
				<-ctx.Done()
				close(ended)
				return nil, ctx.Err()
			},
		}, 0)
		require.NoError(t, h.Post(do{machine.Call{ID: 1, Port: "a", Limit: time.Hour}}))
		synctest.Wait()
		require.NoError(t, d.Close())
		<-ended
	})
}

func TestCallsWithoutAPortAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, r := start(t, machine.Ports{}, 0)
		require.NoError(t, h.Post(do{machine.Call{ID: 1, Port: "a", Limit: time.Second}}))
		synctest.Wait()
		require.ErrorContains(t, r.seen()[1].(machine.Called).Err, `nothing here answers calls to port "a"`)
	})
}

func BenchmarkPostAndStep(b *testing.B) {
	d := machine.NewDriver(machine.Ports{Clock: machine.NewSystemClock()}, 0)
	var steps int
	h, err := d.Attach(machine.Component{Name: "counter", Machine: script(
		func(now machine.Now, _ machine.Input, out *machine.Outbox) {
			steps++
			out.Arm("timer", now.Mono.Add(time.Second))
		})})
	require.NoError(b, err)
	d.Start()
	b.ReportAllocs()
	for b.Loop() {
		if err := h.PostWait(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, d.Close())
}
