// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is one node.
type process struct {
	name     string // For people: n1, n2 and so on.
	address  string // Address in the cluster: host:port.
	node     string // Identity in the cluster, from its first line.
	http     string // Address of its HTTP interface.
	admitted bool   // Clients may ask the node; guarded by the fleet.
	cmd      *exec.Cmd
	stdin    io.Closer     // Held open: its end tells the node that the demo has died.
	gone     chan struct{} // Closed when the process has ended.

	mu       sync.Mutex
	requests map[int]context.CancelFunc // Cancels the requests under way.
	sent     int
}

// newProcess returns a process that has not started.
func newProcess(name, address string) *process {
	return &process{name: name, address: address, gone: make(chan struct{}), requests: map[int]context.CancelFunc{}}
}

// start starts the process. The channel gets one result: nil when the process has said
// where it serves, otherwise the error.
func (p *process) start(program, config, journal, logFile string) (<-chan error, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program, "-config", config, "-journal", journal, "-attached") //nolint:noctx // It is ended by close, not by a context: how a node ends is what the demo shows.
	p.cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+p.address)
	p.cmd.Stderr = log
	dieWithParent(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	hello := make(chan error, 1)
	// Owned by the process; ends with it, which the fleet's close sees to.
	go func() {
		hello <- p.greet(out)
		_ = p.cmd.Wait() // Its state and its log say how it ended.
		_ = log.Close()
		close(p.gone)
	}()
	return hello, nil
}

// greet reads the first line of the process.
func (p *process) greet(out io.Reader) error {
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return err
	}
	var first struct{ HTTP, Node string }
	err = json.Unmarshal(line, &first)
	p.http, p.node = first.HTTP, first.Node
	return err
}

// terminate asks the node to leave.
func (p *process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// endsWithin bounds the wait for a process that is to end by itself.
const endsWithin = 45 * time.Second

// ended waits until the process has ended, and returns an error unless its exit status is
// the given one.
func (p *process) ended(ctx context.Context, status int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endsWithin, fmt.Errorf("%s has not ended after %v", p.name, endsWithin))
	defer cancel()
	select {
	case <-p.gone:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		return fmt.Errorf("%s ended with status %d, not %d", p.name, got, status)
	}
	return nil
}

// begin returns the context of a request to the process, which abort ends too, and the
// function to call after the request.
func (p *process) begin(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	n := p.sent
	p.requests[n] = cancel
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.requests, n)
	}
}

// abort ends the requests under way, as a load balancer does that finds a node
// unresponsive.
func (p *process) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.requests {
		cancel()
	}
}
