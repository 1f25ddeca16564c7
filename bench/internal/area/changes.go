// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/membership"
)

// The changes of a cluster of which callers notice as little as possible. All are measured the same
// way ([changed]): an undisturbed cluster, a change, what the watches have noticed, and what the
// nodes say of their entities.

const (
	joinSettle = 25 * time.Second // For how long moves are waited for after a join.
	joinStill  = 3 * time.Second  // Without a move: it is over.
)

// A change is done to a cluster, and notes what it alone has measured.
type change func(ctx context.Context, f *fleet, before summary, out *figure.Outcome) error

// changed measures a change of a cluster of two nodes and so many more.
func changed(more int, do change) rig.Measurer {
	return func(ctx context.Context, s rig.Spec, k *rig.Link) (out figure.Outcome, err error) {
		out.Values = map[string]float64{}
		f, err := startFleet(ctx, s, k, more)
		if err != nil {
			return out, err
		}
		defer f.end()
		before, err := f.baseline(ctx)
		if err != nil {
			return out, err
		}
		if err := do(ctx, f, before, &out); err != nil {
			return out, err
		}
		after := f.watches.summary(false)
		survives := func(host string) bool { return host != f.victim } // All do where there is no victim.
		failed, survivors := after.failures(before.hosts, func(string) bool { return true }), after.failures(before.hosts, survives)
		out.Values["failed"], out.Values["survivors"], out.Values["victim"] = float64(failed), float64(survivors), float64(failed-survivors)
		out.Values["gap-idle"], out.Values["gap"] = rig.Milliseconds(before.longest), rig.Milliseconds(after.longestOf(before.hosts, survives))
		out.Values["p99-idle"], out.Values["p99"] = before.p99, f.watches.percentile(0.99)
		if after.cause != nil {
			remark(&out, "first failed ask: "+after.cause.Error())
		}
		return out, f.census(ctx, &out)
	}
}

// remark adds to the note of an outcome.
func remark(out *figure.Outcome, text string) {
	out.Note = strings.TrimPrefix(out.Note+"; "+text, "; ")
}

// joins has one more node join. What is measured of it is which part of the entities moves there, and
// how long after its start the last one does; zero when none did.
func joins(ctx context.Context, f *fleet, before summary, out *figure.Outcome) error {
	if err := f.add(ctx); err != nil {
		return err
	}
	began := time.Now()
	last, moved := began, 0
	_, err := rig.Poll(ctx, settleEvery, func(waited time.Duration) (bool, error) {
		now := time.Now()
		if n := f.watches.summary(false).movedFrom(before.hosts); n != moved {
			moved, last = n, now
		}
		return moved > 0 && now.Sub(last) > joinStill || waited > joinSettle, nil
	})
	if moved == 0 {
		remark(out, "nothing moved to the new node")
	}
	out.Values["moved"], out.Values["settled"] = 100*float64(moved)/float64(f.spec.Entities), last.Sub(began).Seconds()
	return err
}

// rebalances has one more node join a cluster with very many shards. What counts as a move is that of
// a shard, whether an entity lives in it or not.
func rebalances(ctx context.Context, f *fleet, _ summary, out *figure.Outcome) error {
	if err := f.add(ctx); err != nil {
		return err
	}
	settled, moved, err := f.settleShards(ctx)
	out.Values["moved"], out.Values["settled"] = float64(moved), settled.Seconds()
	return err
}

// rolls restarts all nodes but this one, which asks and hosts nothing: each leaves in order, and
// one more joins, before the next one leaves. The oldest, which coordinates, is the first.
func rolls(ctx context.Context, f *fleet, _ summary, out *figure.Outcome) error {
	began := time.Now()
	for range f.spec.Nodes {
		if err := f.restart(ctx); err != nil {
			return err
		}
	}
	out.Values["took"] = time.Since(began).Seconds()
	// The nodes are asked for their entities one after the other: none may move meanwhile.
	if _, _, err := f.settleShards(ctx); err != nil {
		return err
	}
	_, err := f.watches.allSince(ctx, time.Now(), answerLimit)
	return err
}

// kills kills one of the other nodes: the youngest, or the oldest.
func kills(ctx context.Context, f *fleet, before summary, out *figure.Outcome) error {
	victim := f.others.Len() - 1
	if f.spec.Oldest {
		victim = 0
	}
	if f.victim = f.others.Address(victim); !slices.Contains(before.hosts, f.victim) {
		return errors.New("bench: the node to kill hosts nothing")
	}
	killed := time.Now()
	f.others.Take(victim).Kill()
	took, err := f.watches.allSince(ctx, killed, answerLimit)
	out.Values["answer"] = took.Seconds()
	return err
}

// settleEvery is how often is looked whether something still moves.
const settleEvery = 20 * time.Millisecond

// settleShards waits until the youngest node has its part of the shards and gets no more of them, or has
// got none for long. It returns how long after its start it got the last one, and how many it has.
func (f *fleet) settleShards(ctx context.Context) (time.Duration, int, error) {
	part := f.node.Sharding().Kinds()[0].Shards / f.spec.Nodes
	began := time.Now()
	last, hosted := began, 0
	_, err := rig.Poll(ctx, settleEvery, func(time.Duration) (bool, error) {
		n := 0
		err := f.others.Youngest().Call(ctx, requestHosted, &n)
		now := time.Now()
		if n != hosted {
			hosted, last = n, now
		}
		still := now.Sub(last)
		return hosted >= part && still > joinStill || still > joinSettle, err
	})
	return last.Sub(began), hosted, err
}

// restart has the oldest of the other nodes leave, and starts one more in its place.
func (f *fleet) restart(ctx context.Context) error {
	oldest := f.others.Take(0)
	var r residents
	err := oldest.Call(ctx, requestLeave, &r)
	oldest.Stop()
	f.left = append(f.left, r)
	if err := errors.Join(err, f.add(ctx)); err != nil {
		return err
	}
	_, err = until(ctx, time.Now(), []*membership.Node{f.node.Membership()}, "the new node is a member, and the old one is none", func() bool {
		return len(f.node.Membership().View().State.Members()) == f.spec.Nodes+1
	})
	return err
}
