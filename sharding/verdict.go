// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"fmt"
)

// verdict is what the coordinator thinks of a region. Each is replaced by the next and,
// but for the closing of its channels, never changed.
//
//	not known ──> accepted <──> refused
type verdict struct {
	accepted bool
	err      *SettingsError // Why it was refused; nil while it is not known to be.
	refused  chan struct{}  // Closed when it is refused.
	over     chan struct{}  // Closed when another verdict has taken its place.
}

func newVerdict() *verdict {
	return &verdict{refused: make(chan struct{}), over: make(chan struct{})}
}

// refuse notes that the coordinator does not want this region, which ends
// everybody who waits. It and admit are called by the driver's goroutine alone.
func (r *router) refuse(err *SettingsError) {
	next, old := newVerdict(), r.verdict.Load()
	next.err, next.refused = err, old.refused
	r.verdict.Store(next)
	if old.err == nil {
		close(old.refused)
	}
	close(old.over)
}

// admit notes that the coordinator has accepted this region, and takes a refusal back.
func (r *router) admit() {
	next, old := newVerdict(), r.verdict.Load()
	next.accepted = true
	if old.err == nil {
		next.refused = old.refused // Those who wait by it hear of a refusal to come.
	}
	r.verdict.Store(next)
	close(old.over)
}

// refusal returns why the region is refused, nil when it is not any more.
func (r *router) refusal() error {
	if err := r.verdict.Load().err; err != nil {
		return err
	}
	return nil
}

// AwaitReady waits until a coordinator of the kind has accepted this node's region. From
// then on messages to its entities find their way, as far as their shards have homes. It
// returns the [*SettingsError] of a coordinator that refuses the region, since its settings
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

// Refused returns why coordinators refuse kinds of this node, in no order; nothing while
// they do not. Such a node serves no messages of the kind, and will not before its
// settings are those of the other nodes. Kinds that wait for their coordinator are not
// refused.
func (s *System) Refused() []*SettingsError {
	var all []*SettingsError
	for _, r := range *s.routers.Load() {
		if err := r.verdict.Load().err; err != nil {
			all = append(all, err)
		}
	}
	return all
}
