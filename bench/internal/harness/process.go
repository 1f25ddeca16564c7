// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// A process is started in a role ([Launcher.Start]), asked ([Process.Call]) and ended
// ([Process.Stop], [Process.Kill]).

// Launcher starts processes of this program.
type Launcher struct {
	Program string   // Path of the executable.
	Args    []string // Arguments before the role.
}

// RoleFlag makes the program play a role; its argument is a spec.
const RoleFlag = "-role"

// Patience is how long a process may take to end when it is asked to.
const Patience = 10 * time.Second

// Process is a child process. It belongs to the goroutine that started it.
type Process struct {
	role    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan []byte // Lines of the standard output; closed at its end.
	said    *tail
	gone    chan struct{} // Closed when the process has ended.
}

// Start starts a process that plays a role.
func (l Launcher) Start(s Spec) (*Process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	args := append(append([]string(nil), l.Args...), RoleFlag, string(text))
	p := &Process{role: s.Role, said: new(tail), answers: make(chan []byte), gone: make(chan struct{})}
	p.cmd = exec.Command(l.Program, args...) //nolint:noctx // The process ends by Stop or Kill, which say how.
	p.cmd.Stderr = p.said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: start a process: %w", err)
	}
	// Owned by the process; ends with it, which Stop and Kill wait for.
	go func() {
		defer close(p.gone)
		in := bufio.NewReader(out)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				break
			}
			p.answers <- line
		}
		_ = p.cmd.Wait() // The standard error of the process tells more; all of it is there now.
		close(p.answers)
	}()
	return p, nil
}

// Answer waits for the next line of the process and decodes it.
func (p *Process) Answer(ctx context.Context, into any) error {
	select {
	case line, ok := <-p.answers:
		if !ok {
			return fmt.Errorf("bench: process %s ended: %s", p.role, p.said)
		}
		return json.Unmarshal(line, into)
	case <-ctx.Done():
		return fmt.Errorf("bench: process %s does not answer: %w: %s", p.role, context.Cause(ctx), p.said)
	}
}

// Call sends a request and waits for the answer.
func (p *Process) Call(ctx context.Context, request string, into any) error {
	if _, err := io.WriteString(p.stdin, request+"\n"); err != nil {
		return fmt.Errorf("bench: process %s: %w: %s", p.role, err, p.said)
	}
	return p.Answer(ctx, into)
}

// Stop asks the process to end, by the end of its input, and kills it if it takes too
// long.
func (p *Process) Stop() {
	_ = p.stdin.Close() // Already closed when Stop is called again.
	// Owned by Stop; ends with the process, which is waited for below.
	go func() {
		for range p.answers { // The answers are not needed any more.
		}
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
		p.Kill()
	}
}

// Kill ends the process without warning.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // Otherwise the process has ended already.
	for range p.answers {
	}
	<-p.gone
}

// tail keeps the end of a process's output.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// tailBytes is the size of the tail.
const tailBytes = 4096

// Write keeps p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = t.kept[over:]
	}
	return len(p), nil
}

// String returns the tail.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return "it said nothing"
	}
	return "it said: " + string(t.kept)
}
