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
	address  string // Of the cluster: host:port.
	node     string // Its identity in the cluster, as it said.
	http     string // Of its HTTP interface.
	admitted bool   // Clients may ask it; the fleet guards it.
	cmd      *exec.Cmd
	stdin    io.Closer     // Held open: its end tells the node that the demo has died.
	gone     chan struct{} // Closed when it has ended.

	mu       sync.Mutex
	requests map[int]context.CancelFunc // Those under way.
	sent     int
}

// newProcess returns a process that has not started.
func newProcess(name, address string) *process {
	return &process{name: name, address: address, gone: make(chan struct{}), requests: map[int]context.CancelFunc{}}
}

// start starts the process. The channel has one result: that it has said where
// it serves, or why not.
func (p *process) start(program, config, journal, logFile string) (<-chan error, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(program, "-config", config, "-journal", journal, "-attached") //nolint:noctx // It ends by close, not by a context: the end is the subject.
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
		_ = p.cmd.Wait() // How it ended is in its state and its log.
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

// ended waits until the process has ended, and returns an error unless it did
// so with the given status.
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

// begin returns the context of a request to the process, which abort ends too,
// and what is to be called after the request.
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

// abort ends the requests under way, as a load balancer does that has found out
// that a node does not answer.
func (p *process) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.requests {
		cancel()
	}
}
