// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
)

// verdict says whether the coordinator has accepted a region. A verdict is replaced by the
// next verdict and, but for the closing of its channels, never changed.
//
//	not known ──> accepted <──> refused
type verdict struct {
	accepted bool
	err      *SettingsError // Why the region is refused; nil while it is not.
	refused  chan struct{}  // Closed when the region is refused.
	over     chan struct{}  // Closed when another verdict has replaced this one.
}

func newVerdict() *verdict {
	return &verdict{refused: make(chan struct{}), over: make(chan struct{})}
}

// refuse notes that the coordinator refuses this region, which ends every wait of a
// sender: an ask that is not in its table yet looks at the verdict when it is. Only the
// driver's goroutine calls refuse and admit.
func (r *router) refuse(err *SettingsError) {
	next, old := newVerdict(), r.verdict.Load()
	next.err, next.refused = err, old.refused
	r.verdict.Store(next)
	if old.err == nil {
		close(old.refused)
	}
	close(old.over)
	r.region.EndAsks(err)
}

// admit notes that the coordinator has accepted this region, and takes a refusal back.
func (r *router) admit() {
	next, old := newVerdict(), r.verdict.Load()
	next.accepted = true
	if old.err == nil {
		next.refused = old.refused // Senders that wait by this channel hear of a later refusal.
	}
	r.verdict.Store(next)
	close(old.over)
}

// refusal returns why the region is refused, nil when it is not refused.
func (r *router) refusal() error {
	if err := r.verdict.Load().err; err != nil {
		return err
	}
	return nil
}

// Done is closed when the node has ended, and the region with it: nothing that is sent gets anywhere any more.
func (g *Region[C]) Done() <-chan struct{} { return g.r.system.ended }

// AwaitReady waits until a coordinator of the kind has accepted this node's region. From
// then on messages to entities of the kind find their way, as far as their shards have
// homes. It returns the [*SettingsError] of a coordinator that refuses the region, since its settings
// are not those of the other nodes; the error of ctx; or [ErrClosed] when the node ends.
//
// A region waits for its coordinator for as long as there is none: before the node is up,
// while a cluster forms, or while the coordinator moves. That is no reason to call a node
// not ready, since a rolling update may have to go on for the coordinator to come; see
// [System.Refused] for what is.
func (g *Region[C]) AwaitReady(ctx context.Context) error {
	for {
		v := g.r.verdict.Load()
		switch {
		case v.err != nil:
			return v.err
		case v.accepted:
			return nil
		}
		select {
		case <-v.over:
		case <-g.r.system.ended:
			return g.r.system.closed()
		case <-ctx.Done():
			return fmt.Errorf("sharding: no coordinator has accepted kind %q yet: %w", g.r.name, context.Cause(ctx))
		}
	}
}
