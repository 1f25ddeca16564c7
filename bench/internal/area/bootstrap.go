// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/membership"
)

// requestUp asks a node to answer when all nodes are up everywhere, as it sees them.
const requestUp = "up"

// measureBootstrap has processes look each other up with default settings, says how long it
// takes from the start of the first until all are one cluster, and then kills one and says how
// long the node that remembers the cluster takes from its start until it is up again.
func measureBootstrap(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	dir, err := os.MkdirTemp("", "bench-bootstrap-")
	if err != nil {
		return figure.Outcome{}, err
	}
	all, began := &looking{dir: dir, link: k, spec: s}, time.Now()
	formed, back, err := all.measure(ctx, began)
	all.end()
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return figure.Outcome{}, err
	}
	margin := membership.Default().Membership.Discovery.StableMargin
	return figure.Outcome{
		Values: map[string]float64{"up": formed.Seconds(), "after": (formed - margin).Seconds(), "back": back.Seconds()},
		Note:   fmt.Sprintf("%d processes, of which %v are the margin", s.Nodes, margin),
	}, nil
}

// looking is processes that look each other up.
type looking struct {
	dir       string
	link      *rig.Link
	spec      rig.Spec
	addresses []string
	nodes     []*rig.Process
}

func (l *looking) measure(ctx context.Context, began time.Time) (formed, back time.Duration, err error) {
	if l.addresses, err = rig.FreeAddresses(ctx, l.spec.Nodes); err != nil {
		return 0, 0, err
	}
	for i := range l.addresses {
		if err := l.start(ctx, i); err != nil {
			return 0, 0, err
		}
	}
	if err := l.await(ctx); err != nil {
		return 0, 0, err
	}
	formed = time.Since(began)
	last := len(l.nodes) - 1
	l.nodes[last].Kill()
	l.nodes = l.nodes[:last]
	began = time.Now()
	if err := l.start(ctx, last); err != nil {
		return 0, 0, err
	}
	err = l.await(ctx)
	return formed, time.Since(began), err
}

// start starts the process of one address. It is told all of them, its own first.
func (l *looking) start(ctx context.Context, i int) error {
	s := l.spec.As(roleBootstrapped)
	s.Seeds = append([]string{l.addresses[i]}, l.addresses...)
	s.Data = filepath.Join(l.dir, fmt.Sprint(i))
	p, _, err := l.link.Peer(ctx, s)
	if err == nil {
		l.nodes = append(l.nodes, p)
	}
	return err
}

// await waits until all nodes see all of them up.
func (l *looking) await(ctx context.Context) error {
	for _, p := range l.nodes {
		var up bool
		if err := p.Call(ctx, requestUp, &up); err != nil {
			return err
		}
	}
	return nil
}

func (l *looking) end() {
	for _, p := range l.nodes {
		p.Kill()
	}
}

// serveBootstrapped runs a node that looks contact points up.
func serveBootstrapped(ctx context.Context, s rig.Spec, k *rig.Link) error {
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Node.DataDir = "bench", s.Seeds[0], s.Data
	cfg.Membership.SeedNodes, cfg.Membership.Discovery.Methods = s.Seeds[1:], []string{"static"}
	started, err := membership.Start(ctx, cfg, membership.WithLogger(quiet()))
	if err != nil {
		return err
	}
	nodes := []*membership.Node{started}
	defer closeNodes(nodes)
	return k.Host(started.Self().Address.String(), rig.Answers{requestUp: func() (any, error) {
		_, err := until(ctx, time.Now(), nodes, "all members are up", func() bool { return seesUp(nodes, s.Nodes) })
		return err == nil, err
	}})
}
