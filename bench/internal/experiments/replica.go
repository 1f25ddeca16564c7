// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
)

// One node with data: its start, its keys, what it tells of itself, and the peer that
// serves it to the process that measures.

// replica is a node with replicated data.
type replica struct {
	*membership.Node

	data    *ddata.Replicator
	monitor *monitor
	took    time.Duration // From its start to the moment at which the node counted as a replica,
	since   time.Duration // and from the one at which it was up.
}

// Data makes a replica a [ddata.Host].
func (r *replica) Data() *ddata.Replicator { return r.data }

// durablePrefix begins the names of durable keys.
const durablePrefix = "saved/"

// startReplica starts a node and waits until it counts as a replica. Without seeds it forms a
// cluster; with a directory it has durable keys.
func startReplica(ctx context.Context, seeds []string, dir string) (*replica, error) {
	address, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	m, c := memberConfig(address, seeds...), ddata.Default()
	opts := []ddata.Option{ddata.WithLogger(quiet())}
	if dir != "" {
		c.Dir, c.Durable = dir, []string{durablePrefix + "*"}
		opts = append(opts, ddata.WithStore(openStore))
	}
	w, began := newMonitor(), time.Now()
	n, err := membership.Start(ctx, m, membership.WithLogger(quiet()), membership.WithSettings(c.Settings()...), membership.WithMeterProvider(w.meters))
	if err != nil {
		return nil, err
	}
	r := &replica{Node: n, monitor: w}
	w.follow(ctx, n)
	if r.data, err = ddata.New(n, c, opts...); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	err = n.AwaitUp(ctx)
	up := time.Now()
	if err = errors.Join(err, r.data.AwaitReady(ctx)); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	r.took, r.since = time.Since(began), time.Since(up)
	return r, nil
}

// openStore opens the store of durable keys.
func openStore(ctx context.Context, dir, cluster string) (store.Store, error) {
	c := durable.Default()
	c.Dir, c.Cluster = dir, cluster
	s, err := durable.Open(ctx, c)
	if err != nil {
		return nil, err // A typed nil would be a store.
	}
	return s, nil
}

// counter returns the key of a counter.
func counter(prefix string, i int) ddata.Key[crdt.GCounter] {
	return ddata.NewKey[crdt.GCounter](prefix + strconv.Itoa(i))
}

// prefixOf returns how the names of the counters of an experiment begin.
func prefixOf(s harness.Spec) string {
	if s.Data != "" {
		return durablePrefix
	}
	return "counters/"
}

// add adds one to a counter.
func (r *replica) add(ctx context.Context, key ddata.Key[crdt.GCounter], c ddata.Consistency) error {
	_, err := ddata.Update(ctx, r, key, c, func(at crdt.Origin, v crdt.GCounter) (crdt.GCounter, error) { return v.Add(at, 1), nil })
	return err
}

// sum adds up the counters of an experiment as this node reads them alone.
func (r *replica) sum(ctx context.Context, s harness.Spec) (total uint64, err error) {
	for i := range s.Entities {
		v, err := ddata.Get(ctx, r, counter(prefixOf(s), i), ddata.Local())
		if err != nil && !errors.Is(err, ddata.ErrNotFound) {
			return 0, err
		}
		total += v.Value()
	}
	return total, nil
}

// elements is the set to which elements are added.
func elements() ddata.Key[crdt.ORSet[string]] { return ddata.NewKey[crdt.ORSet[string]]("elements") }

// size returns the size of the set as this node reads it alone.
func (r *replica) size(ctx context.Context) (uint64, error) {
	v, err := ddata.Get(ctx, r, elements(), ddata.Local())
	if errors.Is(err, ddata.ErrNotFound) {
		err = nil
	}
	return uint64(v.Len()), err
}

// replicaReport is what a node with a replica reports about itself.
type replicaReport struct {
	CPU   time.Duration `json:"cpu"`
	Bytes uint64        `json:"bytes"` // Bytes sent on the lanes of messages and of large values.
	Keys  int           `json:"keys"`
	Took  time.Duration `json:"took"`  // From its start to the moment at which the node counted as a replica,
	Since time.Duration `json:"since"` // and from the one at which it was up.
	Heard monitorReport `json:"heard"`
}

// report returns what the node tells of itself.
func (r *replica) report(ctx context.Context) (replicaReport, error) {
	heard, err := r.monitor.report(ctx)
	lanes := r.Stats().Transport.Lanes
	return replicaReport{
		CPU: harness.CPUTime(), Bytes: lanes[machine.LaneMessage].BytesSent + lanes[machine.LaneBulk].BytesSent,
		Keys: r.data.Stats().Keys, Took: r.took, Since: r.since, Heard: heard,
	}, err
}

// The requests that a replica answers.
const (
	requestLook = "look"
	requestSum  = "sum"
	requestSize = "size"
)

// serveReplica runs a node of a cluster. It says hello when the node counts as a replica.
func serveReplica(ctx context.Context, s harness.Spec, k *harness.Link) error {
	r, err := startReplica(ctx, s.Seeds, s.Data)
	if err != nil {
		return err
	}
	defer closeMember(r.Node)
	return k.Host(r.Self().Address.String(), harness.Answers{
		requestLook: func() (any, error) { return r.report(ctx) },
		requestSum:  func() (any, error) { return r.sum(ctx, s) },
		requestSize: func() (any, error) { return r.size(ctx) },
	})
}
