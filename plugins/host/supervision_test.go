// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/process"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// Supervision in virtual time: a launcher that the tests direct starts fake processes in
// place of real ones. After these fakes come tests of what a host tells of its plugins, of
// gaps, loops of crashes and health checks, of answers around a swap, of what a call says about its process,
// and of swaps, launches and closing that wait for something.

var errBoom = errors.New("boom")

// fakeProcess behaves like a process as package process presents it, in virtual
// time.
type fakeProcess struct {
	pid    int
	exited chan struct{}
	once   sync.Once

	mu     sync.Mutex
	err    error
	kills  []time.Duration
	health func(context.Context) error                                // nil: healthy.
	call   func(context.Context) (*pluginv1.RebalanceResponse, error) // nil: the answer has pid letters, see ask.
	class  *pluginv1.Class
	lasts  time.Duration // How long Kill takes.
	stuck  bool          // The process does not end when it is killed.
}

func (f *fakeProcess) Conn() grpc.ClientConnInterface { return f }
func (f *fakeProcess) Contract() int                  { return plugins.Version1 }
func (f *fakeProcess) PID() int                       { return f.pid }
func (f *fakeProcess) Started() time.Time             { return time.Time{} }
func (f *fakeProcess) Exited() <-chan struct{}        { return f.exited }

func (f *fakeProcess) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fakeProcess) Health(ctx context.Context, _ ...grpc.CallOption) error {
	f.mu.Lock()
	health := f.health
	f.mu.Unlock()
	if health == nil {
		return nil
	}
	return health(ctx)
}

func (f *fakeProcess) Kill(grace time.Duration) error {
	f.mu.Lock()
	f.kills = append(f.kills, grace)
	f.mu.Unlock()
	<-time.After(f.lasts) //quorate:realtime So long the fake takes, in the bubbles of the tests.
	if f.stuck {
		return process.ErrStuck
	}
	f.end(errors.New("killed"))
	return nil
}

// end ends the process with an error, unless it has ended.
func (f *fakeProcess) end(err error) {
	f.once.Do(func() {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
		close(f.exited)
	})
}

func (f *fakeProcess) ordered() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kills
}

func (f *fakeProcess) Invoke(ctx context.Context, _ string, _, answer any, _ ...grpc.CallOption) error {
	switch answer := answer.(type) {
	case *pluginv1.ConfigureResponse:
		proto.Merge(answer, &pluginv1.ConfigureResponse{Name: "fake", Policy: pluginv1.Policy_POLICY_ALLOCATION, Class: f.class})
	case *pluginv1.RebalanceResponse:
		f.mu.Lock()
		call := f.call
		f.mu.Unlock()
		if call == nil {
			answer.Summary = strings.Repeat("I", f.pid)
			return nil
		}
		res, err := call(ctx)
		if err != nil {
			return err
		}
		proto.Merge(answer, res)
	}
	return nil
}

func (f *fakeProcess) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errBoom
}

// fakeLauncher launches fake processes, as its script says.
type fakeLauncher struct {
	mu        sync.Mutex
	launched  []*fakeProcess
	script    func(ctx context.Context, f *fakeProcess) error // nil: each launch succeeds.
	stageErr  error
	wasClosed bool
}

func (l *fakeLauncher) Stage(context.Context, string, plugins.Checksums) (*process.Binary, error) {
	return &process.Binary{}, l.stageErr
}

func (l *fakeLauncher) Launch(ctx context.Context, _ *process.Binary, _ process.Command) (running, error) {
	l.mu.Lock()
	f := &fakeProcess{pid: len(l.launched) + 1, exited: make(chan struct{})}
	l.launched = append(l.launched, f)
	script := l.script
	l.mu.Unlock()
	if script != nil {
		if err := script(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (l *fakeLauncher) Close() error {
	l.wasClosed = true
	return errBoom // The plugin only logs this error.
}

func (l *fakeLauncher) first() *fakeProcess {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.launched[0]
}

func (l *fakeLauncher) latest() *fakeProcess {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.launched[len(l.launched)-1]
}

// breaks makes every call fail as on a broken connection.
func (f *fakeProcess) breaks() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.call = func(context.Context) (*pluginv1.RebalanceResponse, error) {
		return nil, status.Error(codes.Unavailable, "EOF")
	}
}

func fakeConfig(t *testing.T) plugins.Config {
	t.Helper()
	path, err := filepath.Abs("plugin")
	require.NoError(t, err)
	return plugins.Config{Policy: plugins.Allocation, Path: path, Unpinned: true}
}

// openFake opens a plugin whose processes are fakes.
func openFake(t *testing.T, l *fakeLauncher) (*Plugin, *Events, error) {
	t.Helper()
	var e Events
	p, err := Open(t.Context(), "subject", fakeConfig(t), WithObserver(e.Observe), func(o *options) {
		o.launcher = func(string, *slog.Logger) (launcher, error) { return l, nil }
	})
	return p, &e, err
}

// A host tells both the node and the observer of its own options what happens to a plugin.
func TestAHostTellsTheNodeAndTheObserverOfItsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(context.Context, *fakeProcess) error { return nil }}
		var node, own Events
		h := New(WithObserver(own.Observe), func(o *options) {
			o.launcher = func(string, *slog.Logger) (launcher, error) { return l, nil }
		})
		p, err := h.Open(t.Context(), "subject", fakeConfig(t), slog.New(slog.DiscardHandler), node.Observe)
		require.NoError(t, err)
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, []plugins.EventType{plugins.Started, plugins.Exited, plugins.Closed}, node.Types())
		require.Equal(t, node.Types(), own.Types())
		_, err = h.Open(t.Context(), "subject", plugins.Config{}, slog.New(slog.DiscardHandler), node.Observe)
		require.ErrorContains(t, err, "policy: ")
	})
}

// ask calls the plugin and returns the pid of the fake process that answers.
func ask(t *testing.T, p *Plugin) (int, error) {
	t.Helper()
	s, err := p.Allocation()
	require.NoError(t, err)
	res, err := s.Rebalance(t.Context(), allocation.RebalanceRequest{})
	return len(res.Reason), err
}

func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestGapIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(_ context.Context, f *fakeProcess) error {
			if f.pid == 2 {
				return errBoom
			}
			<-time.After(50 * time.Millisecond)
			return nil
		}}
		p, e, err := openFake(t, l)
		require.NoError(t, err)
		wait(time.Minute)
		l.first().end(errBoom)
		wait(250 * time.Millisecond)
		// The first launch, after 100 ms, has failed; the next comes 200 ms later.
		s := p.Status()
		require.Equal(t, plugins.StateWaiting, s.State)
		require.Equal(t, 250*time.Millisecond, s.Away)
		require.Equal(t, s.Away, s.AwayTotal)
		require.Equal(t, 50*time.Millisecond, time.Until(s.NextTry))
		_, err = ask(t, p)
		away, ok := errors.AsType[*plugins.UnavailableError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, 250*time.Millisecond, time.Since(away.Since))
		require.Equal(t, s.NextTry, away.NextTry)
		require.ErrorIs(t, away.Why, errBoom)
		wait(100 * time.Millisecond)
		s = p.Status()
		require.Equal(t, plugins.StateRunning, s.State)
		require.Equal(t, 350*time.Millisecond, s.AwayLast)
		require.Zero(t, s.Away)
		n, err := ask(t, p)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.NoError(t, p.Close(t.Context()))
		require.True(t, l.wasClosed)
		require.Equal(t, []plugins.EventType{plugins.Started, plugins.Exited, plugins.Refused, plugins.Restarted, plugins.Exited, plugins.Closed}, e.Types())
	})
}

// A plugin that crashes is seen in a log of warnings from the first crash on, with the number of failures in a row: not
// those of the life of the node, nor those since the last try. An end that was ordered is no warning.
func TestALoopOfCrashesIsWarnedOfFromTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer // Read only while everything rests.
		var e Events
		l := &fakeLauncher{}
		log := slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
		p, err := Open(t.Context(), "subject", fakeConfig(t), WithObserver(e.Observe), WithLogger(log), func(o *options) {
			o.launcher = func(string, *slog.Logger) (launcher, error) { return l, nil }
		})
		require.NoError(t, err)
		wait(time.Hour)
		lines.Reset() // That it is not pinned.
		type line struct {
			Level, Msg string
			Failures   int
			NextTry    time.Time `json:"next_try"`
		}
		crash := func() (told []line) {
			l.latest().end(errBoom)
			synctest.Wait()
			for dec := json.NewDecoder(&lines); dec.More(); {
				var one line
				require.NoError(t, dec.Decode(&one))
				require.WithinDuration(t, p.Status().NextTry, one.NextTry, 0)
				one.NextTry = time.Time{}
				told = append(told, one)
			}
			lines.Reset() // The decoder has read it all.
			require.NotEmpty(t, told)
			require.Equal(t, told[len(told)-1].Failures, p.Status().FailedInARow)
			wait(time.Until(p.Status().NextTry) + time.Second)
			lines.Reset() // That it is not pinned.
			return told
		}
		ended := func(failures int) line {
			return line{Level: "WARN", Msg: "the process of the plugin has ended", Failures: failures}
		}
		broken := func(failures int) line {
			return line{Level: "ERROR", Msg: "the plugin fails again and again, and is left alone for a while", Failures: failures}
		}
		for i := range 4 {
			require.Equal(t, []line{ended(i + 1)}, crash())
		}
		require.Equal(t, []line{ended(5), broken(5)}, crash())
		require.Equal(t, []line{ended(6), broken(6)}, crash(), "the trial of the breaker")
		last, _ := e.Last(plugins.Broken)
		require.Equal(t, 6, last.FailedInARow)
		last, _ = e.Last(plugins.Exited)
		require.Equal(t, 6, last.FailedInARow)
		wait(2 * time.Minute)
		require.Zero(t, p.Status().FailedInARow, "it works")
		require.Equal(t, []line{ended(1)}, crash(), "another loop")
		require.NoError(t, p.Close(t.Context()))
		synctest.Wait()
		require.NotContains(t, lines.String(), "the process of the plugin has ended")
	})
}

func TestPluginIsAStrategyOfItsKindAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, err := openFake(t, &fakeLauncher{})
		require.NoError(t, err)
		_, err = As[allocation.Strategy](p)
		require.NoError(t, err)
		_, err = p.Downing()
		require.ErrorIs(t, err, plugins.ErrPolicy)
		require.ErrorContains(t, err, "it is for allocation, and is used for downing")
		_, err = As[context.Context](p)
		require.ErrorIs(t, err, plugins.ErrPolicy)
		require.NoError(t, p.Close(t.Context()))
	})
}

// Hosts run every policy of the contract.
func TestEveryPolicyIsRun(t *testing.T) {
	require.ElementsMatch(t, plugins.Policies(), Policies())
}

func TestSickProcessIsKilledAfterThreeChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{}
		p, e, err := openFake(t, l)
		require.NoError(t, err)
		began := time.Now()
		sick := l.first()
		sick.mu.Lock()
		sick.health = func(ctx context.Context) error {
			<-ctx.Done() // Like a process that is stopped.
			return ctx.Err()
		}
		sick.mu.Unlock()
		<-sick.Exited()
		require.Equal(t, 4*time.Second, time.Since(began), "the first check after 1 s, and three of 1 s each")
		require.Equal(t, []time.Duration{0}, sick.ordered(), "without grace")
		wait(time.Second)
		require.Equal(t, uint64(1), p.Status().Restarts)
		require.Equal(t, []plugins.EventType{plugins.Started, plugins.Unhealthy, plugins.Exited, plugins.Restarted}, e.Types())
		require.NoError(t, p.Close(t.Context()))
	})
}

// An answer that comes after its process was given up is dropped and counted; the
// decision comes from the new process or fails.
func TestAnswerAfterTheDrainIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{}
		p, _, err := openFake(t, l)
		require.NoError(t, err)
		old := l.first()
		old.mu.Lock()
		old.call = func(context.Context) (*pluginv1.RebalanceResponse, error) { // The strategy ignores its context.
			<-time.After(20 * time.Second)
			return &pluginv1.RebalanceResponse{Summary: "I"}, nil
		}
		old.mu.Unlock()
		s, err := p.Allocation()
		require.NoError(t, err)
		outcome := make(chan error, 1)
		go func() { // Ends with its call.
			_, err := s.Rebalance(t.Context(), allocation.RebalanceRequest{})
			outcome <- err
		}()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, p.Swap(t.Context(), fakeConfig(t)))
		require.Equal(t, drainTimeout, time.Since(began), "the drain is bounded")
		n, err := ask(t, p)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.ErrorIs(t, <-outcome, plugins.ErrUnavailable)
		require.Equal(t, uint64(1), p.Status().Late)
		require.NoError(t, p.Close(t.Context()))
	})
}

// During the drain the old process answers what it was asked, and the new one
// everything else.
func TestDrainLetsCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{}
		p, _, err := openFake(t, l)
		require.NoError(t, err)
		old := l.first()
		old.mu.Lock()
		old.call = func(context.Context) (*pluginv1.RebalanceResponse, error) {
			<-time.After(2 * time.Second)
			return &pluginv1.RebalanceResponse{Summary: "old"}, nil
		}
		old.mu.Unlock()
		s, err := p.Allocation()
		require.NoError(t, err)
		answer := make(chan string, 1)
		go func() { // Ends with its call.
			res, _ := s.Rebalance(t.Context(), allocation.RebalanceRequest{})
			answer <- res.Reason
		}()
		synctest.Wait()
		swapped := make(chan error, 1)
		next := fakeConfig(t)
		go func() { swapped <- p.Swap(t.Context(), next) }() // Ends with the swap.
		wait(time.Second)
		n, err := ask(t, p)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, "old", <-answer)
		require.NoError(t, <-swapped)
		require.Equal(t, []time.Duration{killGrace}, old.ordered())
		require.Zero(t, p.Status().Late)
		require.NoError(t, p.Close(t.Context()))
	})
}

// A call without an answer says something about its process when it had the time that a
// health check has, or when its connection broke. It says nothing when its caller gave up,
// or gave it less time.
func TestWhatCallsSayAboutTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{}
		p, _, err := openFake(t, l)
		require.NoError(t, err)
		f := l.first()
		answer := func(err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.call = func(ctx context.Context) (*pluginv1.RebalanceResponse, error) {
				if err != nil {
					return nil, err
				}
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}
		}
		s, err := p.Allocation()
		require.NoError(t, err)
		answer(nil)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			_, err := s.Rebalance(ctx, allocation.RebalanceRequest{})
			require.ErrorIs(t, err, context.Canceled)
		}
		for range 5 { // The time is a little less than that of a health check.
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			_, err := s.Rebalance(ctx, allocation.RebalanceRequest{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		unanswered := func(n int) {
			answer(nil)
			for range n {
				ctx, cancel := context.WithTimeout(t.Context(), 1100*time.Millisecond)
				_, err := s.Rebalance(ctx, allocation.RebalanceRequest{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				cancel()
			}
		}
		for range 3 { // The third call in a row is answered, with an error: that is an answer too.
			unanswered(2)
			answer(status.Error(codes.Unknown, "not now"))
			for range 2 {
				_, err := ask(t, p)
				require.ErrorIs(t, err, plugins.ErrStrategy)
			}
		}
		require.Equal(t, plugins.StateRunning, p.Status().State)
		require.Zero(t, p.Status().Restarts)
		unanswered(3)
		wait(time.Second)
		require.Equal(t, uint64(1), p.Status().Restarts)
		l.latest().breaks()
		for range 3 {
			_, err := ask(t, p)
			require.ErrorIs(t, err, plugins.ErrUnavailable)
		}
		wait(time.Second)
		require.Equal(t, uint64(2), p.Status().Restarts)
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestSwapWaitsForTheSwapBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(_ context.Context, f *fakeProcess) error {
			if f.pid > 1 {
				<-time.After(time.Second)
			}
			return nil
		}}
		p, _, err := openFake(t, l)
		require.NoError(t, err)
		began := time.Now()
		var wg sync.WaitGroup
		errs, next := make([]error, 3), fakeConfig(t)
		for i := range errs {
			wg.Go(func() { errs[i] = p.Swap(t.Context(), next) })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Swap(ctx, fakeConfig(t)), context.DeadlineExceeded)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		require.GreaterOrEqual(t, p.Status().Swaps, uint64(3))
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestCloseDuringASwapAnswersIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(ctx context.Context, f *fakeProcess) error {
			if f.pid > 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}}
		p, e, err := openFake(t, l)
		require.NoError(t, err)
		swapped := make(chan error, 1)
		next := fakeConfig(t)
		go func() { swapped <- p.Swap(t.Context(), next) }() // Ends with the plugin.
		synctest.Wait()
		require.NoError(t, p.Close(t.Context()))
		require.ErrorIs(t, <-swapped, plugins.ErrClosed)
		require.Equal(t, []plugins.EventType{plugins.Started, plugins.Exited, plugins.Closed}, e.Types(), "a launch that is given up is not refused")
	})
}

// A launch that hangs ends at start-timeout, and one that cannot copy its file at once.
func TestLaunchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(ctx context.Context, _ *fakeProcess) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		began := time.Now()
		_, _, err := openFake(t, l)
		require.ErrorIs(t, err, plugins.ErrStartTimeout)
		require.Equal(t, 5*time.Second, time.Since(began))
		l.stageErr = errBoom
		_, _, err = openFake(t, l)
		require.ErrorIs(t, err, errBoom)
	})
}

// Close waits for a process that does not end no longer than its context lasts.
func TestStuckProcessIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLauncher{script: func(_ context.Context, f *fakeProcess) error {
			f.stuck, f.lasts = true, 5*time.Second
			return nil
		}}
		p, _, err := openFake(t, l)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		began := time.Now()
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, 4*time.Second, time.Since(began))
	})
}
