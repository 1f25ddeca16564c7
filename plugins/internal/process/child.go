// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/strays"
)

// A child is started with pipes that this package reads itself ([child.Start]), on a thread
// of its own that confines it ([child.exec]); its first line goes to go-plugin
// ([child.readStdout]). That thread waits for its end, and then kills what is left of its
// group and closes everything ([child.wait]). The methods that go-plugin asks for are at
// the end.

const (
	// leftoverTime is how long the pipes of an ended process are read on: they hold its
	// last output, but a grandchild may keep them open for ever.
	leftoverTime = 200 * time.Millisecond
	// reapTime is how long the kernel may need to end a process that was killed.
	reapTime = 2 * time.Second
	// countPause is the time between counts of the tasks of a process. A count reads a
	// file of each process of the machine, so the pause is at least countShare times as
	// long as the count has taken.
	countPause = 200 * time.Millisecond
	countShare = 50
	// busyPause is the time between attempts to execute a copy that is busy.
	busyPause = 5 * time.Millisecond
	// socketDirVariable tells a plugin where to put its socket. go-plugin would choose a
	// directory whose long name exceeds the limit of socket paths.
	socketDirVariable = "PLUGIN_UNIX_SOCKET_DIR"
)

// ErrStuck is returned when a process that was killed does not end, because the
// kernel waits for something on its behalf.
var ErrStuck = errors.New("the process was killed, but does not end")

// child is an operating-system process, a runner in the words of go-plugin.
type child struct {
	launcher    *Launcher
	cmd         *exec.Cmd
	confinement Confinement
	as          *identity
	socketDir   string
	versions    []int
	begins      func(pid int) // Nil if nobody wants to know.
	log         *slog.Logger

	stdout, stderr *output
	toLibrary      *io.PipeReader // The handshake line, then no more.
	line           *io.PipeWriter

	over   chan struct{} // Closed when the process has ended.
	exited chan struct{} // Closed when its pipes are read besides, and nothing of it is left.

	mu      sync.Mutex // Guards what follows.
	fault   error      // What is wrong with the file or the handshake.
	overrun error      // The limit for which the process was killed; nil if it was for none.
	waitErr error      // What Wait returned; set before exited is closed.
	process *os.Process
	killed  bool // The process must not live, even if it is still being started.
	reaped  bool // The number of the process may belong to another process by now.
}

var _ runner.Runner = (*child)(nil)

func (l *Launcher) newChild(b *Binary, c Command, as *identity, environment []string, socketDir string) *child {
	log := l.log.With("plugin", c.Name)
	r, w := io.Pipe()
	ch := &child{
		launcher: l, confinement: c.Confinement, as: as, socketDir: socketDir, versions: c.Versions, begins: c.Begun, log: log,
		stdout: newOutput(log, "stdout", c.LeftOut, c.Printed), stderr: newOutput(log, "stderr", c.LeftOut, c.Printed),
		toLibrary: r, line: w, over: make(chan struct{}), exited: make(chan struct{}),
	}
	ch.cmd = &exec.Cmd{Path: b.path, Args: append([]string{b.source}, c.Args...), Env: environment, SysProcAttr: attributes(as)}
	return ch
}

// environmentFor merges the configured environment with that of the handshake.
func environmentFor(c Command, handshake []string, socketDir, certificate string) []string {
	env := make([]string, 0, len(c.Environment)+len(handshake)+3)
	for name, value := range c.Environment {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	for _, variable := range handshake {
		if !strings.HasPrefix(variable, socketDirVariable+"=") {
			env = append(env, variable)
		}
	}
	return append(env, socketDirVariable+"="+socketDir, certificateVariable+"="+certificate, plugins.HostPID+"="+strconv.Itoa(os.Getpid()))
}

// Start starts the process and the goroutines that read its pipes and wait for its
// end.
func (c *child) Start(ctx context.Context) error {
	out, outWriter, err := os.Pipe()
	if err != nil {
		return c.blame(err)
	}
	errs, errsWriter, err := os.Pipe()
	if err != nil {
		return c.blame(errors.Join(err, out.Close(), outWriter.Close()))
	}
	c.cmd.Stdout, c.cmd.Stderr = outWriter, errsWriter
	started := make(chan error, 1)
	onOwnThread(func() { // Ends with the process, or at once if there is none.
		err := c.exec(ctx)
		started <- err
		if err == nil {
			c.attend(out, errs)
		}
	})
	err = <-started                                              // The kernel starts a process at once.
	closed := errors.Join(outWriter.Close(), errsWriter.Close()) // The child has them.
	if err != nil {
		return c.blame(errors.Join(err, closed, out.Close(), errs.Close()))
	}
	return nil
}

// attend reads the pipes of the process until its end.
func (c *child) attend(out, errs *os.File) {
	var readers sync.WaitGroup
	readers.Go(func() { c.readStdout(out) })
	readers.Go(func() { c.readStderr(errs) })
	readers.Go(c.countTasks)
	c.wait(&readers, out, errs)
}

// exec starts the program within its confinement, and tries again while its file is busy.
func (c *child) exec(ctx context.Context) error {
	if !c.confinement.NewPrivileges {
		if err := forbidPrivileges(); err != nil {
			return err
		}
	}
	for {
		c.shut()
		err := c.cmd.Start()
		switch {
		case err == nil:
			return c.begun()
		case !busy(err) || c.unwanted():
			return c.cannotExecute(err)
		}
		// A command can be started only once, so a copy is made of its settings.
		c.cmd = &exec.Cmd{
			Path: c.cmd.Path, Args: c.cmd.Args, Env: c.cmd.Env, SysProcAttr: c.cmd.SysProcAttr,
			Stdout: c.cmd.Stdout, Stderr: c.cmd.Stderr,
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return c.cannotExecute(err)
		}
	}
}

// shut keeps descriptors from the child that it would inherit: a file that is missing in
// the list of its files is closed in it, and only there.
func (c *child) shut() {
	open, err := inheritable()
	if err != nil {
		c.log.Warn("the plugin may inherit descriptors of the node, which cannot be listed", "error", err)
	}
	if len(open) > 0 {
		const standard = 3 // Input, output and error are not in the list.
		c.cmd.ExtraFiles = make([]*os.File, slices.Max(open)+1-standard)
	}
}

// begun limits the process that was just started, and makes it known to who may kill it.
func (c *child) begun() error {
	err := limit(c.cmd.Process.Pid, c.confinement, c.as)
	c.mu.Lock()
	c.process = c.cmd.Process
	if c.killed || err != nil {
		killGroup(c.process)
	}
	c.mu.Unlock()
	if err != nil {
		_ = c.cmd.Wait() // It was killed.
		c.mu.Lock()
		c.process = nil
		c.mu.Unlock()
		return err
	}
	if c.begins != nil {
		c.begins(c.cmd.Process.Pid)
	}
	return nil
}

// unwanted reports whether the process must not live.
func (c *child) unwanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// blame keeps the first reason why there is no process.
func (c *child) blame(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
	}
	return c.fault
}

// readStdout hands the first line to go-plugin if it is a handshake, and logs everything
// after it. It reads until the pipe ends: a process that prints must never wait for its
// host.
func (c *child) readStdout(pipe *os.File) {
	defer c.stdout.Close() //nolint:errcheck // It cannot fail.
	r := bufio.NewReaderSize(pipe, maxHandshakeBytes)
	line, err := r.ReadSlice('\n')
	switch {
	case err == nil:
		_, err = parseHandshake(string(line), c.socketDir, c.versions)
	case errors.Is(err, bufio.ErrBufferFull):
		err = notPlugin("build it with the plugin SDK", "its first line has more than %d bytes, beginning with %.*q", maxHandshakeBytes, maxEvidenceBytes, line)
	}
	if err == nil {
		_, _ = c.line.Write(line) // An error says that go-plugin has given up.
	} else {
		if fault, ok := errors.AsType[*StartError](err); ok {
			_ = c.blame(fault) // startError asks for the fault.
		}
		_, _ = c.stdout.Write(line) // It cannot fail.
	}
	_ = c.line.Close()          // It cannot fail.
	_, _ = io.Copy(c.stdout, r) // Ends with the pipe, or when wait sets its deadline.
}

func (c *child) readStderr(pipe *os.File) {
	defer c.stderr.Close()         //nolint:errcheck // It cannot fail.
	_, _ = io.Copy(c.stderr, pipe) // Ends with the pipe, or when wait sets its deadline.
}

// countTasks kills the process when it has more tasks than it may, until it has ended.
func (c *child) countTasks() {
	most, pause := c.confinement.Tasks, countPause
	for most > 0 {
		select {
		case <-time.After(pause):
		case <-c.over:
			return
		}
		began := time.Now()
		n, err := tasksOf(c.cmd.Process.Pid)
		if err != nil {
			c.log.Warn("the processes and threads of the plugin cannot be counted, and are not limited", "error", err)
			return
		}
		if n > most {
			c.exceeded(fmt.Errorf("it had %d processes and threads, limits.tasks is %d", n, most))
			return
		}
		pause = max(countPause, countShare*time.Since(began))
	}
}

// exceeded kills a process that has exceeded a limit.
func (c *child) exceeded(err error) {
	c.mu.Lock()
	c.overrun = err
	if c.fault == nil { // It counts for as long as the process has not shaken hands.
		c.fault = &StartError{Err: plugins.ErrLimit, Cause: err, Cure: "look why it needs more, or raise the limit"}
	}
	c.mu.Unlock()
	c.log.Error("the plugin has more than it may, and is killed", "error", err)
	c.kill()
}

// wait waits for the end of the process, kills what is left of its group and what has
// left the group, and reads the rest of the pipes.
func (c *child) wait(readers *sync.WaitGroup, pipes ...*os.File) {
	defer close(c.exited)
	var err error
	if c.launcher.await(c.cmd.Process) {
		c.sweep()
		err = c.cmd.Wait()
	} else {
		err = c.cmd.Wait()
		c.sweep()
	}
	close(c.over)
	if n := strays.Kill(socketDirVariable, c.socketDir); n > 0 {
		c.log.Warn("the plugin left processes behind, which were killed", "processes", n)
	}
	for _, pipe := range pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(leftoverTime)) // Pipes have deadlines.
	}
	readers.Wait()
	for _, pipe := range pipes {
		_ = pipe.Close() // It was only read.
	}
	c.mu.Lock()
	c.waitErr = err
	c.mu.Unlock()
}

// sweep kills what is left of the group of a process that has ended.
func (c *child) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	killGroup(c.cmd.Process)
	c.reaped = true
}

// kill kills the whole group, unless the process has ended already.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.process != nil && !c.reaped {
		killGroup(c.process)
	}
}

// end kills the process and waits for its end, if there is one.
func (c *child) end() error {
	c.kill()
	if c.pid() == 0 {
		return nil
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(reapTime):
		return ErrStuck
	}
}

// Stdout is read by go-plugin up to the end of the handshake line.
func (c *child) Stdout() io.ReadCloser { return c.toLibrary }

// Stderr is empty for go-plugin, which would log lines of any length and at any rate, and
// panics at a record whose message is no text.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name names the process in go-plugin's messages.
func (c *child) Name() string { return c.cmd.Args[0] }

// ID is the number of the process.
func (c *child) ID() string { return strconv.Itoa(c.pid()) }

func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.Pid
}

// Diagnose adds nothing for go-plugin: see diagnose.
func (c *child) Diagnose(context.Context) string { return "" }

// Wait waits for the end of the process.
func (c *child) Wait(context.Context) error {
	<-c.exited
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waitErr
}

// Kill is called by go-plugin when a launch fails.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// PluginToHost and HostToPlugin translate nothing.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin is never called: the broker is not used.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// blamed returns what is wrong with the file or its handshake, nil if nothing is.
func (c *child) blamed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// diagnose says that the process ended before it was ready.
func (c *child) diagnose() error {
	return notPlugin("look why it ends", "it ended (%s) before it was ready; it %s", c.ended(), c.said())
}

// said quotes the last output of the process.
func (c *child) said() string {
	for _, o := range []*output{c.stderr, c.stdout} {
		if text := strings.TrimSpace(o.Tail()); text != "" {
			return fmt.Sprintf("printed last %q", text)
		}
	}
	return "printed nothing"
}

// ended names the way in which the process ended.
func (c *child) ended() string {
	select {
	case <-c.exited:
	default:
		return "not yet"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.overrun != nil:
		return "killed, since " + c.overrun.Error()
	case c.waitErr == nil:
		return "exit status 0"
	}
	return c.waitErr.Error()
}

// cannotExecute says what to do about an executable that the system does not run. A
// system without the resources to run it is another fault.
func (c *child) cannotExecute(err error) error {
	for _, scarce := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, scarce) {
			return err
		}
	}
	cure := "look whether it was built for this system"
	switch {
	case errors.Is(err, fs.ErrPermission) && !mayChangeUser() && c.confinement.User+c.confinement.Group != "":
		cure = "run the node with the rights of root, or leave user and group out"
	case errors.Is(err, fs.ErrPermission) && c.confinement.User+c.confinement.Group != "":
		cure = "look whether that user may pass through all directories above the one for copies, and execute files there"
	case errors.Is(err, fs.ErrPermission):
		cure = "look whether the directory for copies is on a file system that forbids execution, and give another one"
	}
	return notPlugin(cure, "it cannot be executed: %w", err)
}
