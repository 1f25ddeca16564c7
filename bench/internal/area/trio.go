// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// The clusters that are measured: startTrio makes one of this process and others, which add
// starts one by one; looks sums what they have used; held and check say whether every node
// holds what was added.

// trio is a cluster of which this process has one node, and peers have the others.
type trio struct {
	spec rig.Spec
	link *rig.Link
	node *replica
	more []*rig.Process // The other nodes, the oldest first.
	at   string         // Address of the oldest node.
	dir  string         // The directories of durable keys are in it; empty without any.
}

// startTrio starts the oldest node, this one, and more. Whoever gets a cluster ends it.
func startTrio(ctx context.Context, s rig.Spec, k *rig.Link, more int) (t *trio, err error) {
	t = &trio{spec: s, link: k}
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
	if t.node, err = startReplica(ctx, []string{t.at}, t.spec.Data); err != nil {
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
func (t *trio) dirOf(i int) string {
	if t.dir == "" {
		return ""
	}
	return filepath.Join(t.dir, strconv.Itoa(i))
}

// add starts one more node and waits until it counts as a replica.
func (t *trio) add(ctx context.Context) error {
	s := t.spec.As(roleReplica)
	s.Data = t.dirOf(1 + len(t.more))
	if t.at != "" {
		s.Seeds = []string{t.at}
	}
	p, address, err := t.link.Peer(ctx, s)
	if err != nil {
		return err
	}
	if t.more = append(t.more, p); t.at == "" {
		t.at = address
	}
	return nil
}

// end ends all nodes and removes what they have written.
func (t *trio) end() {
	if t.node != nil {
		_ = t.node.Close() // It returns nil.
	}
	for _, p := range t.more {
		p.Stop()
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir) // What is left is in the directory for temporary files.
	}
}

// looks returns what each node tells of itself, this one first.
func (t *trio) looks(ctx context.Context) ([]look, error) {
	own, err := t.node.look(ctx)
	all := []look{own}
	for _, p := range t.more {
		var l look
		err = errors.Join(err, p.Call(ctx, requestLook, &l))
		all = append(all, l)
	}
	return all, err
}

// cpuOf adds up the processor time of nodes.
func cpuOf(all []look) (sum time.Duration) {
	for _, l := range all {
		sum += l.CPU
	}
	return sum
}

// bytesOf adds up what nodes have sent.
func bytesOf(all []look) (sum uint64) {
	for _, l := range all {
		sum += l.Bytes
	}
	return sum
}

// everywhere waits until a number is on every node what it is to be, and returns how much is
// missing and how much is too many on the node that is furthest off.
func everywhere(ctx context.Context, want uint64, own func(context.Context) (uint64, error), others []*rig.Process, request string) (missing, surplus uint64, err error) {
	for deadline := time.Now().Add(rig.DrainLimit); ; {
		have, err := own(ctx)
		if err != nil {
			return 0, 0, err
		}
		missing, surplus = want-min(want, have), have-min(want, have)
		for _, p := range others {
			if err := p.Call(ctx, request, &have); err != nil {
				return 0, 0, fmt.Errorf("bench: %s: %w", request, err)
			}
			missing, surplus = max(missing, want-min(want, have)), max(surplus, have-min(want, have))
		}
		if missing == 0 || time.Now().After(deadline) {
			return missing, surplus, nil
		}
		if err := rig.Pause(ctx, checkEvery); err != nil {
			return 0, 0, err
		}
	}
}

// held waits until each node holds all keys, which costs less than to read them over and
// over. What is missing after a while is found by who reads them.
func (t *trio) held(ctx context.Context) error {
	for deadline := time.Now().Add(rig.DrainLimit); ; {
		all, err := t.looks(ctx)
		if err != nil {
			return err
		}
		lacks := func(l look) bool { return l.Keys < t.spec.Entities }
		if !slices.ContainsFunc(all, lacks) || time.Now().After(deadline) {
			return nil
		}
		if err := rig.Pause(ctx, checkEvery); err != nil {
			return err
		}
	}
}

// checkEvery is how often is looked whether all nodes have everything.
const checkEvery = 50 * time.Millisecond

// check compares what all nodes read with what was added.
func (t *trio) check(ctx context.Context, added uint64, out *figure.Outcome) (err error) {
	own := func(ctx context.Context) (uint64, error) { return t.node.sum(ctx, t.spec) }
	out.Lost, out.Duplicated, err = everywhere(ctx, added, own, t.more, requestSum)
	return err
}
