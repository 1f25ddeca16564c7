// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/notes"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// First what the leases need and are; then the orders of the control machine, and the goroutine of a lease, from keep
// on; then what others ask about leases, and their end.

// Config is what the leases of a node need.
type Config struct {
	Store   lease.Store  // Nil: there are no leases.
	Times   lease.Config // How long a lease lasts, and when it is renewed.
	Cluster string       // Its name.
	Owner   string       // The node, in text.
	Log     *slog.Logger

	// Under has a shard of this node ask before each message whether its lease is held, by the clock.
	Under func(kind string, shard protocol.ShardID, held func() bool)
	// Tell hands an input to the control machine, in vain if ctx or the node ends. It may wait.
	Tell func(ctx context.Context, in machine.Input)
}

// Leases are the leases of the shards of a node. It is safe for concurrent use.
type Leases struct {
	cfg Config

	waiting, losing *notes.Lines // What befalls one shard befalls many: a store that is down, a node that has died.

	mu      sync.Mutex // Guards all fields below.
	open    map[leaseID]*holding
	keeping sync.WaitGroup // The goroutines of the leases.
	lost    uint64
}

// leaseID names what a lease is for.
type leaseID = control.AskLease

// holding is one lease. The fields but cancel are guarded by Leases.mu.
type holding struct {
	cancel context.CancelFunc
	held   bool
	token  uint64
	why    string // Why it is not held yet.
	reason string // The same as the log groups it; empty before the first answer.
	since  time.Time
}

// New returns the leases of a node that has none yet.
func New(cfg Config) *Leases {
	return &Leases{
		cfg: cfg, open: make(map[leaseID]*holding),
		waiting: notes.NewLines(cfg.Log, slog.LevelWarn, "shards wait for their leases"),
		losing:  notes.NewLines(cfg.Log, slog.LevelError, "the leases of shards are lost: their entities are given up"),
	}
}

// On reports whether shards have leases.
func (l *Leases) On() bool { return l.cfg.Store != nil }

// Ask asks for a lease, and holds it until it is given back. It is called on the driver's goroutine.
func (l *Leases) Ask(e control.AskLease) {
	id := e
	keeper, err := lease.NewKeeper(l.cfg.Store, l.cfg.Times, nameOf(l.cfg.Cluster, e.Kind, e.Shard), l.cfg.Owner)
	if err != nil { // The settings and the form of the names were checked.
		l.cfg.Log.Error("a shard has no lease", "kind", e.Kind, "shard", uint32(e.Shard), "error", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	of := &holding{cancel: cancel, why: "its lease was not asked for yet", since: time.Now()}
	l.mu.Lock()
	l.open[id] = of
	l.mu.Unlock()
	// The goroutine is owned by the leases, whose end waits for it. It ends when the lease was given back, or
	// was lost and that was said.
	l.keeping.Go(func() { l.keep(ctx, keeper, id, of) })
}

// The reasons for which a lease is not held, as the log groups them.
const (
	leaseTaken   = "another has the lease"
	leaseUnknown = "the store does not say"
)

// Pauses between attempts.
const (
	leaseRetryLeast = 100 * time.Millisecond
	maxLeaseRetry   = 5 * time.Second
)

// keep asks until the lease is held, says so, and waits until it is lost or given back.
func (l *Leases) keep(ctx context.Context, keeper *lease.Keeper, id leaseID, of *holding) {
	defer func() {
		if err := keeper.Close(); err != nil {
			l.cfg.Log.WarnContext(ctx, "the lease of a shard was not given back, and ends by itself", "kind", id.Kind, "shard", uint32(id.Shard), "error", err)
		}
	}()
	for rest := leaseRetryLeast; ; rest = min(2*rest, maxLeaseRetry) {
		attempt, done := context.WithTimeout(ctx, l.cfg.Times.TTL)
		held, err := keeper.Acquire(attempt)
		done()
		if err == nil {
			l.hold(ctx, keeper, id, of, held)
			return
		}
		l.wait(id, of, err)
		if asking.Pause(ctx, rest) != nil {
			return
		}
	}
}

// hold says that a lease is held, and when it is lost. Entities ask the keeper before each message: after the process
// stood still they may be at work again before anybody has heard of the loss.
func (l *Leases) hold(ctx context.Context, keeper *lease.Keeper, id leaseID, of *holding, held lease.Holding) {
	l.cfg.Under(id.Kind, id.Shard, func() bool {
		_, now := keeper.Check()
		return now
	})
	l.mu.Lock()
	of.held, of.token, of.why = true, held.Token, ""
	l.mu.Unlock()
	l.cfg.Log.DebugContext(ctx, "a shard has its lease", "kind", id.Kind, "shard", uint32(id.Shard), "token", held.Token)
	l.cfg.Tell(ctx, control.LeaseHeld(id)) // In vain if the lease was given back, or the node has ended.
	select {
	case <-ctx.Done():
	case <-held.Lost():
		l.mu.Lock()
		of.held, of.why = false, "its lease was lost"
		l.lost++
		l.mu.Unlock()
		l.losing.Note(id.Kind, "", "", fmt.Sprintf("shard %d", id.Shard))
		l.cfg.Tell(ctx, control.LeaseLost(id))
	}
}

// wait notes why a lease is not held. What is new is logged.
func (l *Leases) wait(id leaseID, of *holding, err error) {
	reason, why := leaseUnknown, "its lease is not to be had: "+shorten(err.Error())
	if refused, ok := errors.AsType[*lease.RefusedError](err); ok {
		reason, why = leaseTaken, "its lease is with "+protocol.Clip(refused.Holder)
	}
	l.mu.Lock()
	changed := of.reason != reason
	of.reason, of.why = reason, why
	l.mu.Unlock()
	if changed {
		l.waiting.Note(id.Kind, reason, "", fmt.Sprintf("shard %d: %s", id.Shard, why))
	}
}

// shorten bounds the text of an error.
func shorten(text string) string {
	const most = 256
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Give gives a lease back. It is called on the driver's goroutine, and does not wait.
func (l *Leases) Give(e control.GiveLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.open[leaseID(e)]; of != nil {
		delete(l.open, leaseID(e))
		of.cancel()
	}
}

// Waits says for what a shard waits before its entities start, and under which epoch it is to be hosted; empty: for
// nothing.
func (l *Leases) Waits(kind string, shard protocol.ShardID) (string, protocol.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, of := range l.open {
		if id.Kind == kind && id.Shard == shard && !of.held {
			return fmt.Sprintf("waits for its lease since %s: %s", of.since.UTC().Format(time.RFC3339), of.why), id.Epoch
		}
	}
	return "", protocol.Epoch{}
}

// Token returns the token of the lease under which a shard is hosted; false: there is none.
func (l *Leases) Token(kind string, shard protocol.ShardID, epoch protocol.Epoch) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.open[leaseID{Kind: kind, Shard: shard, Epoch: epoch}]
	if of == nil || !of.held {
		return 0, false
	}
	return of.token, true
}

// Count returns how many shards of a kind wait for their leases.
func (l *Leases) Count(kind string) (waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, of := range l.open {
		if id.Kind == kind && !of.held {
			waiting++
		}
	}
	return waiting
}

// Lost returns how many leases were lost.
func (l *Leases) Lost() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// End gives all leases back once all entities have returned, or the time of a lease is over: what then still runs
// runs beside its successor.
func (l *Leases) End(entities *sync.WaitGroup) {
	l.waiting.End()
	l.losing.End()
	if !l.On() {
		return
	}
	returned := make(chan struct{})
	// The goroutine is owned by the system, which waits for the same entities before it has stopped.
	go func() {
		entities.Wait()
		close(returned)
	}()
	limit := time.NewTimer(l.cfg.Times.TTL)
	defer limit.Stop()
	select {
	case <-returned:
	case <-limit.C:
	}
	l.mu.Lock()
	for id, of := range l.open {
		delete(l.open, id)
		of.cancel()
	}
	l.mu.Unlock()
	l.keeping.Wait()
}

// nameOf returns the name of the lease of a shard, which has the form that every store knows. What has no place in
// it is left out; then a digest of the whole keeps the name apart from others.
func nameOf(cluster, kind string, shard protocol.ShardID) string {
	part := func(text string, most int) string {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
				return r
			case r >= 'A' && r <= 'Z':
				return r + 'a' - 'A'
			default:
				return -1
			}
		}, text)
		return strings.Trim(kept[:min(len(kept), most)], "-")
	}
	c, k := part(cluster, 16), part(kind, 16)
	name := fmt.Sprintf("shard-%s-%s-%d", c, k, shard)
	if c != cluster || k != kind || strings.Contains(cluster, "-") || strings.Contains(kind, "-") {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q/%q", cluster, kind)
		name = fmt.Sprintf("shard-%s-%s-%s-%d", c, k, hex.EncodeToString(h.Sum(nil)[:4]), shard)
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "--", "-"), "--", "-")
}
