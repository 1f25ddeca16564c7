// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package consul

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/follow"

	"github.com/quorate/quorate/config/field"
)

// Method is the name by which a configuration selects this method, by convention.
const Method = "consul"

// gap is the least time between two requests: an agent may answer a blocking query at
// once again and again, while many services are registered anywhere in its datacenter.
const gap = 200 * time.Millisecond

// Discovery finds the nodes that are registered in Consul. Use [New]; Close it in the end.
// It is safe for concurrent use.
type Discovery struct {
	client *client
	gap    time.Duration
	set    *follow.Set[string, []entry]
}

var _ discovery.Discovery = (*Discovery)(nil)

// New returns the method for a configuration, which it validates. It connects to
// nothing before the first lookup.
func New(config Config) (*Discovery, error) {
	return newDiscovery(config, follow.DefaultLimits(), gap)
}

func newDiscovery(config Config, limits follow.Limits, gap time.Duration) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("consul: %w", err)
	}
	d := &Discovery{client: newClient(config), gap: gap}
	d.set = follow.New(limits, d.follow)
	return d, nil
}

// Lookup returns the address of each registration of a service. The service takes the
// place of "%s" in the configuration. If the port of the query is a number, that is the port
// of all contact points; if it is a name, the number in the metadata key "port-" with that
// name. In all other cases the port of the registration is taken. The protocol has no meaning.
//
// The first lookup of a service asks the agent and waits for the answer. Later lookups are
// answered from what the agent has told since. The error wraps a [StatusError] if the
// agent refuses, and [ErrMalformed] if no agent would give such an answer.
func (d *Discovery) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	name := strings.ReplaceAll(d.client.config.Service, placeholder, q.Service)
	if !isName(name) {
		return discovery.Targets{}, fmt.Errorf("consul: %q is no name of a service", field.Clip(name))
	}
	entries, err := d.set.Latest(ctx, name)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("consul: %w", err)
	}
	list, bad, err := targets(entries, q.Port)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("consul: %w", err)
	}
	reason := fmt.Sprintf("consul: %d registrations of %q", len(entries), name)
	if d.client.config.Passing {
		reason += " whose checks pass"
	}
	if bad > 0 {
		reason += fmt.Sprintf(", %d of them with an address that is none", bad)
	}
	return discovery.Targets{List: list, Reason: reason}, nil
}

// follow is a [follow.Source]: it asks, tells the answer, and asks for changes since the index
// of the answer. An index that goes back is that of a server that was restored, and the next
// question is without an index.
func (d *Discovery) follow(ctx context.Context, service string, tell func([]entry)) error {
	var index uint64
	for {
		began := time.Now()
		entries, next, err := d.client.health(ctx, service, index)
		if err != nil {
			return d.client.api.Overdue(ctx, err)
		}
		tell(entries)
		if next < index {
			next = 0
		}
		index = next
		pause := time.NewTimer(d.gap - time.Since(began))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// Close ends all questions and waits for their goroutines. It may be called more than
// once, and returns nil.
func (d *Discovery) Close() error {
	return errors.Join(d.set.Close(), d.client.api.Close())
}
