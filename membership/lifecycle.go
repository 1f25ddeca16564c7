// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"sync"
)

// lifecycle is whether a node runs, and why it has ended. It begins to end when the machine says so or the program
// closes it, and has ended when all is taken apart.
type lifecycle struct {
	ctx      context.Context //nolint:containedctx // Life of the node: ends everything that its goroutines wait for.
	cancel   context.CancelFunc
	stopping chan struct{} // Closed when the node begins to end.
	stopOnce sync.Once
	done     chan struct{} // Closed when it has ended.
	err      error         // Why; set before stopping is closed.
}

// begin returns the life of a node that runs.
func (l *lifecycle) begin() {
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.stopping, l.done = make(chan struct{}), make(chan struct{})
}

// end begins to end the node; the first reason counts.
func (l *lifecycle) end(why error) {
	l.stopOnce.Do(func() {
		l.err = why
		close(l.stopping)
	})
}

// running reports whether the node has not begun to end.
func (l *lifecycle) running() bool {
	select {
	case <-l.stopping:
		return false
	default:
		return true
	}
}

// why returns why the node has ended; nil if it has not.
func (l *lifecycle) why() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}
