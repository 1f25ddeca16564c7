// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// hostRole is the role of nodes that host, where not all do.
const hostRole = "host"

// mailboxSize is larger than what a sender may have on its way to one shard,
// so that a sender that floods one entity is slowed by the window of the shard
// and never has a message refused at its end. It is the one setting that
// differs from the defaults, and only where messages are told.
const mailboxSize = 1 << 14

// startNode starts a node and waits until it is up. Without seeds it forms a
// cluster.
func startNode(ctx context.Context, seeds []string, change func(*cluster.Config), opts ...cluster.Option) (*cluster.Node, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bench", address, seeds
	if len(seeds) == 0 {
		cfg.Membership.SeedNodes = []string{address}
	}
	if change != nil {
		change(&cfg)
	}
	node, err := cluster.Start(ctx, append(opts, cluster.WithConfig(cfg), cluster.WithLogger(quiet()))...)
	if err != nil {
		return nil, err
	}
	if err := node.AwaitUp(ctx); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

// drop ends a node at once: its cluster ends with the run.
func drop(node *cluster.Node) { _ = node.Membership().Close() } // It returns nil.

// quiet logs trouble alone.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// freeAddress finds an address where nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := listen(ctx)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// forTell sets what nodes need that are flooded.
func forTell(roles ...string) func(*cluster.Config) {
	return func(c *cluster.Config) { c.Sharding.MailboxSize, c.Node.Roles = mailboxSize, roles }
}

// measureLocal is told messages to entities of the same node.
func measureLocal(ctx context.Context, s spec, _ *link) (outcome, error) {
	node, err := startNode(ctx, nil, forTell())
	if err != nil {
		return outcome{}, err
	}
	defer drop(node)
	var found tally
	region, err := sharding.Start(node, probes(&found, s.Senders+1, s.Size, ""))
	if err != nil {
		return outcome{}, err
	}
	return tellAll(ctx, s, region, newStopwatch(&found, noCPU).mark, node)
}

// measureRemote is told messages to the entities of another process.
func measureRemote(ctx context.Context, s spec, k *link) (outcome, error) {
	p, address, err := k.peer(ctx, s.as(roleHost))
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	region, node, err := proxy(ctx, s, address)
	if err != nil {
		return outcome{}, err
	}
	defer drop(node)
	return tellAll(ctx, s, region, remoteMark(p), node)
}

// measureAsk is asking the entities of another process.
func measureAsk(ctx context.Context, s spec, k *link) (outcome, error) {
	p, address, err := k.peer(ctx, s.as(roleHost))
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	region, node, err := proxy(ctx, s, address)
	if err != nil {
		return outcome{}, err
	}
	defer drop(node)
	if err := prime(ctx, s, region); err != nil {
		return outcome{}, err
	}
	payload := make([]byte, s.Size-headerBytes)
	return asking{
		askers: s.Senders, time: s.Time, mark: without(uint64(s.Entities), remoteMark(p)),
		ask: func(ctx context.Context, asker uint32, seq uint64) error {
			m := &message{sender: asker, seq: seq, ask: true, payload: payload}
			answer, err := sharding.Ask[*message](ctx, region, entityName(int(asker)%s.Entities), m)
			if err != nil {
				return err
			}
			if answer.sender != asker || answer.seq != seq || len(answer.payload) != len(payload) {
				return fmt.Errorf("the answer is to question %d of %d", answer.seq, answer.sender)
			}
			return nil
		},
	}.run(ctx)
}

// proxy joins the cluster of a host, and hosts nothing itself.
func proxy(ctx context.Context, s spec, host string) (*sharding.Region[*message], *cluster.Node, error) {
	node, err := observed(ctx, s, []string{host}, forTell())
	if err != nil {
		return nil, nil, err
	}
	region, err := sharding.Start(node, probes(new(tally), s.Senders+1, s.Size, hostRole))
	if err != nil {
		return nil, nil, errors.Join(err, node.Close())
	}
	return region, node, nil
}

// serveHost hosts the entities of [proxy].
func serveHost(ctx context.Context, s spec, k *link) error {
	node, err := observed(ctx, s, nil, forTell(hostRole))
	if err != nil {
		return err
	}
	var found tally
	if _, err := sharding.Start(node, probes(&found, s.Senders+1, s.Size, hostRole)); err != nil {
		return errors.Join(err, node.Close())
	}
	if err := k.send(hello{node.Self().Address.String()}); err != nil {
		return errors.Join(err, node.Close())
	}
	return errors.Join(newStopwatch(&found, cpuTime).serve(k), node.Membership().Close())
}

// entityName is the id of the i-th entity.
func entityName(i int) string { return "entity-" + strconv.Itoa(i) }

// prime asks every entity once, so that all of them exist and are known.
func prime(ctx context.Context, s spec, region *sharding.Region[*message]) error {
	payload := make([]byte, s.Size-headerBytes)
	for i := range s.Entities {
		m := &message{sender: uint32(s.Senders), seq: 1, ask: true, payload: payload}
		if _, err := sharding.Ask[*message](ctx, region, entityName(i), m); err != nil {
			return fmt.Errorf("bench: the first question to entity %d: %w", i, err)
		}
	}
	return nil
}

// without takes the messages of prime out of the marks.
func without(primed uint64, at func(context.Context) (mark, error)) func(context.Context) (mark, error) {
	return func(ctx context.Context) (mark, error) {
		m, err := at(ctx)
		m.Totals.Received -= min(primed, m.Totals.Received)
		return m, err
	}
}

// tellAll floods entities. With as many entities as senders each sender has one
// of its own; with more, each sender tells all of them in turn.
func tellAll(ctx context.Context, s spec, region *sharding.Region[*message], at func(context.Context) (mark, error), node *cluster.Node) (outcome, error) {
	if err := prime(ctx, s, region); err != nil {
		return outcome{}, err
	}
	names := make([]string, s.Entities)
	for i := range names {
		names[i] = entityName(i)
	}
	out, err := flood{
		senders: s.Senders, time: s.Time, mark: without(uint64(s.Entities), at),
		send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error) {
			own := names
			if len(names) == s.Senders {
				own = names[sender : sender+1]
			}
			return tellOn(ctx, region, own, sender, s.Size, stop)
		},
	}.run(ctx)
	if failed := node.Sharding().Stats().Failed; err == nil && failed > 0 {
		out.Note = fmt.Sprintf("%d tells failed after they were accepted", failed)
	}
	return out, err
}

// tellOn tells entities in turn until it is told to stop, and waits with them for room
// in their mailboxes. It returns how many messages were accepted.
func tellOn(ctx context.Context, region *sharding.Region[*message], names []string, sender uint32, size int, stop *atomic.Bool) (n uint64, err error) {
	payload := make([]byte, size-headerBytes)
	sequences := make([]uint64, len(names))
	for i := 0; !stop.Load(); i++ {
		at := i % len(names)
		m := &message{sender: sender, seq: sequences[at] + 1, payload: payload}
		if err := region.Tell(ctx, names[at], m); err != nil {
			return n, err
		}
		sequences[at]++
		n++
	}
	return n, nil
}
