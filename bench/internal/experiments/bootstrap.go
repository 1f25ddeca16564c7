// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/membership"
)

// requestUp asks a node to answer when all nodes are up everywhere, as it sees them.
const requestUp = "up"

// measureBootstrap has processes look each other up with default settings, says how long it
// takes from the start of the first until all are one cluster, and then kills one and says how
// long the node that remembers the cluster takes from its start until it is up again.
func measureBootstrap(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	addresses, err := harness.FreeAddresses(ctx, s.Nodes)
	if err != nil {
		return out, err
	}
	dir, err := os.MkdirTemp("", "bench-bootstrap-")
	if err != nil {
		return out, err
	}
	nodes := k.Peers()
	defer func() {
		for nodes.Len() > 0 {
			nodes.Take(0).Kill()
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	// up starts the node of an address, or all, and waits until each sees all of them up.
	up := func(starts ...string) (time.Duration, error) {
		began := time.Now()
		for _, address := range starts {
			own := s.As(roleBootstrapped) // It is told all addresses, its own first.
			own.Seeds = append([]string{address}, addresses...)
			own.Data = filepath.Join(dir, fmt.Sprint(slices.Index(addresses, address)))
			if err := nodes.Add(ctx, own); err != nil {
				return 0, err
			}
		}
		_, err := harness.AskAll[bool](ctx, nodes, requestUp)
		return time.Since(began), err
	}
	formed, err := up(addresses...)
	if err != nil {
		return out, err
	}
	last := nodes.Len() - 1
	nodes.Take(last).Kill()
	back, err := up(addresses[last])
	margin := membership.Default().Membership.Discovery.StableMargin
	return figure.Outcome{
		Values: map[string]float64{"up": formed.Seconds(), "after": (formed - margin).Seconds(), "back": back.Seconds()},
		Note:   fmt.Sprintf("%d processes, of which %v are the margin", s.Nodes, margin),
	}, err
}

// serveBootstrapped runs a node that looks contact points up.
func serveBootstrapped(ctx context.Context, s harness.Spec, k *harness.Link) error {
	cfg := memberConfig(s.Seeds[0], s.Seeds[1:]...)
	cfg.Node.DataDir, cfg.Membership.Discovery.Methods = s.Data, []string{"static"}
	started, err := membership.Start(ctx, cfg, membership.WithLogger(quiet()))
	if err != nil {
		return err
	}
	defer closeMember(started)
	return k.Host(started.Self().Address.String(), harness.Answers{requestUp: func() (any, error) {
		nodes := []*membership.Node{started}
		_, err := until(ctx, time.Now(), nodes, "all members are up", func() bool { return seesUp(nodes, s.Nodes) })
		return err == nil, err
	}})
}
