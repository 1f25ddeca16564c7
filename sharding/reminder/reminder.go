// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reminder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// First what a reminder is, for who sets it and for who gets it; then the service of a node, by which
// reminders are set, canceled and listed. The buckets are in bucket.go, what is counted in stats.go.

// Reminder is an appointment of an entity.
type Reminder struct {
	Kind string // Of the entity: 1 to 128 bytes of UTF-8.
	ID   string // Of the entity: 1 to 512 bytes of UTF-8.
	Name string // Tells the reminders of an entity apart: 1 to 128 bytes of UTF-8.

	// Due is when it is delivered, in the years 1 to 9999, rounded up to a millisecond; at once if that
	// has passed. The zero value is refused.
	Due time.Time

	// Every is the time between further deliveries, at least 1 s, cut to milliseconds. Zero: there is one.
	Every time.Duration

	// Payload comes with the delivery: at most 4,096 bytes.
	Payload []byte
}

// Fired is what an entity is told.
type Fired struct {
	Reminder

	// Missed is how many occurrences this delivery stands for besides the one at Due, as they have passed
	// as well. It rises while the delivery is repeated.
	Missed uint64

	// Attempt counts the deliveries of the occurrence at Due by the present owner of the bucket, from 1.
	// (Kind, ID, Name, Due) tells an occurrence from others, and so a delivery that is a repetition.
	Attempt int
}

// Status is what [Service.List] says of a reminder.
type Status struct {
	Reminder // Due is that of the next occurrence.

	Set      time.Time // When it was set.
	Attempts int       // Deliveries of the occurrence that is due which were not acknowledged.
	Failure  string    // Why the last of them was not.
	Busy     bool      // A delivery is under way, or was acknowledged and is being saved.
}

// Deliver takes a delivery to an entity, and returns nil when the entity has acknowledged it. ctx ends
// after [Config.AckTimeout], and when the bucket moves; Deliver returns soon after that. An error, or a
// panic, has the delivery repeated.
type Deliver func(ctx context.Context, f Fired) error

// Ask returns a [Deliver] that asks the entity: a reply of type R acknowledges. An entity that cannot do
// what it is reminded of replies with something else, such as an error of its own type, or fails.
func Ask[R, C any](region *sharding.Region[C], message func(f Fired) C) Deliver {
	return func(ctx context.Context, f Fired) error {
		_, err := sharding.Ask[R](ctx, region, f.ID, message(f))
		return err
	}
}

// Service is the reminders of one node.
type Service struct {
	cfg    Config
	log    *slog.Logger
	keeper *state.Keeper
	region *sharding.Region[*sharding.Bytes]
	ids    []string // Of the buckets, by their numbers: each is the only one of its shard.
	counts counts
	now    func() machine.Now

	started chan struct{} // Closed when region is set.
	targets atomic.Pointer[map[string]Deliver]
	mu      sync.Mutex                 // Guards changes of targets, and what follows.
	gauges  map[*bucket]buckets.Gauges // Of the buckets that are here.
}

// Option is what only code can give to [Start].
type Option func(*Service)

// WithLogger says where deliveries and pages that fail are reported. The default is [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(s *Service) { s.log = log } }

// Start keeps on a host the reminders of the buckets that live on its node, and returns the way to all
// reminders. The error is that of [Config.Validate], or of [sharding.Start].
func Start(h sharding.Host, st store.Store, cfg Config, options ...Option) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("reminder: %w", err)
	}
	origin := time.Now()
	s := &Service{
		cfg: cfg, log: slog.Default(), started: make(chan struct{}), ids: sharding.OnePerShard(buckets.Buckets), gauges: map[*bucket]buckets.Gauges{},
		now: func() machine.Now {
			now := time.Now()
			return machine.Now{Mono: machine.Instant(now.Sub(origin)), Wall: now}
		},
	}
	s.targets.Store(&map[string]Deliver{})
	for _, o := range options {
		o(s)
	}
	s.log = machine.LimitLog(s.log)
	var err error
	if s.keeper, err = state.NewKeeper(st, cfg.State, state.WithLogger(s.log)); err != nil {
		return nil, fmt.Errorf("reminder: %w", err)
	}
	numbers := map[string]int{}
	for i, id := range s.ids {
		numbers[id] = i
	}
	s.region, err = sharding.Start(h, sharding.Kind[*sharding.Bytes]{
		Name: cfg.Name, Role: cfg.Role, ProxyOnly: cfg.ProxyOnly, Codec: sharding.Raw{},
		Shards: buckets.Buckets, Permanent: s.ids,
		New: func(c *sharding.Context) sharding.Entity[*sharding.Bytes] {
			number, known := numbers[c.ID()]
			if !known {
				return stranger{}
			}
			return &bucket{service: s, number: number}
		},
	})
	if err != nil {
		return nil, err
	}
	close(s.started)
	return s, nil
}

// Target says how reminders reach the entities of a kind. All nodes that keep reminders need it for each
// kind; reminders of others wait, and are tried again.
func (s *Service) Target(kind string, deliver Deliver) error {
	if fault := (buckets.Key{Kind: kind, ID: "-", Name: "-"}).Check(); fault != "" {
		return fmt.Errorf("reminder: %w: %s", ErrInvalid, fault)
	}
	if deliver == nil {
		return fmt.Errorf("reminder: %w: kind %q has no function that delivers", ErrInvalid, kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(*s.targets.Load())
	if all[kind] != nil {
		return fmt.Errorf("reminder: %w: kind %q has a target already", ErrInvalid, kind)
	}
	all[kind] = deliver
	s.targets.Store(&all)
	return nil
}

// Set has an entity reminded, in place of a reminder with the same name. It returns when the store has
// it; after an error it can be repeated. The error is an [*Error].
func (s *Service) Set(ctx context.Context, r Reminder) error {
	switch {
	case r.Due.IsZero():
		return &Error{"set", r.Kind, r.ID, r.Name, "due is not set: time.Now() stands for at once", ErrInvalid}
	case r.Every != 0 && r.Every < buckets.MinEvery:
		fault := fmt.Sprintf("every is %v, at least %v are possible, or zero for once", r.Every, buckets.MinEvery)
		return &Error{"set", r.Kind, r.ID, r.Name, fault, ErrInvalid}
	}
	_, err := s.ask(ctx, "set", buckets.Ask{Op: buckets.Set, Reminder: buckets.Reminder{
		Key: buckets.Key{Kind: r.Kind, ID: r.ID, Name: r.Name}, Due: milliseconds(r.Due), Every: r.Every.Milliseconds(), Payload: r.Payload,
	}})
	return err
}

// Cancel has a reminder forgotten, and reports whether there was one. After an error it can be repeated,
// and may then report that there is none. The error is an [*Error].
func (s *Service) Cancel(ctx context.Context, kind, id, name string) (bool, error) {
	a, err := s.ask(ctx, "cancel", buckets.Ask{Op: buckets.Cancel, Reminder: buckets.Reminder{Key: buckets.Key{Kind: kind, ID: id, Name: name}}})
	return a.Found, err
}

// List returns the reminders of an entity, ordered by name. The error is an [*Error].
func (s *Service) List(ctx context.Context, kind, id string) ([]Status, error) {
	a, err := s.ask(ctx, "list", buckets.Ask{Op: buckets.List, Reminder: buckets.Reminder{Key: buckets.Key{Kind: kind, ID: id}}})
	if err != nil {
		return nil, err
	}
	all := make([]Status, len(a.List))
	for i, s := range a.List {
		all[i] = Status{
			Reminder: public(s.Reminder), Set: time.UnixMilli(s.Set), Attempts: s.Attempts, Failure: s.Failure, Busy: s.Busy,
		}
	}
	return all, nil
}

// ask asks the bucket of an entity.
func (s *Service) ask(ctx context.Context, op string, a buckets.Ask) (buckets.Answer, error) {
	k := a.Reminder.Key
	failed := func(detail string, err error) (buckets.Answer, error) {
		return buckets.Answer{}, &Error{op, k.Kind, k.ID, k.Name, detail, err}
	}
	if fault := a.Check(); fault != "" {
		return failed(fault, ErrInvalid)
	}
	number, _ := buckets.Place(k.Kind, k.ID)
	question := sharding.Bytes(buckets.AppendAsk(nil, a))
	reply, err := sharding.Ask[*sharding.Bytes](ctx, s.region, s.ids[number], &question)
	if err != nil {
		return failed("", err)
	}
	answer, err := buckets.DecodeAnswer(*reply)
	if err != nil {
		return failed(err.Error(), ErrUnknown)
	}
	if err := errorOf(answer); err != nil {
		return failed(answer.Detail, err)
	}
	return answer, nil
}

// milliseconds returns a time in Unix milliseconds, rounded up.
func milliseconds(t time.Time) int64 {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		t = t.Add(time.Millisecond)
	}
	return t.UnixMilli()
}

func public(r buckets.Reminder) Reminder {
	return Reminder{
		Kind: r.Kind, ID: r.ID, Name: r.Name, Due: time.UnixMilli(r.Due), Payload: r.Payload,
		Every: time.Duration(r.Every) * time.Millisecond,
	}
}

// stranger is an entity of the kind that is no bucket. Nobody sends to it who uses this package.
type stranger struct{}

// Receive implements [sharding.Entity].
func (stranger) Receive(*sharding.Context, *sharding.Bytes) error {
	return errors.New("reminder: there is no such bucket")
}
