// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/downing/lease"
)

// Store keeps leases in memory. Use [New].
type Store struct {
	mu     sync.Mutex // guards what follows
	leases map[string]heldLease
	down   error
}

// heldLease is a lease and its last holder. An empty owner has given it back.
type heldLease struct {
	owner string
	token uint64
	end   time.Time
}

var _ lease.Store = (*Store)(nil)

// New returns a store without leases.
func New() *Store { return &Store{leases: make(map[string]heldLease)} }

// Take implements [lease.Store].
func (s *Store) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault(ctx); err != nil {
		return lease.Answer{}, err
	}
	now, h := time.Now(), s.leases[c.Name]
	free := h.owner == "" || !now.Before(h.end)
	switch {
	case !free && h.owner != c.Owner:
		return lease.Answer{Owner: h.owner}, nil
	case free:
		h.token++
	}
	h.owner, h.end = c.Owner, now.Add(c.TTL)
	s.leases[c.Name] = h
	return lease.Answer{Granted: true, Owner: c.Owner, Token: h.token, TTL: c.TTL}, nil
}

// Give implements [lease.Store].
func (s *Store) Give(ctx context.Context, c lease.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fault(ctx); err != nil {
		return err
	}
	if h := s.leases[c.Name]; h.owner == c.Owner {
		s.leases[c.Name] = heldLease{token: h.token}
	}
	return nil
}

// Fail makes every call fail with an error, until it is given nil.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Steal gives a lease to an owner, whoever has it.
func (s *Store) Steal(name, owner string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[name] = heldLease{owner: owner, token: s.leases[name].token + 1, end: time.Now().Add(ttl)}
}

func (s *Store) fault(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.down
}
