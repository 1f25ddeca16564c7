// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/plugins"
)

// The processor time of seconds of heartbeats, one from each of many nodes, that follow each other
// at once ([parts.measure]): what a node does itself ([registry]), and what the question to a
// judge costs ([session]).

// parts are what of a second of heartbeats is measured.
type parts struct {
	node   bool // What a node does with each answer.
	judge  bool // The question to a judge.
	plugin bool // The judge is a plugin, and both processes count.
}

// measure measures the processor time of a second of heartbeats.
func (of parts) measure(ctx context.Context, s harness.Spec, k *harness.Link) (figure.Outcome, error) {
	seconds, spent, err := of.heard(ctx, s, k, s.Time)
	if err != nil {
		return figure.Outcome{}, err
	}
	if of.plugin { // What a launch costs is not part of it.
		_, launch, err := of.heard(ctx, s, k, 0)
		if err != nil {
			return figure.Outcome{}, err
		}
		spent -= launch
		seconds--
	}
	per := harness.Microseconds(spent) / float64(max(seconds, 1))
	return figure.Outcome{Values: map[string]float64{"cpu": per}, Note: fmt.Sprintf("%d seconds of %d heartbeats", seconds, s.Nodes)}, nil
}

// heard has seconds of heartbeats pass for a time, at least one, and returns how many and the
// processor time.
func (of parts) heard(ctx context.Context, s harness.Spec, k *harness.Link, limit time.Duration) (seconds int, spent time.Duration, err error) {
	before := harness.CPUTime() + harness.ChildrenCPUTime()
	second, closed, err := of.clockwork(ctx, s, k)
	if err != nil {
		return 0, 0, err
	}
	took, err := harness.Repeat(limit, second)
	err = errors.Join(err, closed())
	return len(took), harness.CPUTime() + harness.ChildrenCPUTime() - before, err
}

// clockwork returns what has a second of heartbeats pass, and what ends it.
func (of parts) clockwork(ctx context.Context, s harness.Spec, k *harness.Link) (second, closed func() error, err error) {
	factory, err := fd.NewFactory(fd.Default())
	if err != nil {
		return nil, nil, err
	}
	judge, closed := fd.Judge(fd.NewDetectorJudge(factory)), func() error { return nil }
	if of.plugin {
		p, _, err := openPlugin(ctx, k.Launcher, plugins.FailureDetector)
		if err != nil {
			return nil, nil, err
		}
		closed = func() (err error) { shut(p, &err); return err }
		if judge, err = p.FailureDetector(); err != nil {
			return nil, nil, errors.Join(err, closed())
		}
	}
	session := newSession(judge, s.Nodes)
	r, err := newRegistry(factory, s.Nodes, of.judge)
	if err != nil {
		return nil, nil, errors.Join(err, closed())
	}
	return func() error {
		if of.node {
			r.second()
		}
		if of.judge {
			return session.next(ctx)
		}
		return nil
	}, closed, nil
}

// registry is what a node does with answers: it tells the detector of each, and then finds out
// when the node that has answered is to be suspected, for which it arms a timer. Where a judge
// decides, the detectors learn all the same.
type registry struct {
	of    *fd.Registry[gossip.NodeID]
	nodes []gossip.NodeID
	now   time.Time
}

func newRegistry(factory fd.Factory, nodes int, judged bool) (*registry, error) {
	r := &registry{now: time.Unix(0, 0)}
	var err error
	if r.of, err = fd.NewRegistry(fd.Default(), factory, gossip.NodeID.Compare); err != nil {
		return nil, err
	}
	r.of.Judged(judged, r.now)
	for i := range nodes {
		r.nodes = append(r.nodes, gossip.NodeID{
			Address: gossip.Address{Host: fmt.Sprintf("10.0.%d.%d", i/256, i%256), Port: harness.FirstPort}, UID: gossip.UID(i + 1),
		})
		r.of.Expect(r.nodes[i], r.now)
	}
	return r, nil
}

// second has each node answer once.
func (r *registry) second() {
	r.now = r.now.Add(time.Second)
	for _, node := range r.nodes {
		r.of.Heartbeat(node, r.now)
		r.of.Limit(node)
	}
}

// session is what a judge is told: of nodes that answer once a second.
type session struct {
	judge fd.Judge
	batch fd.Batch
}

func newSession(j fd.Judge, nodes int) *session {
	s := &session{judge: j}
	for i := range nodes {
		s.batch.Subjects = append(s.batch.Subjects, fd.Subject{
			ID: fmt.Sprintf("10.0.%d.%d:7946#%016x", i/256, i%256, i+1), Available: true, Ages: []time.Duration{time.Duration(i%900) * time.Millisecond},
		})
	}
	return s
}

// next tells of the next second. A judge that does not know the session is told of a new one, as a
// node does after a swap.
func (s *session) next(ctx context.Context) error {
	s.batch.Number++
	s.batch.Elapsed = time.Second
	if s.batch.Number == 1 {
		s.batch.Elapsed = 0
	}
	v, err := s.judge.Judge(ctx, s.batch)
	if errors.Is(err, fd.ErrOutOfStep) {
		s.batch.Number, s.batch.Elapsed = 1, 0
		v, err = s.judge.Judge(ctx, s.batch)
	}
	if err == nil {
		err = v.Check(s.batch)
	}
	if err == nil && len(v.Changes) > 0 {
		err = fmt.Errorf("bench: a node that answers is suspected: %s", v.Changes[0].Reason)
	}
	return err
}
