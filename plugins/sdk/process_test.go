// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package sdk_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/allocation/allocationtest"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/client"
	"github.com/quorate/quorate/plugins/internal/policies/allocationpolicy"
	"github.com/quorate/quorate/plugins/internal/policies/downingpolicy"
	"github.com/quorate/quorate/plugins/sdk"
)

// Plugins as real processes, started by the library that hosts use. The test binary plays
// all parts: it is the test, each plugin, and a host that is killed. First the conformance
// suites run against processes; then come versions, logs and processors; last how a plugin
// ends.

// The roles that a process of the test binary may have, and the variable that says which.
const (
	role        = "SDK_TEST_ROLE"
	roleDowning = "keep-majority"
	roleDownAll = "down-all"
	roleSlow    = "slow"
	roleTelling = "telling"
	roleShards  = "least-shard"
	roleHost    = "host"
)

// grace is how long a process may take to do what a test waits for.
const grace = 10 * time.Second

func TestMain(m *testing.M) {
	type none struct{}
	serve := func(p downing.Provider) {
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) {
			slog.Info("configured", "nodes", 3)
			return p, nil
		}), sdk.WithName("test"), sdk.WithVersion("1.2.3"))
	}
	switch os.Getenv(role) {
	case roleDowning:
		serve(downing.KeepMajority{})
	case roleDownAll:
		serve(downing.All{})
	case roleSlow:
		serve(slow{})
	case roleTelling:
		serve(telling{})
	case roleShards:
		sdk.Serve(sdk.Allocation(func(none) (allocation.Strategy, error) {
			return allocation.NewLeastShard(allocation.Default().LeastShard)
		}))
	case roleHost:
		host()
	default:
		os.Exit(m.Run())
	}
}

// slow logs that it was asked, and decides 200 ms later.
type slow struct{}

func (slow) Class() downing.Class { return downing.Class{} }

func (slow) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	slog.InfoContext(ctx, "asked")
	delay := time.NewTimer(200 * time.Millisecond) //quorate:realtime So long it takes.
	defer delay.Stop()
	select {
	case <-delay.C:
		return downing.KeepMajority{}.DecideNow(v)
	case <-ctx.Done():
		return downing.Decision{}, ctx.Err()
	}
}

// telling gives as its reason on how many processors it runs.
type telling struct{ downing.KeepMajority }

func (telling) Decide(context.Context, downing.View) (downing.Decision, error) {
	return downing.Decision{Reason: strconv.Itoa(runtime.GOMAXPROCS(0))}, nil
}

// connection makes the plugin library hand out the connection to a plugin itself.
type connection struct{ plugin.NetRPCUnsupportedPlugin }

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// start starts a plugin as a host does that offers some versions of the contract.
func start(cmd *exec.Cmd, log io.Writer, versions ...int) *plugin.Client {
	cmd.Env = append(cmd.Env, plugins.HostPID+"="+strconv.Itoa(os.Getpid()))
	offer := map[int]plugin.PluginSet{}
	for _, v := range versions {
		offer[v] = plugin.PluginSet{plugins.SetName: connection{}}
	}
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: plugins.CookieKey, MagicCookieValue: plugins.CookieValue},
		VersionedPlugins: offer, Cmd: cmd, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS: true, SkipHostEnv: true, StartTimeout: grace,
		Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace, JSONFormat: true}),
	})
}

// launch starts a plugin of a role for a test, and returns its connection.
func launch(tb testing.TB, as string, log io.Writer, env ...string) (*plugin.Client, *exec.Cmd, *grpc.ClientConn) {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	cmd := exec.Command(self)
	cmd.Env = append(env, role+"="+as)
	c := start(cmd, log, plugins.Version1)
	tb.Cleanup(c.Kill)
	raw, err := c.Client()
	require.NoError(tb, err)
	conn, err := raw.Dispense(plugins.SetName)
	require.NoError(tb, err)
	return c, cmd, conn.(*grpc.ClientConn)
}

func configured(tb testing.TB, as string) (*grpc.ClientConn, plugins.Manifest) {
	tb.Helper()
	_, _, conn := launch(tb, as, io.Discard)
	m, err := client.Configure(tb.Context(), conn, as, "1.0", nil)
	require.NoError(tb, err)
	return conn, m
}

func TestBinariesKeepTheContractOfDowning(t *testing.T) {
	for _, as := range []string{roleDowning, roleDownAll} {
		t.Run(as, func(t *testing.T) {
			downingtest.TestProvider(t, func(tb testing.TB) downing.Provider {
				tb.Helper()
				conn, m := configured(tb, as)
				return downingpolicy.New(client.Target{Conn: conn, Name: as, Class: m.Class, Timeout: grace})
			})
		})
	}
}

func TestBinariesKeepTheContractOfAllocation(t *testing.T) {
	allocationtest.TestStrategy(t, func(tb testing.TB) allocation.Strategy {
		tb.Helper()
		conn, m := configured(tb, roleShards)
		return allocationpolicy.New(client.Target{Conn: conn, Name: roleShards, Class: m.Class, Timeout: grace})
	})
}

func TestVersionsAreNegotiated(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct {
		offered []int
		agreed  int // 0: there is no common version.
	}{{[]int{1}, 1}, {[]int{1, 2}, 1}, {[]int{2, 3}, 0}} {
		cmd := exec.Command(self)
		cmd.Env = []string{role + "=" + roleDowning}
		p := start(cmd, io.Discard, c.offered...)
		_, err := p.Start()
		require.Equal(t, c.agreed == 0, err != nil, "%v: %v", c.offered, err)
		if err == nil {
			require.Equal(t, c.agreed, p.NegotiatedVersion())
		}
		p.Kill()
	}
}

func TestLogsReachTheHost(t *testing.T) {
	log := new(logtest.Buffer)
	_, _, conn := launch(t, roleDowning, log)
	m, err := client.Configure(t.Context(), conn, "p", "1.0", nil)
	require.NoError(t, err)
	require.Equal(t, "test 1.2.3 (downing, contract 1, class pure, majority-only)", m.String())
	log.Await(t, `"@level":"info","@message":"configured"`)
	log.Await(t, `"nodes":3`)
}

func TestAPluginRunsOnOneProcessorUnlessItIsToldOtherwise(t *testing.T) {
	for want, env := range map[string][]string{"1": nil, "3": {"GOMAXPROCS=3"}} {
		_, _, conn := launch(t, roleTelling, io.Discard, env...)
		m, err := client.Configure(t.Context(), conn, "p", "1.0", nil)
		require.NoError(t, err)
		d, err := downingpolicy.New(client.Target{Conn: conn, Name: "p", Class: m.Class, Timeout: grace}).Decide(t.Context(), downingtest.RandomSplit(rand.New(rand.NewPCG(1, 1)))[0])
		require.NoError(t, err)
		require.Equal(t, want, d.Reason)
	}
}

// A process that is terminated answers the call in hand before it ends.
func TestTermination(t *testing.T) {
	log := new(logtest.Buffer)
	c, cmd, conn := launch(t, roleSlow, log)
	m, err := client.Configure(t.Context(), conn, "p", "1.0", nil)
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() { // Ends with the call; the test waits for it.
		_, err := downingpolicy.New(client.Target{Conn: conn, Name: "p", Class: m.Class, Timeout: grace}).Decide(t.Context(), downingtest.RandomSplit(rand.New(rand.NewPCG(1, 1)))[0])
		answered <- err
	}()
	log.Await(t, "asked")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-answered)
	patience.Eventually(t, c.Exited, "it has ended")
	require.Equal(t, 0, cmd.ProcessState.ExitCode())
}

func TestByHand(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = []string{role + "=" + roleDowning}
	text, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	require.Contains(t, string(text), "test 1.2.3 is a downing plugin for Quorate")
}

// host starts a plugin that inherits the writing end of a pipe, prints that it is ready, and
// waits to be killed.
func host() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{role + "=" + roleDowning}
	const inherited = 3
	cmd.ExtraFiles = []*os.File{os.NewFile(inherited, "pipe")}
	if _, err := start(cmd, io.Discard, plugins.Version1).Client(); err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		panic(err)
	}
	select {}
}

// covers F59: a host that is killed leaves no plugin. The pipe ends when neither holds its
// writing end any more.
func TestAPluginEndsWithItsHost(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, read.Close()) }()
	cmd := exec.Command(self)
	cmd.Env = []string{role + "=" + roleHost}
	cmd.ExtraFiles = []*os.File{write}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.NoError(t, cmd.Process.Kill())
	patience.Bound(t, read)
	_, err = read.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Error(t, cmd.Wait())
}
