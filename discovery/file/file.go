// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/discovery"
)

// A lookup takes its turn, then gives what was read a short time ago, or reads: refresh reads
// until the content is the same twice, and parses the content if it has changed.

// Method is the name by which a configuration selects this method.
const Method = "file"

// maxBytes is the largest file: ten thousand of the longest names, and room for comments.
const maxBytes = 4 << 20

// Discovery finds contact points in a file. It is safe for concurrent use.
type Discovery struct {
	config Config

	// turn holds a token while a lookup reads the file and uses the fields below. It is a
	// channel and no mutex, because a lookup waits no longer than its context allows.
	turn    chan struct{}
	content []byte             // The content that was read last without an error.
	targets []discovery.Target // The contact points in content.
	readAt  time.Time          // When content was read; zero: never.
}

var _ discovery.Discovery = (*Discovery)(nil)

// New returns the method with these settings, without a look at the file. The error is that
// of [Config.Validate].
func New(config Config) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Discovery{config: config, turn: make(chan struct{}, 1)}, nil
}

// Lookup returns the contact points that the file lists, in its order. The query does not
// matter. The error wraps the error of the operating system, [discovery.ErrBadTarget] if lines
// are wrong, or the error of the context.
func (d *Discovery) Lookup(ctx context.Context, _ discovery.Query) (discovery.Targets, error) {
	if err := ctx.Err(); err != nil {
		return discovery.Targets{}, fmt.Errorf("file: %w", err)
	}
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return discovery.Targets{}, fmt.Errorf("file: %w", ctx.Err())
	}
	if d.readAt.IsZero() || time.Since(d.readAt) >= d.config.Interval {
		if err := d.refresh(ctx); err != nil {
			return discovery.Targets{}, fmt.Errorf("file: %s: %w", d.config.Path, err)
		}
	}
	found := discovery.Targets{
		List: slices.Clone(d.targets),
		TTL:  max(0, d.config.Interval-time.Since(d.readAt)),
	}
	found.Reason = fmt.Sprintf("%s lists %d", d.config.Path, len(d.targets))
	return found, nil
}

// refresh reads the file until it has settled.
func (d *Discovery) refresh(ctx context.Context) error {
	content, err := read(d.config.Path)
	for err == nil && d.config.Settle > 0 && !d.known(content) {
		if err := wait(ctx, d.config.Settle); err != nil {
			return fmt.Errorf("it changes: %w", err)
		}
		before := content
		content, err = read(d.config.Path)
		if bytes.Equal(content, before) {
			break
		}
	}
	if err != nil {
		return err
	}
	if !d.known(content) {
		targets, err := parse(content)
		if err != nil {
			return err
		}
		d.content, d.targets = content, targets
	}
	d.readAt = time.Now()
	return nil
}

// known reports whether the content was parsed already. Empty content never was, because
// that is an error.
func (d *Discovery) known(content []byte) bool {
	return len(content) > 0 && bytes.Equal(content, d.content)
}

// read returns the content of a regular file of a bearable size.
func read(path string) (content []byte, err error) {
	// Opening a pipe would wait for its writer, if it were not for O_NONBLOCK; the pipe is
	// refused below.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no regular file, its mode is %v", info.Mode())
	}
	content, err = io.ReadAll(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(content) > maxBytes:
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	return content, nil
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
