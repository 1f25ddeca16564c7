// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// The clusters that are measured: startTrio makes one of this process and others, which add
// starts one by one; reports tells what they have used; held and check say whether every node
// holds what was added.

// dataCluster is a cluster with replicated data, of which this process has one node, and peers have the others.
type dataCluster struct {
	spec harness.Spec
	node *replica
	more *harness.Peers
	dir  string // The directories of durable keys are in it; empty without any.
}

// startDataCluster starts the oldest node, this one, and more. Whoever gets a cluster ends it.
func startDataCluster(ctx context.Context, s harness.Spec, k *harness.Link, more int) (t *dataCluster, err error) {
	t = &dataCluster{spec: s, more: k.Peers()}
	defer func() {
		if err != nil {
			t.end()
		}
	}()
	if s.Durable {
		if t.dir, err = os.MkdirTemp("", "bench-data-"); err != nil {
			return nil, err
		}
		t.spec.Data = t.dirOf(0)
	}
	if err := t.add(ctx); err != nil {
		return nil, err
	}
	if t.node, err = startReplica(ctx, []string{t.more.Address(0)}, t.spec.Data); err != nil {
		return nil, err
	}
	for range more {
		if err := t.add(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// dirOf returns the directory of a node.
func (t *dataCluster) dirOf(i int) string {
	if t.dir == "" {
		return ""
	}
	return filepath.Join(t.dir, strconv.Itoa(i))
}

// add starts one more node and waits until it counts as a replica.
func (t *dataCluster) add(ctx context.Context) error {
	s := t.spec.As(roleReplica)
	s.Data = t.dirOf(1 + t.more.Len())
	if t.more.Len() > 0 {
		s.Seeds = []string{t.more.Address(0)}
	}
	return t.more.Add(ctx, s)
}

// end ends all nodes and removes what they have written.
func (t *dataCluster) end() {
	if t.node != nil {
		closeMember(t.node.Node)
	}
	t.more.Stop()
	if t.dir != "" {
		_ = os.RemoveAll(t.dir) // What is left is in the directory for temporary files.
	}
}

// reports returns what each node tells of itself, the youngest last.
func (t *dataCluster) reports(ctx context.Context) ([]replicaReport, error) {
	own, err := t.node.report(ctx)
	if err != nil {
		return nil, err
	}
	others, err := harness.AskAll[replicaReport](ctx, t.more, requestLook)
	return append([]replicaReport{own}, others...), err
}

// total adds up what nodes have used, sent and seen; of keys it has what the node has that has fewest.
func total(all []replicaReport) (sum replicaReport) {
	for i, l := range all {
		sum.CPU += l.CPU
		sum.Bytes += l.Bytes
		sum.Heard = sum.Heard.plus(l.Heard)
		if i == 0 || l.Keys < sum.Keys {
			sum.Keys = l.Keys
		}
	}
	return sum
}

// total returns what all nodes have used, sent and seen.
func (t *dataCluster) total(ctx context.Context) (replicaReport, error) {
	all, err := t.reports(ctx)
	return total(all), err
}

// checkEvery is how often is looked whether all nodes have everything.
const checkEvery = 50 * time.Millisecond

// everywhere waits until a number is on every node what it is to be, and returns how much is
// missing and how much is too many on the node that is furthest off.
func everywhere(ctx context.Context, want uint64, own func(context.Context) (uint64, error), others *harness.Peers, request string) (missing, surplus uint64, err error) {
	_, err = harness.Poll(ctx, checkEvery, func(waited time.Duration) (bool, error) {
		have, err := own(ctx)
		if err != nil {
			return false, err
		}
		all, err := harness.AskAll[uint64](ctx, others, request)
		missing, surplus = 0, 0
		for _, have := range append(all, have) {
			missing, surplus = max(missing, want-min(want, have)), max(surplus, have-min(want, have))
		}
		return missing == 0 || waited > harness.DrainTimeout, err
	})
	return missing, surplus, err
}

// held waits until each node holds all keys, which costs less than to read them over and
// over. What is missing after a while is found by who reads them.
func (t *dataCluster) held(ctx context.Context) (time.Duration, error) {
	return harness.Poll(ctx, checkEvery, func(waited time.Duration) (bool, error) {
		all, err := t.total(ctx)
		return all.Keys >= t.spec.Entities || waited > harness.DrainTimeout, err
	})
}

// check compares what all nodes read with what was added.
func (t *dataCluster) check(ctx context.Context, added uint64, out *figure.Outcome) (err error) {
	own := func(ctx context.Context) (uint64, error) { return t.node.sum(ctx, t.spec) }
	out.Lost, out.Duplicated, err = everywhere(ctx, added, own, t.more, requestSum)
	return err
}
