// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
)

// Link is the connection of a process to its parent.
type Link struct {
	Launcher

	requests chan string // Closed when the parent process is gone.
	out      *json.Encoder
}

// exitOrphaned is the exit status of a process that did not end with its parent.
const exitOrphaned = 1

// NewLink returns a link over the standard streams. The context ends with the
// parent; a process that then does not end by itself is ended.
func NewLink(ctx context.Context, l Launcher, in io.Reader, out io.Writer) (context.Context, *Link) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &Link{Launcher: l, requests: make(chan string), out: json.NewEncoder(out)}
	// Owned by the process: ends with its standard input.
	go func() {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			k.requests <- lines.Text()
		}
		close(k.requests)
		cancel(errParentGone)
		time.AfterFunc(Patience/2, func() { os.Exit(exitOrphaned) })
	}()
	return ctx, k
}

var errParentGone = errors.New("the parent process has ended")

// Send sends an answer.
func (k *Link) Send(v any) error { return k.out.Encode(v) }

// Serve answers the parent's requests until the parent is gone.
func (k *Link) Serve(answer func(request string) (any, error)) error {
	for request := range k.requests {
		v, err := answer(request)
		if err == nil {
			err = k.Send(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
