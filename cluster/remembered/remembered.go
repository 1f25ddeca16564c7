// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembered

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/remember"
)

// Config first, then the store, which opens all parts of a shard at once, and the set, which hands each change to
// the parts of its ids; what is read and written of a part is below.

// Config is what an operator may set. Start from [Default]. All nodes need the same.
type Config struct {
	// Prefix is how the names of the keys begin, 1 to 256 bytes.
	Prefix string `koanf:"prefix"`

	// Parts is over how many keys the ids of a shard are spread, 1 to 64. It cannot be changed while ids are
	// remembered.
	Parts int `koanf:"parts" unit:"keys" range:"1..64"`
}

// Default returns the default configuration.
func Default() Config { return Config{Prefix: "remembered/", Parts: 5} }

const (
	maxPrefix = 256
)

// Validate reports every fault in one error, each a [field.Error].
func (c Config) Validate() error {
	var faults field.Faults
	faults.Refuse(c.Prefix == "" || len(c.Prefix) > maxPrefix, "prefix", "%d bytes, want 1 to %d", len(c.Prefix), maxPrefix)
	faults.Add(field.Ranges(c))
	return faults.Err()
}

// Store remembers entities in replicated data.
type Store struct {
	host   ddata.Host
	cfg    Config
	owners atomic.Uint64 // The number of the last owner.
}

var _ remember.Store = (*Store)(nil)

// In returns a store in the data of a node. The error is that of [Config.Validate].
func In(h ddata.Host, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("remembered: %w", err)
	}
	return &Store{host: h, cfg: cfg}, nil
}

// owned is what a key holds: the sets of owners, of which that of the highest one counts, and the claims of those
// who are about to have one.
type owned = crdt.ORMap[string, crdt.ORSet[string]]

// claimed begins the name of an owner whose claim is under way: its set is empty, and does not count. Names of owners
// begin with a letter.
const claimed = "!"

// Open implements [remember.Store].
func (s *Store) Open(ctx context.Context, shard remember.Shard, under epoch.Epoch) (remember.Set, []string, error) {
	// Texts of epochs compare as the epochs do, and none is the beginning of another.
	o := &set{store: s, shard: shard, owner: fmt.Sprintf("%s/%016x", under, s.owners.Add(1))}
	for i := range s.cfg.Parts {
		o.keys = append(o.keys, ddata.NewKey[owned](s.cfg.Prefix+shard.Kind+"/"+strconv.Itoa(shard.Of)+"/"+strconv.Itoa(shard.Number)+"/"+strconv.Itoa(i)))
	}
	parts := make([][]string, s.cfg.Parts)
	err := remember.Each(len(o.keys), func(i int) (err error) {
		parts[i], err = o.claim(ctx, o.keys[i])
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("remembered: %v: %w", shard, err)
	}
	var ids []string
	for _, part := range parts {
		ids = append(ids, part...)
	}
	return o, ids, nil
}

// set is the set of a shard in the hands of one owner.
type set struct {
	store *Store
	shard remember.Shard
	owner string
	keys  []ddata.Key[owned]
}

var _ remember.Set = (*set)(nil)

// Change implements [remember.Set].
func (s *set) Change(ctx context.Context, add, remove []string) error {
	adds, removes := s.split(add), s.split(remove)
	full := make([][]string, len(s.keys))
	err := remember.Each(len(s.keys), func(i int) (err error) {
		if len(adds[i])+len(removes[i]) > 0 {
			full[i], err = s.change(ctx, s.keys[i], adds[i], removes[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remembered: %v: %w", s.shard, err)
	}
	over := &remember.FullError{Shard: s.shard}
	for _, ids := range full {
		over.IDs = append(over.IDs, ids...)
	}
	if len(over.IDs) > 0 {
		return over
	}
	return nil
}

// split returns the ids of each part. Which part an id has must not change.
func (s *set) split(ids []string) [][]string {
	parts := make([][]string, len(s.keys))
	for _, id := range ids {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(id)) // It never fails.
		i := (sum.Sum64() >> 32) % uint64(len(parts))
		parts[i] = append(parts[i], id)
	}
	return parts
}

// read returns what a majority has of a part.
func (s *set) read(ctx context.Context, key ddata.Key[owned]) (owned, error) {
	all, err := ddata.Get(ctx, s.store.host, key, ddata.Majority())
	if errors.Is(err, ddata.ErrNotFound) {
		return owned{}, nil
	}
	return all, err
}

// last returns the highest owner, also one whose claim is under way, and the set that counts.
func last(all owned) (owner string, ids crdt.ORSet[string]) {
	counts := ""
	for o := range all.Keys() { // In ascending order.
		name, claims := strings.CutPrefix(o, claimed)
		if owner = max(owner, name); !claims {
			counts = o
		}
	}
	ids, _ = all.Get(counts)
	return owner, ids
}

// update has a function change a part, of which something is known besides what the copy here has, and returns when a
// majority has the change. It fails if a later owner is known.
func (s *set) update(ctx context.Context, key ddata.Key[owned], known owned, change func(at crdt.Origin, all owned) (owned, error)) error {
	_, err := ddata.Update(ctx, s.store.host, key, ddata.Majority(), func(at crdt.Origin, here owned) (owned, error) {
		all := here.Merge(known) // Also on a node that has no copy, or an older one.
		if owner, _ := last(all); owner > s.owner {
			return here, fmt.Errorf("%w: %s", remember.ErrFenced, owner)
		}
		return change(at, all)
	})
	return err
}

// claim makes this owner that of a part, and returns the ids. The owner before is locked out first, and what it has
// left is read then: whatever was confirmed to it is there by then, since it has looked, after its change was at a
// majority, whether a majority knows of a claim.
func (s *set) claim(ctx context.Context, key ddata.Key[owned]) ([]string, error) {
	err := s.update(ctx, key, owned{}, func(at crdt.Origin, all owned) (owned, error) {
		return all.Update(at, claimed+s.owner, func(none crdt.ORSet[string]) crdt.ORSet[string] { return none }), nil
	})
	if err != nil {
		return nil, err
	}
	known, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := s.update(ctx, key, known, s.takeOver); err != nil {
		return nil, err
	}
	own, err := s.confirm(ctx, key)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, own.Len())
	for id := range own.All() {
		ids = append(ids, id)
	}
	return ids, nil
}

// takeOver gives this owner the set that counts, and removes all others.
func (s *set) takeOver(at crdt.Origin, all owned) (owned, error) {
	_, ids := last(all)
	next := all.Update(at, s.owner, func(own crdt.ORSet[string]) crdt.ORSet[string] {
		for id := range ids.All() {
			own = own.Add(at, id)
		}
		return own
	})
	for o := range all.Keys() {
		if o != s.owner {
			next = next.Remove(o)
		}
	}
	return next, nil
}

// confirm returns the set of a part, unless a majority knows of a later owner.
func (s *set) confirm(ctx context.Context, key ddata.Key[owned]) (own crdt.ORSet[string], err error) {
	all, err := s.read(ctx, key)
	if err != nil {
		return own, err
	}
	owner, own := last(all)
	if owner != s.owner {
		return own, fmt.Errorf("%w: %s", remember.ErrFenced, owner)
	}
	return own, nil
}

// errBehind says that a change was made on a copy that had not heard of what was to be changed.
var errBehind = errors.New("the copy that was changed was behind")

// roomKept is which part of the largest value is left free, so that a set that is full has room for a claim, and for
// the copy that its next owner makes.
const roomKept = 16

// errNoRoom says that a part is full.
var errNoRoom = errors.New("the part is full")

// change changes a part, and returns the ids for which there is no room. That the owner is still the last one is
// looked at when a majority has the change: whose claim a majority gets to know after that sees it.
func (s *set) change(ctx context.Context, key ddata.Key[owned], add, remove []string) (full []string, err error) {
	most := s.store.host.Data().MaxValueBytes()
	most -= most / roomKept
	err = s.update(ctx, key, owned{}, func(at crdt.Origin, all owned) (owned, error) {
		next := all.Update(at, s.owner, func(own crdt.ORSet[string]) crdt.ORSet[string] {
			for _, id := range add {
				own = own.Add(at, id)
			}
			for _, id := range remove {
				own = own.Remove(id)
			}
			return own
		})
		if len(add) > 0 && next.Settled().Size() > most {
			return all, errNoRoom
		}
		return next, nil
	})
	switch {
	case errors.Is(err, errNoRoom) || errors.Is(err, ddata.ErrTooLarge) || errors.Is(err, ddata.ErrFull):
		if len(remove) > 0 {
			if _, err := s.change(ctx, key, nil, remove); err != nil {
				return nil, err
			}
		}
		return add, nil
	case err != nil:
		return nil, err
	}
	own, err := s.confirm(ctx, key)
	if err == nil && (slices.ContainsFunc(remove, own.Has) || slices.ContainsFunc(add, func(id string) bool { return !own.Has(id) })) {
		err = errBehind
	}
	return nil, err
}
