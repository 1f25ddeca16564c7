// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/examples/attached"
)

// process is one node.
type process struct {
	*attached.Process

	name     string // For people: n1, n2 and so on.
	address  string // Address in the cluster: host:port.
	admitted bool   // Clients may ask the node; guarded by mu of its [nodeProcesses].

	mu       sync.Mutex
	requests map[int]context.CancelFunc // Cancels the requests under way.
	sent     int
}

// newProcess returns a process that has not started.
func newProcess(name, address string) *process {
	return &process{Process: new(attached.Process), name: name, address: address, requests: map[int]context.CancelFunc{}}
}

// start starts the process. It has said where it serves when its greeting is nil.
func (p *process) start(program, config, journal, logFile, socket string) error {
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	// The process has a descriptor of its own.
	defer func() { _ = log.Close() }()

	cmd := exec.Command(program, "-config", config, "-journal", journal, "-attached") //nolint:noctx // It is ended by close, not by a context: how a node ends is what the demo shows.
	cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+p.address)
	if canOperate {
		cmd.Env = append(cmd.Env, "QUORATE_MANAGEMENT__OPERATORS__SOCKET="+socket)
	}
	cmd.Stderr = log
	dieWithParent(cmd)
	p.Process, err = attached.Start(cmd, (*exec.Cmd).Start)
	return err
}

// terminate asks the node to leave.
func (p *process) terminate() error { return p.Cmd.Process.Signal(syscall.SIGTERM) }

// endsWithin bounds the wait for a process that is to end by itself.
const endsWithin = 45 * time.Second

// ended waits until the process has ended, and returns an error unless its exit status is
// the given one.
func (p *process) ended(ctx context.Context, status int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, endsWithin, fmt.Errorf("%s has not ended after %v", p.name, endsWithin))
	defer cancel()
	select {
	case <-p.Ended():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if got := p.Cmd.ProcessState.ExitCode(); got != status {
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
