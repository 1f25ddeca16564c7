// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Load is so many busy loops beside a run, each a process of its own, which take processors from it.
type Load struct {
	loops []*exec.Cmd
	pipes []io.Closer
}

// StartLoad starts n processes of this program with the argument "spin", each with the end of a pipe as
// its standard input. They end with ctx at the latest.
func StartLoad(ctx context.Context, n int) (*Load, error) {
	l := &Load{}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range n {
		cmd := exec.CommandContext(ctx, self, "spin")
		pipe, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("a busy loop: %w", err), l.Close())
		}
		l.loops, l.pipes = append(l.loops, cmd), append(l.pipes, pipe)
	}
	return l, nil
}

// Close ends the loops and waits for them.
func (l *Load) Close() error {
	var faults []error
	for i, cmd := range l.loops {
		faults = append(faults, l.pipes[i].Close(), cmd.Wait())
	}
	return errors.Join(faults...)
}

// Spin is one busy loop. It ends with its standard input, so also when whoever started it was killed.
func Spin(stdin io.Reader) {
	ended := make(chan struct{})
	go func() { // It ends with the input, and the program with it.
		_, _ = io.Copy(io.Discard, stdin) // Any end of it is the end.
		close(ended)
	}()
	for i := 0; ; i++ {
		if i%1_000_000 == 0 {
			select {
			case <-ended:
				return
			default:
			}
		}
	}
}
