// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command misbehaving is a plugin that does what plugins must not do, for the tests of
// hosts. Its first argument is the mode, which says what it does.
package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/server"
	"github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// before are the modes that never serve anything.
func before() map[string]func() {
	return map[string]func(){
		"exit":      func() { fmt.Fprintln(os.Stderr, "no configuration, giving up"); os.Exit(3) },
		"silent":    forever,
		"garbage":   func() { fmt.Println("hello, I am a web server"); forever() },
		"binary":    func() { fmt.Print("\x00\x01\x02|\xff|\xfe\n"); forever() },
		"flood":     func() { os.Stdout.WriteString(strings.Repeat("x", 10<<20)); forever() },
		"floodline": func() { os.Stderr.WriteString(strings.Repeat("y", 10<<20)); forever() },
		"future":    func() { handshake("1|7|unix|" + socket() + "|grpc|x"); forever() },
		"core":      func() { handshake("2|1|unix|" + socket() + "|grpc|x"); forever() },
		"netrpc":    func() { handshake("1|1|unix|" + socket() + "|netrpc|x"); forever() },
		"elsewhere": func() { handshake("1|1|unix|/var/run/docker.sock|grpc|x"); forever() },
		"tcp":       func() { handshake("1|1|tcp|203.0.113.7:80|grpc|x"); forever() },
		"nocert":    func() { handshake("1|1|unix|" + socket() + "|grpc|"); forever() },
		"fields":    func() { handshake("1|1|unix"); forever() },
		"noaccept":  func() { impostor(); forever() },
		"saysbye":   func() { impostor() },
		"stubborn": func() {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			forever()
		},
		"forksilent": func() { fork(); forever() },
		"forkexit":   func() { fork(); os.Stdout.WriteString(strings.Repeat("x", 100<<10)) },
	}
}

// beside are the modes that do something beside serving. Each has an end, so that a host that
// does not stop it goes on to be tested.
func beside() map[string]func() {
	return map[string]func(){
		"hogs": func() {
			var all [][]byte
			for range 64 { // 2 GiB, and each page is written.
				all = append(all, bytes.Repeat([]byte{1}, 32<<20))
			}
			report("HELD", len(all))
		},
		"forkbomb": func() {
			forked := 0
			for range 400 {
				if cmd := exec.Command(self(), "sleeper"); cmd.Start() == nil {
					forked++
				}
			}
			report("FORKED", forked)
		},
		"gigabyte": func() {
			piece := bytes.Repeat([]byte{'g'}, 1<<20)
			for range 1 << 10 {
				os.Stderr.Write(piece)
			}
			report("WRITTEN", 1)
		},
	}
}

// report writes a number into the file that a variable names.
func report(variable string, n int) {
	if err := os.WriteFile(os.Getenv(variable), []byte(fmt.Sprint(n)), 0o600); err != nil {
		panic(err)
	}
}

// self is the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func main() {
	mode := "good"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if run, ok := before()[mode]; ok {
		run()
		return
	}
	if mode == "sleeper" { // This is the grandchild that fork starts.
		forever()
	}
	if mode == "forks" {
		fork()
	}
	if run, ok := beside()[mode]; ok {
		go run()
	}
	if mode == "stopped" { // As by a debugger, until somebody lets it go on.
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			panic(err)
		}
	}
	if mode == "floods" {
		go func() {
			for {
				os.Stderr.WriteString(strings.Repeat("z", 200) + "\n")
			}
		}()
	}
	if mode == "prints" {
		fmt.Fprintln(os.Stderr, `{"@level":"warn","@message":"from the plugin","@timestamp":"x","answer":42}`)
		fmt.Fprintln(os.Stderr, `{"@level":"warn","@message":7}`)
		fmt.Fprintln(os.Stderr, "plain words\x07")
		go func() { // After the handshake, standard output is go-plugin's stream.
			pipe := os.Stdout
			for i := 0; ; time.Sleep(time.Millisecond) {
				if os.Stdout != pipe {
					fmt.Println("line", i)
					i++
				}
			}
		}()
	}
	serve(mode)
}

func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

func socket() string { return filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "plugin1") }

func handshake(line string) { fmt.Println(line) }

// impostor writes a valid handshake, with the certificate of the host itself, but serves
// nothing.
func impostor() {
	lines := strings.Split(os.Getenv("PLUGIN_CLIENT_CERT"), "\n")
	body := strings.Join(lines[1:slices.IndexFunc(lines[1:], func(l string) bool { return strings.HasPrefix(l, "---") })+1], "")
	handshake("1|1|unix|" + socket() + "|grpc|" + strings.TrimRight(body, "="))
}

// fork starts a grandchild that holds the pipes, and writes its number to a file.
func fork() {
	cmd := exec.Command(self(), "sleeper")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if name := os.Getenv("GRANDCHILD"); name != "" {
		if err := os.WriteFile(name, []byte(fmt.Sprint(cmd.Process.Pid)), 0o600); err != nil {
			panic(err)
		}
	}
}

func serve(mode string) {
	s := &strategy{mode: mode}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: plugins.CookieKey, MagicCookieValue: plugins.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{plugins.Version1: {plugins.SetName: s}},
		Logger:           hclog.NewNullLogger(),
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(slices.Concat(o, server.Options(), []grpc.ServerOption{grpc.MaxSendMsgSize(1 << 30)})...)
		},
	})
	if mode == "lingers" { // The lingering mode does not end when it is told to.
		forever()
	}
}

// strategy answers, well or badly.
type strategy struct {
	plugin.NetRPCUnsupportedPlugin
	pluginv1.UnimplementedPluginServer
	pluginv1.UnimplementedDowningServer
	pluginv1.UnimplementedAllocationServer
	pluginv1.UnimplementedFailureDetectorServer
	pluginv1.UnimplementedDiscoveryServer
	mode  string
	calls atomic.Int64
}

func (s *strategy) GRPCServer(_ *plugin.GRPCBroker, r *grpc.Server) error {
	pluginv1.RegisterPluginServer(r, s)
	if s.mode == "unserved" { // It says what it decides, and serves nothing of it.
		return nil
	}
	pluginv1.RegisterDowningServer(r, s)
	pluginv1.RegisterAllocationServer(r, s)
	pluginv1.RegisterFailureDetectorServer(r, s)
	pluginv1.RegisterJoinDeciderServer(r, joinDecider{strategy: s})
	pluginv1.RegisterDiscoveryServer(r, s)
	return nil
}

func (s *strategy) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// Describe is answered in its own modes; in others this is a plugin of an earlier release.
func (s *strategy) Describe(ctx context.Context, r *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	res := &pluginv1.DescribeResponse{Name: "misbehaving", Policy: pluginv1.Policy_POLICY_DOWNING}
	switch s.mode {
	case "describes":
		res.SettingsSchema = []byte(os.Getenv("SCHEMA"))
	case "describesmuch":
		res.SettingsSchema = []byte(`{"title": "` + strings.Repeat("x", 1<<20) + `"}`)
	case "describeshugely":
		res.SettingsSchema = []byte(huge())
	case "describesnobody":
		res.Name = ""
	case "hangdescribe":
		forever()
	case "diesdescribe":
		os.Exit(6)
	default:
		return s.UnimplementedPluginServer.Describe(ctx, r)
	}
	return res, nil
}

func (s *strategy) Configure(ctx context.Context, r *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	res := &pluginv1.ConfigureResponse{Name: "misbehaving", Version: os.Getenv("VERSION"), Policy: pluginv1.Policy_POLICY_DOWNING, Class: &pluginv1.Class{}}
	if policy, ok := policies()[os.Getenv("POLICY")]; ok {
		res.Policy = policy
	}
	switch s.mode {
	case "hangconfigure":
		forever()
	case "diesconfigure":
		os.Exit(4)
	case "settings":
		res.Errors = []*pluginv1.SettingError{{Key: "url", Reason: "is no URL"}, {Key: "retries", Reason: "is negative"}}
	case "majority":
		res.Class.MajorityOnly = true
	case "nameless":
		res.Name = ""
	case "environment":
		names := map[string]bool{}
		for _, variable := range os.Environ() {
			name, _, _ := strings.Cut(variable, "=")
			names[name] = true
		}
		res.Version = strings.Join(slices.Sorted(maps.Keys(names)), ",")
	case "stdin":
		n, err := os.Stdin.Read(make([]byte, 1))
		res.Version = fmt.Sprint(n, " ", err)
	case "fickle": // Another class at each start.
		if _, err := os.Stat(os.Getenv("MARK")); err == nil {
			res.Class.MajorityOnly = true
		}
		_ = os.WriteFile(os.Getenv("MARK"), nil, 0o600)
	case "once": // Starts once and never again.
		if _, err := os.Stat(os.Getenv("MARK")); err == nil {
			os.Exit(5)
		}
		_ = os.WriteFile(os.Getenv("MARK"), nil, 0o600)
	}
	return res, nil
}

// call does what every call of the mode does before it answers.
func (s *strategy) call(ctx context.Context) error {
	switch s.mode {
	case "hangcall":
		forever()
	case "slow":
		d, err := time.ParseDuration(os.Getenv("DELAY"))
		if err != nil {
			return err
		}
		time.Sleep(d)
	case "diescall":
		os.Exit(6)
	case "trailer":
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-noise", strings.Repeat("n", 1<<20)))
		return status.Error(codes.Internal, strings.Repeat("panic ", 100<<10))
	case "fails":
		return status.Error(codes.Unknown, "the witness is away")
	case "stops":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	return nil
}

func (s *strategy) Decide(ctx context.Context, _ *pluginv1.DowningDecideRequest) (*pluginv1.DowningDecideResponse, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	res := &pluginv1.DowningDecideResponse{Verdict: pluginv1.Verdict_VERDICT_NONE, Reason: os.Getenv("VERSION") + " says nobody"}
	switch s.mode {
	case "unknown":
		res.Verdict, res.Down = pluginv1.Verdict_VERDICT_KEEP_SIDE, []uint32{4_000_000_000}
	case "verdict":
		res.Verdict = 99
	case "huge":
		res.Reason = huge()
	case "wordy":
		res.Reason = strings.Repeat("r", 2000)
	}
	return res, nil
}

func (s *strategy) Allocate(ctx context.Context, r *pluginv1.AllocateRequest) (*pluginv1.AllocateResponse, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	res := &pluginv1.AllocateResponse{Reasons: []string{os.Getenv("VERSION")}}
	for _, shard := range r.GetShard() {
		res.Shard = append(res.Shard, shard)
		res.Region = append(res.Region, 0)
		res.Reason = append(res.Reason, 0)
	}
	switch s.mode {
	case "unknown":
		res.Region[0] = 4_000_000_000
	case "double":
		res.Shard, res.Region, res.Reason = append(res.Shard, res.Shard[0]), append(res.Region, 0), append(res.Reason, 0)
	case "columns":
		res.Region = nil
	case "huge":
		res.Reasons = []string{huge()}
	}
	return res, nil
}

func (s *strategy) Rebalance(ctx context.Context, _ *pluginv1.RebalanceRequest) (*pluginv1.RebalanceResponse, error) {
	if err := s.call(ctx); err != nil {
		return nil, err
	}
	return &pluginv1.RebalanceResponse{Summary: os.Getenv("VERSION")}, nil
}
