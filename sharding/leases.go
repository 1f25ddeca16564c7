// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/sharding/internal/asking"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/notes"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// A lease for each shard that this node hosts: ask and give carry out what the control machine wants, by a keeper and a
// goroutine for each lease, which says when it is held and when it is lost. waits says for what a shard waits.

// WithLeases has the entities of each shard run only while this node holds a lease of the shard, in a store outside of
// the cluster, for those who trust the store more than the clocks of nodes. It is off without this option; all nodes
// that host should have it, with the same store and times. A shard whose lease is not to be had waits, with its
// messages; one whose lease is lost gives its entities up, with [StopReplaced], and is given a home anew. A lease is
// given back when its shard has stopped; after the death of a node its shards wait until the time of the lease is over.
// The store is asked for each shard once in [lease.Config.RenewInterval]: with 1,000 shards and the default some 330
// times a second.
//
// The name of a lease has the cluster, the kind and the number of the shard; its owner is the node.
func WithLeases(store lease.Store, cfg lease.Config) Option {
	return func(s *System) { s.leases.store, s.leases.cfg = store, cfg }
}

// LeasesConfig says which store gives the leases of shards, and how they are held.
type LeasesConfig struct {
	// Store is the kind of the store: "file" for the nodes of one machine, "etcd" or "kubernetes", or the name of another
	// one that the program adds by the option cluster.WithLeases. The settings of the store are the section "lease-NAME"
	// of the file. Empty: shards have no leases, but for those of [WithLeases].
	Store string `koanf:"store" known:"file|etcd|kubernetes"`

	// Config says how long a lease lasts, and when it is renewed.
	lease.Config `koanf:",squash"`
}

// shardLeases are the leases of the shards of a system.
type shardLeases struct {
	system *System
	store  lease.Store // Nil: there are no leases.
	cfg    lease.Config

	waiting, losing *notes.Lines // What befalls one shard befalls many: a store that is down, a node that has died.

	mu      sync.Mutex // Guards all fields below.
	open    map[leaseID]*shardLease
	keeping sync.WaitGroup // The goroutines of the leases.
	lost    uint64
}

// leaseID names what a lease is for.
type leaseID = control.AskLease

// shardLease is one lease. The fields but cancel are guarded by shardLeases.mu.
type shardLease struct {
	cancel context.CancelFunc
	held   bool
	token  uint64
	why    string // Why it is not held yet.
	reason string // The same as the log groups it; empty before the first answer.
	since  time.Time
}

// validate reports what is wrong with the settings. Named is the store that the configuration names.
func (l *shardLeases) validate(named string) error {
	if l.store == nil && named != "" {
		return field.Errorf("sharding.leases.store", "%q was not opened: cluster.Start does, or give a store by WithLeases", named)
	}
	if l.store == nil {
		return nil
	}
	if err := l.cfg.Validate(); err != nil {
		return fmt.Errorf("sharding: leases: %w", err)
	}
	return nil
}

// ask asks for a lease, and holds it until it is given back. It is called on the driver's goroutine.
func (l *shardLeases) ask(e control.AskLease) {
	id := e
	keeper, err := lease.NewKeeper(l.store, l.cfg, leaseName(l.system.node.ClusterName(), e.Kind, e.Shard), l.system.self.String())
	if err != nil { // The settings and the form of the names were checked.
		l.system.log.Error("a shard has no lease", "kind", e.Kind, "shard", uint32(e.Shard), "error", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	of := &shardLease{cancel: cancel, why: "its lease was not asked for yet", since: time.Now()}
	l.mu.Lock()
	if l.open == nil {
		l.open = make(map[leaseID]*shardLease)
	}
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
	leaseRetryMost  = 5 * time.Second
)

// keep asks until the lease is held, says so, and waits until it is lost or given back.
func (l *shardLeases) keep(ctx context.Context, keeper *lease.Keeper, id leaseID, of *shardLease) {
	defer func() {
		if err := keeper.Close(); err != nil {
			l.system.log.Warn("the lease of a shard was not given back, and ends by itself", "kind", id.Kind, "shard", uint32(id.Shard), "error", err)
		}
	}()
	for rest := leaseRetryLeast; ; rest = min(2*rest, leaseRetryMost) {
		attempt, done := context.WithTimeout(ctx, l.cfg.TTL)
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
func (l *shardLeases) hold(ctx context.Context, keeper *lease.Keeper, id leaseID, of *shardLease, held lease.Holding) {
	if r := l.system.router(id.Kind); r != nil {
		r.region.Under(id.Shard, func() bool {
			_, now := keeper.Check()
			return now
		})
	}
	l.mu.Lock()
	of.held, of.token, of.why = true, held.Token, ""
	l.mu.Unlock()
	l.system.log.Debug("a shard has its lease", "kind", id.Kind, "shard", uint32(id.Shard), "token", held.Token)
	_ = l.system.control.PostWait(ctx, control.LeaseHeld(id)) // Else the lease was given back, or the node has ended.
	select {
	case <-ctx.Done():
	case <-held.Lost():
		l.mu.Lock()
		of.held, of.why = false, "its lease was lost"
		l.lost++
		l.mu.Unlock()
		l.losing.Note(id.Kind, "", "", fmt.Sprintf("shard %d", id.Shard))
		_ = l.system.control.PostWait(ctx, control.LeaseLost(id))
	}
}

// wait notes why a lease is not held. What is new is logged.
func (l *shardLeases) wait(id leaseID, of *shardLease, err error) {
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

// give gives a lease back. It is called on the driver's goroutine, and does not wait.
func (l *shardLeases) give(e control.GiveLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.open[leaseID(e)]; of != nil {
		delete(l.open, leaseID(e))
		of.cancel()
	}
}

// waits says for what a shard waits before its entities start, and under which epoch it is to be hosted; empty: for
// nothing.
func (l *shardLeases) waits(kind string, shard protocol.ShardID) (string, protocol.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, of := range l.open {
		if id.Kind == kind && id.Shard == shard && !of.held {
			return fmt.Sprintf("waits for its lease since %s: %s", of.since.UTC().Format(time.RFC3339), of.why), id.Epoch
		}
	}
	return "", protocol.Epoch{}
}

// token returns the token of the lease under which a shard is hosted; false: there is none.
func (l *shardLeases) token(kind string, shard protocol.ShardID, epoch protocol.Epoch) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.open[leaseID{Kind: kind, Shard: shard, Epoch: epoch}]
	if of == nil || !of.held {
		return 0, false
	}
	return of.token, true
}

// count returns how many shards of a kind wait for their leases.
func (l *shardLeases) count(kind string) (waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, of := range l.open {
		if id.Kind == kind && !of.held {
			waiting++
		}
	}
	return waiting
}

// losses returns how many leases were lost.
func (l *shardLeases) losses() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// end gives all leases back once all entities have returned, or the time of a lease is over: what then still runs
// runs beside its successor.
func (l *shardLeases) end(entities *sync.WaitGroup) {
	if l.store == nil {
		return
	}
	returned := make(chan struct{})
	// The goroutine is owned by the system, which waits for the same entities before it has stopped.
	go func() {
		entities.Wait()
		close(returned)
	}()
	limit := time.NewTimer(l.cfg.TTL)
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

// leaseName returns the name of the lease of a shard, which has the form that every store knows. What has no place in
// it is left out; then a digest of the whole keeps the name apart from others.
func leaseName(cluster, kind string, shard protocol.ShardID) string {
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

// LeaseToken returns the token of the lease under which the shard of the entity is hosted, higher for each holder;
// false without [WithLeases], and when the lease is just lost. A storage that refuses lower tokens than it has seen
// cannot be written by an earlier holder.
func (c *Context) LeaseToken() (uint64, bool) {
	return c.program.system.leases.token(c.program.kind, c.job.Slot().Shard(), c.Epoch())
}
