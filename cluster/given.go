// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// givenTimeout is how long something that the program has given may take to close, where nothing else says so.
	givenTimeout = time.Second

	// givenMoment is how long it may take in any case.
	givenMoment = 100 * time.Millisecond
)

// given is what the program has handed to the node to be closed with it: a store, or a method of discovery. Its Close
// is code of the program, has no context, and may wait for ever, as a pool of connections does of which one is not
// given back. Nil, and what is no [io.Closer], need not be closed.
type given struct {
	name   string // What it is, for the error.
	closer io.Closer

	once sync.Once
	done chan struct{} // Closed when Close has returned.
	err  error         // Written before that.
}

// newGiven returns what is to be closed.
func newGiven(name string, v any) *given {
	closer, _ := v.(io.Closer)
	return &given{name: name, closer: closer, done: make(chan struct{})}
}

// close closes it once, and waits for that until ctx ends, and a moment at least. Later calls wait for the same.
func (g *given) close(ctx context.Context) error {
	if g == nil || g.closer == nil {
		return nil
	}
	g.once.Do(func() {
		// Ends with Close: the program owns it when that takes too long.
		go func() {
			defer close(g.done)
			g.err = g.closer.Close()
		}()
	})
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
	}
	select {
	case <-g.done: // What came before may have used up the time.
		return g.err
	case <-time.After(givenMoment):
	}
	return fmt.Errorf("cluster: %s does not close, and is left behind: %w", g.name, ctx.Err())
}

// drop closes what the node did not get to use.
func (g *given) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), givenTimeout)
	defer cancel()
	return g.close(ctx)
}
