// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/downing/lease/internal/protocol"
)

// Phase is what a [Keeper] is doing.
type Phase string

// The phases.
const (
	// Idle: the lease is neither held nor wanted; the reason says how that came.
	Idle Phase = "idle"
	// Waiting: the lease is wanted, and the store has given no answer that decides.
	Waiting Phase = "waiting"
	// Held: the lease is held.
	Held Phase = "held"
	// Releasing: the lease is not held any more, and the store is being told.
	Releasing Phase = "releasing"
)

// State is what a keeper is doing, for people.
type State struct {
	// Name is the name of the lease.
	Name string
	// Phase is what the keeper does.
	Phase Phase
	// Since is when the phase began.
	Since time.Time
	// Token is the fencing token while the lease is held, else 0.
	Token uint64
	// Reason says why the phase began, or what keeps it from ending.
	Reason string
}

// String returns a line such as "waiting for the lease "bank" since 2026-11-23T00:10:00Z: no
// answer within 3s".
func (s State) String() string {
	since := s.Since.UTC().Format(time.RFC3339)
	switch s.Phase {
	case Waiting:
		return fmt.Sprintf("waiting for the lease %q since %s: %s", s.Name, since, s.Reason)
	case Held:
		return fmt.Sprintf("holding the lease %q since %s with the token %d: %s", s.Name, since, s.Token, s.Reason)
	case Releasing:
		return fmt.Sprintf("giving back the lease %q since %s: %s", s.Name, since, s.Reason)
	default:
		return fmt.Sprintf("without the lease %q since %s: %s", s.Name, since, s.Reason)
	}
}

// State returns what the keeper is doing.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state()
}

func (k *Keeper) state() State {
	token, held := k.core.Token(k.clock.Read(time.Now()))
	s := State{Name: k.name, Since: k.began.Add(k.core.Since()), Token: token, Reason: k.core.Reason()}
	switch k.core.Phase() {
	case protocol.Waiting:
		s.Phase = Waiting
	case protocol.Releasing:
		s.Phase = Releasing
	case protocol.Held:
		s.Phase = Held
		if !held {
			s.Phase, s.Since, s.Reason = Idle, k.began.Add(k.core.Until()), "lost: no answer before the end of the lease: "+s.Reason
		}
	case protocol.Idle:
		s.Phase = Idle
	}
	if s.Reason == "" {
		s.Reason = "never asked for"
	}
	return s
}
