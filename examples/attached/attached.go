// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package attached runs nodes as child processes on this machine, for the demo of the bank
// and for the tests of the examples with processes.
//
// The program of a node takes the flag -attached: it ends at once when its standard input
// does, and so with its parent, even with one that was killed. The first line of its
// standard output says, in JSON, who the node is and where it serves HTTP.
package attached

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"sync/atomic"
)

// Process is one process with a node.
type Process struct {
	// Node is the identity of the node in its cluster, and HTTP the address of its HTTP
	// interface. The first line of the process has both: they are set when Hello has given
	// nil, or when Greeted is true.
	Node, HTTP string
	// Cmd is what was started. Its state can be read when Ended is closed.
	Cmd *exec.Cmd

	stdin   io.Closer // Held open: the process ends with it.
	hello   chan error
	greeted atomic.Bool
	ended   chan struct{}
}

// Start has start run a program, usually (*[exec.Cmd]).Start. The command has the flag
// -attached, and neither standard input nor standard output. Whoever starts a process ends
// it, or lets it end with this process.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	p := &Process{Cmd: cmd, hello: make(chan error, 1), ended: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(cmd); err != nil {
		return nil, err
	}
	// Ends with the process, for which the caller waits by Ended.
	go func() {
		defer close(p.ended)
		p.hello <- p.greet(out)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // The state of the process and its log say how it ended.
	}()
	return p, nil
}

// greet reads the first line of the process.
func (p *Process) greet(out io.Reader) error {
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return err
	}
	var first struct{ HTTP, Node string }
	err = json.Unmarshal(line, &first)
	p.HTTP, p.Node = first.HTTP, first.Node
	p.greeted.Store(err == nil)
	return err
}

// Hello gives one result: nil when the first line was read, otherwise why it was not, which
// is [io.EOF] when the process has ended before.
func (p *Process) Hello() <-chan error { return p.hello }

// Greeted reports whether the first line was read.
func (p *Process) Greeted() bool { return p.greeted.Load() }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Orphan closes the standard input of the process, as the system does when its parent dies.
func (p *Process) Orphan() error { return p.stdin.Close() }
