// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// spec is what a process is told to do. It goes to it as an argument.
type spec struct {
	Role      string        `json:"role"`
	Time      time.Duration `json:"time"`      // How long to measure.
	Size      int           `json:"size"`      // Bytes of a message.
	Senders   int           `json:"senders"`   // Goroutines that send.
	Entities  int           `json:"entities"`  // How many to use or to make.
	Batch     int           `json:"batch"`     // Messages in one of gRPC.
	Nodes     int           `json:"nodes"`     // Members of a cluster.
	Apart     bool          `json:"apart"`     // Each node has an IP address of its own.
	Telemetry bool          `json:"telemetry"` // Nodes have metrics that are fetched, and traces.
	Awake     bool          `json:"awake"`     // Keep the processors awake meanwhile.
	Oldest    bool          `json:"oldest"`    // Kill the oldest node, not the youngest.
	Seeds     []string      `json:"seeds"`     // For a peer: whom to join.
	Limit     time.Duration `json:"limit"`     // The run has failed after this time.
	Profile   string        `json:"profile"`   // Directory for profiles of the processor; none when empty.
}

// outcome is the result of one run.
type outcome struct {
	Values     map[string]float64 `json:"values"`
	CPU        float64            `json:"cpu"` // Microseconds of processor time an operation, all processes together.
	Lost       uint64             `json:"lost"`
	OutOfOrder uint64             `json:"out_of_order"`
	Duplicated uint64             `json:"duplicated"`
	Note       string             `json:"note,omitempty"` // What a reader should know about the run.
}

// correct reports whether every message came once and in order.
func (o outcome) correct() bool { return o.Lost == 0 && o.OutOfOrder == 0 && o.Duplicated == 0 }

// launcher starts processes of this program.
type launcher struct {
	program string   // Path of the executable.
	args    []string // Arguments before the role.
}

// roleFlag makes the program play a role; its argument is a spec.
const roleFlag = "-role"

// patience is how long a process may take to end when it is asked to.
const patience = 10 * time.Second

// process is a child. It belongs to the goroutine that started it.
type process struct {
	role    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan []byte // Lines of its standard output; closed at its end.
	said    *tail
	gone    chan struct{} // Closed when it has ended.
}

// start starts a process that plays a role.
func (l launcher) start(s spec) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	args := append(append([]string(nil), l.args...), roleFlag, string(text))
	p := &process{role: s.Role, said: new(tail), answers: make(chan []byte), gone: make(chan struct{})}
	p.cmd = exec.Command(l.program, args...) //nolint:noctx // It ends by stop or kill, which say how.
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
	// Owned by the process; ends with it, which stop and kill wait for.
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
		close(p.answers)
		_ = p.cmd.Wait() // What it said on its standard error tells more.
	}()
	return p, nil
}

// answer waits for the next line of the process and decodes it.
func (p *process) answer(ctx context.Context, into any) error {
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

// call sends a request and waits for the answer.
func (p *process) call(ctx context.Context, request string, into any) error {
	if _, err := io.WriteString(p.stdin, request+"\n"); err != nil {
		return fmt.Errorf("bench: process %s: %w: %s", p.role, err, p.said)
	}
	return p.answer(ctx, into)
}

// stop asks the process to end, by the end of its input, and kills it when it
// takes too long.
func (p *process) stop() {
	_ = p.stdin.Close() // Closed already when stop is called again.
	// Owned by stop; ends with the process, which is waited for below.
	go func() {
		for range p.answers { // Nobody wants them any more.
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
		p.kill()
	}
}

// kill ends the process without warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // It has ended already otherwise.
	for range p.answers {
	}
	<-p.gone
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// tailBytes is how much of it.
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

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return "it said nothing"
	}
	return "it said: " + string(t.kept)
}

// link is a process's way to its parent.
type link struct {
	launcher

	requests chan string // Closed when the parent is gone.
	out      *json.Encoder
}

// newLink returns a link over the standard streams. The context ends with the
// parent; a process that then does not end by itself is ended.
func newLink(ctx context.Context, l launcher, in io.Reader, out io.Writer) (context.Context, *link) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &link{launcher: l, requests: make(chan string), out: json.NewEncoder(out)}
	// Owned by the process: ends with its standard input.
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			k.requests <- lines.Text()
		}
		close(k.requests)
		cancel(errParentGone)
		time.AfterFunc(patience/2, func() { os.Exit(statusFailed) })
	}()
	return ctx, k
}

var errParentGone = errors.New("the parent process has ended")

// send sends an answer.
func (k *link) send(v any) error { return k.out.Encode(v) }

// serve answers the parent's requests until it is gone.
func (k *link) serve(answer func(request string) (any, error)) error {
	for request := range k.requests {
		v, err := answer(request)
		if err == nil {
			err = k.send(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
