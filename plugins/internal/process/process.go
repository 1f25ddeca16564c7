// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/wire"
)

// A launch is a handshake by go-plugin ([shakeHands]) and a connection made here
// ([dial]). [Process.attend] logs output and cleans up after the end of the process,
// [Process.Kill] brings the end about.

const (
	// maxHeaderBytes bounds the headers and trailers of an answer, which carry the text
	// of a status.
	maxHeaderBytes = 64 << 10
	// libraryTimeout is go-plugin's own limit of a launch. It never takes effect: the
	// context ends before, or a debugger holds the process.
	libraryTimeout = 365 * 24 * time.Hour
	// maxReconnect is the longest pause before a broken connection to a live process is
	// dialled again. gRPC's default is two minutes.
	maxReconnect = time.Second
)

// The services that every server of go-plugin has, besides the health service.
const (
	shutdownMethod = "/plugin.GRPCController/Shutdown"
	outputMethod   = "/plugin.GRPCStdio/StreamStdio"
)

// Command says how a process is started.
type Command struct {
	// Name is the plugin's name, for the log.
	Name string
	// Args are the arguments after the program's own name.
	Args []string
	// Environment is the environment of the process, to which the handshake's is added.
	Environment map[string]string
	// Versions are the versions of the contract that the host speaks, at least one.
	Versions []int
	// Confinement is what the process may have and do.
	Confinement Confinement
	// LeftOut is told how many bytes of output were not logged, from several goroutines;
	// nil if nobody wants to know.
	LeftOut func(bytes int)
	// Begun is told the number of the process when there is one, before it has shaken hands; nil if nobody wants to know.
	Begun func(pid int)
	// Printed takes each line that the process prints in place of the log, within the rate of the log, from several
	// goroutines; nil if the log takes them.
	Printed func(line string)
}

// Process is a plugin's process that has shaken hands and is connected.
type Process struct {
	child     *child
	conn      *grpc.ClientConn
	contract  int
	started   time.Time
	socketDir string
	done      chan struct{} // Closed when nothing of the process is left.
}

// Launch starts a process that runs the copy. It returns when the process has shaken
// hands and answers a health check, or with what is wrong, a [*StartError] if the
// executable is to blame. After an error no process is left. A launch ends with its
// context, whose deadline counts as the start timeout of the plugin.
func (l *Launcher) Launch(ctx context.Context, b *Binary, c Command) (*Process, error) {
	if err := b.verify(ctx); err != nil {
		return nil, err
	}
	as, err := c.Confinement.identity()
	if err != nil {
		return nil, &StartError{Err: plugins.ErrNotPlugin, Cause: err, Cure: "correct user and group"}
	}
	socketDir := l.dir.socketDir(l.launches.Add(1))
	if err := os.MkdirAll(socketDir, 0o700); err != nil {
		return nil, err
	}
	p, err := l.launchIn(ctx, b, c, as, socketDir)
	if err != nil {
		_ = os.RemoveAll(socketDir) // Otherwise the launcher removes it.
		return nil, err
	}
	return p, nil
}

// launchIn launches a process whose socket is in the directory.
func (l *Launcher) launchIn(ctx context.Context, b *Binary, c Command, as *identity, socketDir string) (*Process, error) {
	if as != nil {
		if err := l.dir.admit(as, b, socketDir); err != nil {
			return nil, err
		}
	}
	return l.launch(ctx, b, c, as, socketDir)
}

func (l *Launcher) launch(ctx context.Context, b *Binary, c Command, as *identity, socketDir string) (*Process, error) {
	began := time.Now()
	certificate, config, err := newIdentity(began)
	if err != nil {
		return nil, err
	}
	cfg := &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: plugins.CookieKey, MagicCookieValue: plugins.CookieValue},
		VersionedPlugins: versioned(c.Versions),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        config,
		SkipHostEnv:      true,
		StartTimeout:     libraryTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketDir},
		Logger:           &library{log: l.log.With("plugin", c.Name)},
	}
	children := make(chan *child, 1) // go-plugin makes one child, unless it fails before.
	cfg.RunnerFunc = func(_ hclog.Logger, prepared *exec.Cmd, _ string) (runner.Runner, error) {
		ch := l.newChild(b, c, as, environmentFor(c, prepared.Env, socketDir, certificate), socketDir)
		children <- ch
		return ch, nil
	}
	client := plugin.NewClient(cfg)
	address, ch, err := shakeHands(ctx, client, children)
	if err != nil {
		return nil, startError(ctx, ch, err)
	}
	p := &Process{
		child: ch, contract: client.NegotiatedVersion(), started: began, socketDir: socketDir, done: make(chan struct{}),
	}
	if p.conn, err = dial(address, config); err != nil {
		return nil, errors.Join(err, ch.end())
	}
	go p.attend() // Ends with the process, and closes done.
	if err := p.ready(ctx); err != nil {
		_ = p.Kill(0) // The error is about the start.
		return nil, startError(ctx, ch, err)
	}
	return p, nil
}

// versioned offers the versions of the contract. The sets are empty: the services are
// called over the connection.
func versioned(versions []int) map[int]plugin.PluginSet {
	sets := make(map[int]plugin.PluginSet, len(versions))
	for _, v := range versions {
		sets[v] = plugin.PluginSet{plugins.SetName: plugin.NetRPCUnsupportedPlugin{}}
	}
	return sets
}

// outcome is what go-plugin's Start returns.
type outcome struct {
	address net.Addr
	err     error
}

// shakeHands lets go-plugin start the child and read its handshake. The child is nil if
// none was started.
func shakeHands(ctx context.Context, client *plugin.Client, children <-chan *child) (net.Addr, *child, error) {
	outcomes := make(chan outcome, 1)
	go func() { // Ends with the child, which is killed with the context.
		address, err := client.Start()
		outcomes <- outcome{address, err}
	}()
	select {
	case o := <-outcomes:
		return o.address, received(children), o.err
	case <-ctx.Done():
	}
	var ch *child
	select {
	case ch = <-children:
		ch.kill()
	case o := <-outcomes: // The start failed before there was a child.
		return nil, received(children), errors.Join(context.Cause(ctx), o.err)
	}
	select {
	case <-outcomes:
	case <-time.After(reapTime): // The child is stuck in the kernel.
	}
	return nil, ch, context.Cause(ctx)
}

// received returns the child if there is one.
func received(children <-chan *child) *child {
	select {
	case ch := <-children:
		return ch
	default:
		return nil
	}
}

// startError says why a launch failed, after the child has ended.
func startError(ctx context.Context, ch *child, err error) error {
	if ch == nil {
		return err
	}
	if stuck := ch.end(); stuck != nil {
		return errors.Join(err, stuck)
	}
	switch {
	case ch.blamed() != nil:
		return ch.blamed()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &StartError{
			Err: plugins.ErrStartTimeout, Cause: errors.New("it " + ch.said()),
			Cure: "raise start-timeout if it needs longer to start",
		}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return ch.diagnose()
	}
}

// dial makes the connection. go-plugin would make one without limits.
func dial(address net.Addr, config *tls.Config) (*grpc.ClientConn, error) {
	back := backoff.DefaultConfig
	back.BaseDelay, back.MaxDelay = maxReconnect/10, maxReconnect
	return grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, address.Network(), address.String())
		}),
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		// By default go-plugin lets a plugin have replies of 64 MiB, and so as much
		// memory of the host.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugins.MaxAnswerBytes), grpc.MaxCallSendMsgSize(plugins.MaxRequestBytes)),
		grpc.WithStaticStreamWindowSize(wire.WindowBytes), grpc.WithStaticConnWindowSize(wire.WindowBytes),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: back, MinConnectTimeout: maxReconnect}),
		grpc.WithDisableRetry(), // A question is asked twice only if its caller asks twice.
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
}

// ready waits until the process answers.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	defer close(answered)
	go func() { // Ends with this function.
		select {
		case <-p.child.exited:
			cancel(errors.New("the process ended"))
		case <-answered:
		}
	}()
	return p.Health(ctx, grpc.WaitForReady(true))
}

// attend logs what the process prints after the handshake, and cleans up when it
// has ended.
func (p *Process) attend() {
	defer close(p.done)
	read := make(chan struct{})
	go func() { // Ends with the connection.
		defer close(read)
		p.readOutput()
	}()
	<-p.child.exited
	_ = p.conn.Close() // Only a second Close has an error.
	<-read
	_ = os.RemoveAll(p.socketDir) // Otherwise the launcher removes it.
}

// readOutput reads the standard output and error of a plugin in Go, which go-plugin's
// server redirects into a stream. A plugin that prints would block if nothing read the
// stream. Plugins in other languages may not have it.
func (p *Process) readOutput() {
	out, errs := p.child.stdout.another(), p.child.stderr.another()
	defer out.Close()  //nolint:errcheck // It cannot fail.
	defer errs.Close() //nolint:errcheck // It cannot fail.
	stream, err := p.conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, outputMethod, grpc.WaitForReady(true))
	if err != nil || stream.SendMsg(&emptypb.Empty{}) != nil || stream.CloseSend() != nil {
		return
	}
	for {
		piece := &emptypb.Empty{}
		if stream.RecvMsg(piece) != nil {
			return
		}
		switch channel, data := printed(piece.ProtoReflect().GetUnknown()); channel {
		case 1:
			_, _ = out.Write(data) // It cannot fail.
		case 2:
			_, _ = errs.Write(data) // It cannot fail.
		}
	}
}

// printed reads go-plugin's message StdioData: the channel is field 1, the data
// field 2.
func printed(message []byte) (channel uint64, data []byte) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, nil
		}
		message = message[n:]
		switch {
		case number == 1 && kind == protowire.VarintType:
			channel, n = protowire.ConsumeVarint(message)
		case number == 2 && kind == protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return 0, nil
		}
		message = message[n:]
	}
	return channel, data
}

// Conn returns the connection. It is closed when the process has ended.
func (p *Process) Conn() grpc.ClientConnInterface { return p.conn }

// Contract returns the negotiated version of the contract.
func (p *Process) Contract() int { return p.contract }

// PID returns the number of the process.
func (p *Process) PID() int { return p.child.pid() }

// Started returns when the launch began.
func (p *Process) Started() time.Time { return p.started }

// Exited is closed when the process has ended and nothing of it is left.
func (p *Process) Exited() <-chan struct{} { return p.done }

// Err says how the process ended, once Exited is closed, with the last output of a
// process that failed.
func (p *Process) Err() error {
	if p.child.Wait(context.Background()) == nil {
		return errors.New("it ended (" + p.child.ended() + ")")
	}
	return errors.New("it ended (" + p.child.ended() + "); it " + p.child.said())
}

// Health asks the process whether it is healthy. The context bounds the call; without a
// deadline a process that is stopped would be waited for without an end.
func (p *Process) Health(ctx context.Context, opts ...grpc.CallOption) error {
	r, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugins.HealthService}, opts...)
	if err != nil {
		return errors.New(status.Convert(err).Message())
	}
	if s := r.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it says %s", s)
	}
	return nil
}

// Kill ends the process: the process is asked to stop, if grace is above zero, and killed
// with its group if it has not ended after that. Kill returns when nothing of the process
// is left, or with [ErrStuck].
func (p *Process) Kill(grace time.Duration) error {
	if grace > 0 {
		p.askToStop(grace)
	}
	if err := p.child.end(); err != nil {
		return err
	}
	<-p.done // The process has ended, so the rest of the cleanup is quick.
	return nil
}

// askToStop returns when the process has ended, or after the grace.
func (p *Process) askToStop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// An error says that the process has ended or does not listen; either shows by
	// itself.
	_ = p.conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{})
	select {
	case <-p.child.exited:
	case <-ctx.Done():
	}
}
