// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
	"github.com/quorate/quorate/plugins/sdk"
)

// role is the variable that makes a process of the test binary a plugin, and says which one.
const role = "PLUGINTEST_ROLE"

// demanded is the variable that names the variables without which a strict plugin does not start.
const demanded = "PLUGINTEST_DEMANDED"

type none struct{}

func TestMain(m *testing.M) {
	keep := func(none) (downing.Provider, error) { return downing.KeepMajority{}, nil }
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "keep-majority":
		sdk.Serve(sdk.Downing(keep))
	case "least-shard":
		sdk.Serve(sdk.Allocation(func(none) (allocation.Strategy, error) {
			return allocation.NewLeastShard(allocation.Default().LeastShard)
		}))
	case "lowest-address":
		sdk.Serve(sdk.JoinDecider(func(none) (bootstrap.JoinDecider, error) { return bootstrap.LowestAddress{}, nil }))
	case "list":
		sdk.Serve(sdk.Discovery(func(none) (discovery.Discovery, error) {
			return discovery.NewStatic([]string{"127.0.0.1:7946", "seed.example:7946"})
		}))
	case "phi":
		sdk.Serve(sdk.FailureDetector(func(none) (fd.Factory, error) { return fd.NewFactory(fd.Default()) }))
	case "garbled":
		sdk.Serve(sdk.Downing(func(garbled) (downing.Provider, error) { return downing.KeepMajority{}, nil }))
	case "demanding":
		sdk.Serve(sdk.Downing(func(demanding) (downing.Provider, error) { return downing.KeepMajority{}, nil }))
	case "lax":
		sdk.Serve(sdk.Downing(func(map[string]any) (downing.Provider, error) { return downing.KeepMajority{}, nil }))
	case "clumsy":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return &clumsy{}, nil }))
	case "leaky":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return &leaky{}, nil }))
	case "forgetful":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return forgetful{}, nil }))
	case "fragile":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return &fragile{}, nil }))
	case "touchy":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return touchy{}, nil }))
	case "naive":
		serveNaively()
	case "sluggish":
		serveNaively()
		<-time.After(Limit) //quorate:realtime So late this plugin ends.
	case "untidy":
		sdk.Serve(sdk.Downing(untidy))
	case "nervous":
		// This plugin ends on an interrupt, which plugins have to ignore.
		interrupt := make(chan os.Signal, 1)
		signal.Notify(interrupt, os.Interrupt)
		go func() { // Ends the process.
			<-interrupt
			os.Exit(1)
		}()
		sdk.Serve(sdk.Downing(keep))
	case "stubborn":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) {
			signal.Ignore(stubbornly()...)
			return downing.KeepMajority{}, nil
		}))
	case "mute":
		if os.Getenv(plugins.CookieKey) == "" {
			os.Exit(1)
		}
		sdk.Serve(sdk.Downing(keep))
	case "strict":
		for name := range strings.FieldsSeq(os.Getenv(demanded)) {
			if os.Getenv(name) == "" {
				fmt.Fprintf(os.Stderr, "%s is not in the environment\n", name)
				os.Exit(1)
			}
		}
		sdk.Serve(sdk.Downing(keep))
	case "content":
		if os.Getenv(plugins.CookieKey) == "" {
			slog.Info("nothing to do")
			return
		}
		sdk.Serve(sdk.Downing(keep))
	}
}

// garbled are settings with a schema that is none.
type garbled struct{}

func (garbled) JSONSchema() []byte { return []byte(`{"type": `) }

// demanding are settings whose schema demands one that need not be set.
type demanding struct{ Any string }

func (demanding) JSONSchema() []byte { return []byte(`{"required": ["any"]}`) }

// forgetful says that it is pure, but its answer depends on its process.
type forgetful struct{}

func (forgetful) Class() downing.Class { return downing.Class{Pure: true} }

func (forgetful) Decide(context.Context, downing.View) (downing.Decision, error) {
	return downing.Decision{Reason: strconv.Itoa(os.Getpid())}, nil
}

// clumsy answers one call at a time only.
type clumsy struct {
	downing.KeepMajority

	calls atomic.Int32
}

func (c *clumsy) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	defer c.calls.Add(-1)
	if c.calls.Add(1) > 1 {
		return downing.Decision{}, errors.New("one at a time, please")
	}
	runtime.Gosched()
	return c.KeepMajority.Decide(ctx, v)
}

// fragile dies of the second question. Package sdk keeps bad requests from strategies, so that
// no strategy that it serves can die of the requests themselves.
type fragile struct {
	downing.KeepMajority

	asked atomic.Int32
}

func (f *fragile) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if f.asked.Add(1) > 1 {
		os.Exit(1)
	}
	return f.KeepMajority.Decide(ctx, v)
}

// naive is a plugin that is made without package sdk, and believes that what a request names is there.
type naive struct {
	plugin.NetRPCUnsupportedPlugin
	pluginv1.UnimplementedPluginServer
	pluginv1.UnimplementedDowningServer
}

var _ plugin.GRPCPlugin = naive{}

// serveNaively returns when the plugin was told to stop.
func serveNaively() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: plugins.CookieKey, MagicCookieValue: plugins.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{plugins.Version1: {plugins.SetName: naive{}}},
		GRPCServer:       plugin.DefaultGRPCServer,
	})
}

func (n naive) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterPluginServer(s, n)
	pluginv1.RegisterDowningServer(s, n)
	return nil
}

func (naive) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("it is not asked in this process")
}

func (naive) Configure(context.Context, *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	return &pluginv1.ConfigureResponse{
		Name: "naive", Version: "1.0.0", Policy: pluginv1.Policy_POLICY_DOWNING,
	}, nil
}

func (naive) Decide(_ context.Context, r *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	return &pluginv1.DowningDecideResponse{Reason: "asked by " + r.GetNodes().GetHost()[r.GetSelf()]}, nil
}

// touchy waits a moment before it answers, and dies when nobody waits for it.
type touchy struct{ downing.KeepMajority }

func (t touchy) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	moment := time.NewTimer(10 * time.Millisecond) //quorate:realtime So long it takes.
	defer moment.Stop()
	select {
	case <-ctx.Done():
		os.Exit(1)
	case <-moment.C:
	}
	return t.KeepMajority.Decide(ctx, v)
}

// mess is the variable with the path of the file that an untidy plugin leaves behind.
const mess = "PLUGINTEST_MESS"

// untidy does not start where one like it has not ended by itself.
func untidy(none) (downing.Provider, error) {
	file, err := os.OpenFile(os.Getenv(mess), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return downing.KeepMajority{}, file.Close()
}

// leaky keeps memory of each question.
type leaky struct {
	downing.KeepMajority

	kept [][]byte
}

func (l *leaky) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	l.kept = append(l.kept, bytes.Repeat([]byte{1}, 20<<10))
	return l.KeepMajority.Decide(ctx, v)
}

func config(tb testing.TB, policy plugins.Policy, as string) plugins.Config {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	return plugins.Config{Policy: policy, Path: self, Environment: map[string]string{role: as}}
}

func TestTheProjectsStrategiesPass(t *testing.T) {
	t.Run("keep-majority", func(t *testing.T) { Test(t, config(t, plugins.Downing, "keep-majority")) })
	t.Run("least-shard", func(t *testing.T) { Test(t, config(t, plugins.Allocation, "least-shard")) })
	t.Run("lowest-address", func(t *testing.T) { Test(t, config(t, plugins.JoinDecider, "lowest-address")) })
	t.Run("phi", func(t *testing.T) { Test(t, config(t, plugins.FailureDetector, "phi")) })
	t.Run("list", func(t *testing.T) { Test(t, config(t, plugins.Discovery, "list")) })
}

// The kit knows every policy that hosts run, and no other.
func TestTheKitKnowsWhatHostsRun(t *testing.T) {
	require.Len(t, suites(), len(host.Policies()))
	for _, policy := range host.Policies() {
		require.Contains(t, suites(), policy)
	}
}

// recorder remembers a failure, and logs it instead of reporting it.
type recorder struct {
	testing.TB
	failed atomic.Bool

	mu       sync.Mutex // Guards what follows.
	said     strings.Builder
	cleanups []func()
}

// fails reports whether a part finds a fault, and what it says.
func fails(tb testing.TB, p part, c plugins.Config) (bool, string) {
	tb.Helper()
	r := &recorder{TB: tb}
	done := make(chan struct{})
	// The goroutine ends with the part, or with its Goexit; the test waits.
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		p.run(r, c)
	}()
	<-done
	return r.Failed(), r.said.String()
}

func (r *recorder) Helper() {}

// Cleanup keeps a function for the end of the part.
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Log(args ...any) { r.note(fmt.Sprint(args...)) }

func (r *recorder) Logf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }

func (r *recorder) note(text string) {
	r.TB.Log(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said.WriteString(text + "\n")
}

func (r *recorder) Failed() bool { return r.failed.Load() }

func (r *recorder) Error(args ...any) {
	r.failed.Store(true)
	r.Log(args...)
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed.Store(true)
	r.Logf(format, args...)
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// A part that fails shows what the plugin has printed on its standard error.
func TestFailingPartsShowWhatThePluginPrints(t *testing.T) {
	for _, p := range parts() {
		if p.name == "ByHand" {
			continue // It asks that the plugin ends and says why, which this one does.
		}
		c := pinned(t, config(t, plugins.Downing, "strict"))
		c.Environment[demanded] = "NOBODY_SETS_THIS"
		failed, said := fails(t, p, c)
		require.True(t, failed, p.name)
		require.Contains(t, said, "printed by the plugin, the last 1 lines of 1:\n  NOBODY_SETS_THIS is not in the environment", p.name)
	}
}

// A kit that passes everything proves nothing: each part must find its fault.
func TestTheKitFindsFaults(t *testing.T) {
	found := map[string]bool{}
	for as, name := range map[string]string{
		"lax": "Settings", "forgetful": "Restart", "nervous": "Interrupt", "stubborn": "Termination", "mute": "ByHand", "content": "ByHand",
		"clumsy": "Concurrency", "leaky": "Memory", "fragile": "BadRequests", "naive": "BadRequests", "touchy": "GivenUp", "untidy": "Hang",
		"sluggish": "Stop", "garbled": "Describe", "demanding": "Describe",
	} {
		found[name] = true
		memory := part{"Memory", func(tb testing.TB, c plugins.Config) { tb.Helper(); keepsItsMemory(tb, c, callsUsual) }}
		for _, p := range append(parts(), memory) {
			if p.name != name {
				continue
			}
			t.Run(as, func(t *testing.T) {
				c := pinned(t, config(t, plugins.Downing, as))
				c.Environment[mess] = filepath.Join(t.TempDir(), "mess")
				failed, _ := fails(t, p, c)
				require.True(t, failed, "the fault was not found")
			})
		}
	}
	for _, p := range parts() {
		require.Contains(t, found, p.name, "a part for which no plugin is bad")
	}
}
