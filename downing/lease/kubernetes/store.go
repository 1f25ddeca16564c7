// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

// From top to bottom: Take, which reads the lease, judges it and writes it, and begins again if
// somebody else was faster; what is known of a lease that another holds; Give.

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/quorate/quorate/discovery/kubernetes/kubeapi"
	"github.com/quorate/quorate/downing/lease"

	"github.com/quorate/quorate/config/field"
)

const (
	// attemptsMax is how often one call begins anew because the lease has changed meanwhile.
	attemptsMax = 4
	// watchedMax bounds how many leases a store remembers to have watched.
	watchedMax = 64
)

// Kind is the name of this store in a configuration.
const Kind = "kubernetes"

// Store keeps leases in Kubernetes. Use [New]; Close it in the end. It is safe for concurrent
// use.
type Store struct {
	config Config
	client *client

	mu      sync.Mutex // guards watched
	watched map[string]observation
}

// observation is what this process has seen of a lease that another holds.
type observation struct {
	version string
	since   time.Time // when this version was seen first
	last    time.Time // when this version was seen last
	alive   bool      // the lease has changed while it was watched
}

var _ lease.Store = (*Store)(nil)

// New returns the store of a configuration, which it validates. In a pod it reads the
// namespace of the service account; it connects to nothing. The error wraps [ErrNotInCluster]
// if no server is configured and none is named by a pod.
func New(config Config) (*Store, error) { return newStore(config, kubeapi.ServiceAccount) }

func newStore(config Config, account string) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	c, err := newClient(config, account)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return &Store{config: config, client: c, watched: make(map[string]observation)}, nil
}

// Take implements [lease.Store]. The error wraps [ErrUndecided] while it has not been seen
// whether the holder of the lease lives, a [StatusError] if the server refuses, and
// [ErrMalformed] if what the server holds is no lease of this store.
func (s *Store) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	if err := lease.CheckName("name", c.Name); err != nil {
		return lease.Answer{}, fmt.Errorf("kubernetes: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	for range attemptsMax {
		answer, again, err := s.try(limited, c)
		if err != nil {
			return lease.Answer{}, fmt.Errorf("kubernetes: %w", s.client.api.Overdue(ctx, err))
		}
		if !again {
			return answer, nil
		}
	}
	return lease.Answer{}, fmt.Errorf("kubernetes: %w", errContended)
}

// try reads the lease once and writes it if it may be taken. It reports whether somebody else
// has changed the lease meanwhile.
func (s *Store) try(ctx context.Context, c lease.Claim) (answer lease.Answer, again bool, err error) {
	now, err := s.client.get(ctx, c.Name)
	fresh := isStatus(err, http.StatusNotFound)
	if fresh {
		now, err = newObject(c.Name, s.client.namespace)
	}
	if err != nil {
		return answer, false, err
	}
	token := now.transitions
	if now.holder != c.Owner {
		free, err := s.judge(now, c)
		if err != nil {
			return answer, false, err
		}
		if !free {
			return lease.Answer{Owner: now.holder}, false, nil
		}
		if token == math.MaxInt32 {
			return answer, false, fmt.Errorf("%w: leaseTransitions are %d, and cannot grow", ErrMalformed, token)
		}
		token++
	}
	next, err := now.held(c.Owner, c.TTL, token, time.Now())
	if err != nil {
		return answer, false, err
	}
	written, again, err := s.write(ctx, c.Name, next, fresh)
	if again || err != nil {
		return answer, again, err
	}
	if written.holder != c.Owner || written.transitions != token || token == 0 {
		return answer, false, fmt.Errorf("%w: after a change the lease belongs to %q with %d transitions", ErrMalformed, field.Clip(written.holder), written.transitions)
	}
	s.forget(c.Name)
	return lease.Answer{Granted: true, Owner: c.Owner, Token: uint64(token), TTL: c.TTL}, false, nil // It is above 0.
}

// write returns what the server has made of a change, or that the lease has changed before.
func (s *Store) write(ctx context.Context, name string, o *object, fresh bool) (written *object, again bool, err error) {
	send := s.client.update
	if fresh {
		send = s.client.create
	}
	written, err = send(ctx, name, o)
	if isStatus(err, http.StatusConflict) || !fresh && isStatus(err, http.StatusNotFound) {
		return nil, true, nil
	}
	return written, false, err
}

// judge reports whether a lease is free that does not belong to the claimant: nobody has it, or
// it has not changed for longer than it lasts. Times in it were written by other clocks, and
// are not looked at.
func (s *Store) judge(o *object, c lease.Claim) (free bool, err error) {
	if o.holder == "" {
		return true, nil
	}
	lasts := max(o.duration, c.TTL)
	lasts += lasts / 20 // This clock may be faster than that of the holder.
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, before := s.watched[c.Name]
	if !before || seen.version != o.version {
		alive := before && now.Sub(seen.last) < lasts
		seen = observation{version: o.version, since: now, alive: alive}
	}
	seen.last = now
	if len(s.watched) >= watchedMax && !before {
		clear(s.watched) // What was seen of the others is seen anew.
	}
	s.watched[c.Name] = seen
	switch {
	case now.Sub(seen.since) >= lasts:
		return true, nil
	case seen.alive:
		return false, nil
	default:
		return false, fmt.Errorf("%w: %q, which has the lease for %v more unless it renews it", ErrUndecided, field.Clip(o.holder), lasts-now.Sub(seen.since))
	}
}

func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched, name)
}

// Give implements [lease.Store].
func (s *Store) Give(ctx context.Context, c lease.Claim) error {
	if err := lease.CheckName("name", c.Name); err != nil {
		return fmt.Errorf("kubernetes: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	for range attemptsMax {
		again, err := s.release(limited, c)
		if err != nil {
			return fmt.Errorf("kubernetes: %w", s.client.api.Overdue(ctx, err))
		}
		if !again {
			return nil
		}
	}
	return fmt.Errorf("kubernetes: %w", errContended)
}

// release reads the lease once and gives it back if it belongs to the claimant.
func (s *Store) release(ctx context.Context, c lease.Claim) (again bool, err error) {
	now, err := s.client.get(ctx, c.Name)
	switch {
	case isStatus(err, http.StatusNotFound):
		return false, nil
	case err != nil:
		return false, err
	case now.holder != c.Owner:
		return false, nil
	}
	next, err := now.held("", c.TTL, now.transitions, time.Now())
	if err != nil {
		return false, err
	}
	_, again, err = s.write(ctx, c.Name, next, false)
	return again, err
}

// Close closes the connections that are idle. It may be called more than once, and returns nil.
func (s *Store) Close() error { return s.client.api.Close() }
