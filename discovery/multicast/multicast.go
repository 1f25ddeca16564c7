// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package multicast

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/discovery"
)

// A lookup asks and collects: find registers the lookup, so that Close can end it, ask
// sends the query three times, since datagrams get lost, and collect takes answers until
// the window is over. The answers of a node to the queries of others are in answer.go.

// Method is the name by which a configuration selects this method.
const Method = "multicast"

const (
	// maxQueries is how often a lookup sends its query.
	maxQueries = 3
	// maxPackets is how many datagrams one lookup reads: three answers of each contact point,
	// and room for strangers. A flood ends the lookup with an error.
	maxPackets = 4 * discovery.MaxTargets
)

var errNoEcho = errors.New("the answer of this node itself did not arrive: the network carries no multicast, " +
	"or Start was not called")

// Discovery finds and announces contact points by multicast. It is safe for concurrent
// use.
type Discovery struct {
	config  Config
	group   netip.AddrPort
	network network
	counters

	running sync.WaitGroup // Lookups, and the goroutine that answers; Close waits for them.

	ended chan struct{} // Closed by Close.

	mu      sync.Mutex // Guards the fields below.
	closed  bool       // No lookup begins any more.
	started bool
	cancels map[nonce]context.CancelFunc // The lookups under way, by their nonces.
	sockets []socket                     // The sockets of the goroutine that answers.
}

// counters are what [Discovery.Stats] reads.
type counters struct {
	queries, answers, refused, strange, failed atomic.Uint64
}

// Stats counts the datagrams since New.
type Stats struct {
	// Queries counts the queries for the service of this node, its own included.
	Queries uint64
	// Answers counts the answers that were sent.
	Answers uint64
	// Refused counts the queries that got no answer, because there were more than 200 in a
	// second.
	Refused uint64
	// Strange counts the datagrams of another protocol, service or lookup, and the
	// malformed ones.
	Strange uint64
	// Failed counts the reads and writes that ended with an error.
	Failed uint64
}

var _ discovery.Discovery = (*Discovery)(nil)

// New returns the method with these settings. It opens no socket. The error is that of
// [Config.Validate].
func New(config Config) (*Discovery, error) { return newOn(udpNetwork{}, config) }

func newOn(n network, config Config) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	group, err := config.group()
	if err != nil {
		return nil, err
	}
	config.Announce = slices.Clone(config.Announce)
	return &Discovery{config: config, group: group, network: n, ended: make(chan struct{}), cancels: map[nonce]context.CancelFunc{}}, nil
}

// Stats returns the counters.
func (d *Discovery) Stats() Stats {
	return Stats{
		Queries: d.queries.Load(), Answers: d.answers.Load(), Refused: d.refused.Load(),
		Strange: d.strange.Load(), Failed: d.failed.Load(),
	}
}

// Close ends lookups and the goroutine that answers, and waits for them.
func (d *Discovery) Close() error {
	err := d.end()
	d.running.Wait()
	if err != nil {
		return fmt.Errorf("multicast: %w", err)
	}
	return nil
}

func (d *Discovery) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	close(d.ended)
	for _, cancel := range d.cancels {
		cancel()
	}
	var faults []error
	for _, s := range d.sockets {
		faults = append(faults, s.Close())
	}
	return errors.Join(faults...)
}

// begin registers a lookup, which Close cancels and waits for.
func (d *Discovery) begin(n nonce, cancel context.CancelFunc) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return discovery.ErrClosed
	}
	d.cancels[n] = cancel
	d.running.Add(1)
	return nil
}

// done removes a lookup, and reports whether Close ended it.
func (d *Discovery) done(n nonce) (closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cancels, n)
	d.running.Done()
	return d.closed
}

// Lookup asks the group for the service of the query and returns the contact points that
// answer within the window, in the order of [discovery.Target.Compare]. Port and protocol of
// the query do not matter. If no node answers, the answer is empty; for the service that this
// node announces it is an error, since the node itself should have answered.
func (d *Discovery) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	if err := ctx.Err(); err != nil {
		return discovery.Targets{}, fmt.Errorf("multicast: %w", err)
	}
	list, err := d.find(ctx, q.Service)
	switch {
	case err != nil:
		return discovery.Targets{}, fmt.Errorf("multicast: %w", err)
	case len(list) == 0:
		return discovery.Targets{Reason: fmt.Sprintf("nobody answered to %v within %v", d.group, d.config.Window)}, nil
	}
	return discovery.Targets{List: list, Reason: fmt.Sprintf("answers to %v", d.group)}, nil
}

func (d *Discovery) find(ctx context.Context, service string) ([]discovery.Target, error) {
	if service == "" || len(service) > maxServiceBytes {
		return nil, fmt.Errorf("the name of the service has %d bytes, not from 1 to %d", len(service), maxServiceBytes)
	}
	var n nonce
	if _, err := rand.Read(n[:]); err != nil {
		return nil, err
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.begin(n, cancel); err != nil {
		return nil, err
	}
	list, err := d.ask(asking, n, service)
	closed := d.done(n)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case closed:
		return nil, discovery.ErrClosed
	case err != nil:
		return nil, err
	case len(list) == 0 && len(d.config.Announce) > 0 && service == d.config.Service:
		return nil, errNoEcho
	}
	return list, nil
}

// ask sends the query maxQueries times, and collects answers until the window is over.
func (d *Discovery) ask(ctx context.Context, n nonce, service string) ([]discovery.Target, error) {
	s, err := d.network.open(ctx, d.group, d.config.Interface)
	if err != nil {
		return nil, err
	}
	// An error of closing says nothing about the answers that were read.
	defer func() { _ = s.Close() }()
	begun := time.Now()
	// A read under way ends with the context.
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(begun) })
	defer stop()
	query, c := packQuery(n, service), lookupResult{nonce: n, found: map[discovery.Target]bool{}}
	for part := 1; part <= maxQueries; part++ {
		if _, err := s.WriteToUDPAddrPort(query, d.group); err != nil {
			return nil, err
		}
		until := d.config.Window * time.Duration(part) / (2 * maxQueries)
		if part == maxQueries {
			until = d.config.Window
		}
		if err := d.collect(ctx, s, &c, begun.Add(until)); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Keys(c.found), discovery.Target.Compare), nil
}

// lookupResult holds what one lookup has received.
type lookupResult struct {
	nonce   nonce
	packets int
	found   map[discovery.Target]bool
}

// collect takes answers until a moment.
func (d *Discovery) collect(ctx context.Context, s socket, c *lookupResult, until time.Time) error {
	if err := s.SetReadDeadline(until); err != nil {
		return err
	}
	packet := make([]byte, packetBytes+1)
	for ctx.Err() == nil {
		size, from, err := s.ReadFromUDPAddrPort(packet)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		if c.packets++; c.packets > maxPackets {
			return fmt.Errorf("more than %d datagrams arrived", maxPackets)
		}
		n, list, err := readAnswer(packet[:size], from.Addr())
		if err != nil || n != c.nonce {
			d.strange.Add(1)
			continue
		}
		for _, target := range list {
			c.found[target] = true
		}
		if len(c.found) > discovery.MaxTargets {
			return fmt.Errorf("more than %d contact points answered", discovery.MaxTargets)
		}
	}
	return nil
}
