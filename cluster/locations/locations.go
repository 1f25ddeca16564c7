// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package locations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding"
)

// The client of the map: what is asked for is checked ([Map.check]), cut into the parts of the kind, one
// key of the replicated data each ([keyOf]), and written or read part by part, some at a time
// ([each]). The strategy that follows the map is in strategy.go.

// Prefix is how the keys of the replicated data begin that hold locations: ddata.durable and
// ddata.groups name it to make them durable, or to give them replicas of their own.
const Prefix = part.Prefix

const (
	// Limit bounds a call whose context has no deadline.
	Limit = 5 * time.Second
	// PartShards is how many shards a key holds at most.
	PartShards = part.Shards

	maxShards    = 65_536 // Shards of a kind, at most.
	maxKindBytes = 128    // Bytes of the name of a kind, at most.
	partsAtOnce  = 8      // Keys that a call reads or writes at one time.
	allShare     = 4      // All replicas have this part of what is left of the time of a call to say what they hold.
)

// Host is a node with sharding and replicated data.
type Host interface {
	sharding.Host
	ddata.Host
}

// Map is the map of locations of a cluster, by way of one node. Make one with [New].
type Map struct {
	host Host
}

// New returns the map by way of a node.
func New(h Host) *Map { return &Map{host: h} }

// keyOf returns the key that holds a part of the shards of a kind.
func keyOf(kind string, number int) ddata.Key[part.Part] {
	return ddata.NewKey[part.Part](part.Key(kind, number))
}

// Set has shards of a kind live at addresses, as "host:port" of nodes as they name themselves; an
// empty address withdraws a location. Shards that are not mentioned keep theirs. The context bounds
// the call, [Limit] if it has no deadline. Errors: [ErrInvalid], after which nothing has changed; an
// [*UnconfirmedError].
func (m *Map) Set(ctx context.Context, kind string, at map[allocation.Shard]string) error {
	shards, err := m.check(kind, at)
	if err != nil {
		return err
	}
	return m.write(ctx, kind, shards)
}

// Clear withdraws the locations of shards of a kind, all of them if none is named. The kind need not
// run anywhere any more. The shards stay where they live. Errors: as those of [Map.Set].
func (m *Map) Clear(ctx context.Context, kind string, shards ...allocation.Shard) error {
	if err := checkKind(kind); err != nil {
		return err
	}
	if len(shards) == 0 {
		all, err := m.Get(ctx, kind)
		if err != nil {
			return err
		}
		shards = slices.Collect(maps.Keys(all))
	}
	nowhere := make(map[allocation.Shard]string, len(shards))
	for _, s := range shards {
		if s >= maxShards {
			return fmt.Errorf("%w: shard %d: there are %d at most", ErrInvalid, s, maxShards)
		}
		nowhere[s] = ""
	}
	return m.write(ctx, kind, nowhere)
}

// Get returns the locations of the shards of a kind, as a majority of the replicas holds them; none
// is no error. The context bounds the call, [Limit] if it has no deadline. Errors: [ErrInvalid] for a
// name that no kind has; an [*UnreadError].
func (m *Map) Get(ctx context.Context, kind string) (map[allocation.Shard]string, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return m.read(ctx, kind, allParts(), ddata.Majority())
}

// Known returns what this node knows of the locations of a kind, without asking others if it holds data: it may be
// behind by moments. Errors: as those of [Map.Get].
func (m *Map) Known(ctx context.Context, kind string) (map[allocation.Shard]string, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return m.read(ctx, kind, allParts(), ddata.Local())
}

// Location returns what this node knows of the location of one shard, "" if it has none. Errors: as those of
// [Map.Get].
func (m *Map) Location(ctx context.Context, kind string, shard allocation.Shard) (string, error) {
	if err := checkKind(kind); err != nil {
		return "", err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	at, err := m.read(ctx, kind, []int{int(shard) / PartShards}, ddata.Local())
	return at[shard], err
}

// bounded gives a context without a deadline that of [Limit].
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, Limit)
}

// allParts are the numbers of all parts that a kind can have.
func allParts() []int {
	all := make([]int, maxShards/PartShards)
	for i := range all {
		all[i] = i
	}
	return all
}

// checkKind refuses what is no name of a kind.
func checkKind(kind string) error {
	if kind == "" || len(kind) > maxKindBytes || !utf8.ValidString(kind) {
		return fmt.Errorf("%w: the name of a kind has 1 to %d bytes of UTF-8", ErrInvalid, maxKindBytes)
	}
	return nil
}

// check returns the locations with their addresses as nodes write them, or every kind of fault once.
func (m *Map) check(kind string, at map[allocation.Shard]string) (map[allocation.Shard]string, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	count := 0
	for _, k := range m.host.Sharding().Kinds() {
		if k.Name == kind {
			count = k.Shards
		}
	}
	if count == 0 {
		return nil, fmt.Errorf("%w: kind %q does not run on this node, not as a proxy either: ask a node that hosts it or sends to it", ErrInvalid, kind)
	}
	checked := make(map[allocation.Shard]string, len(at))
	for _, shard := range slices.Sorted(maps.Keys(at)) { // So that of several faults always the same one is told.
		if int64(shard) >= int64(count) {
			return nil, fmt.Errorf("%w: shard %d: kind %q has those from 0 to %d", ErrInvalid, shard, kind, count-1)
		}
		if at[shard] == "" {
			checked[shard] = ""
			continue
		}
		address, err := gossip.ParseAddress(at[shard])
		if err != nil {
			return nil, fmt.Errorf("%w: shard %d: %w", ErrInvalid, shard, err)
		}
		checked[shard] = address.String()
	}
	return checked, nil
}

// write changes locations, and says of which shards that is not confirmed.
func (m *Map) write(ctx context.Context, kind string, locations map[allocation.Shard]string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	parts := part.Split(locations)
	failed := each(slices.Sorted(maps.Keys(parts)), func(n int) error { return m.writePart(ctx, keyOf(kind, n), parts[n]) })
	if len(failed) == 0 {
		return nil
	}
	e := &UnconfirmedError{Kind: kind}
	for _, n := range slices.Sorted(maps.Keys(failed)) {
		e.Shards = slices.AppendSeq(e.Shards, maps.Keys(parts[n]))
		e.Err = cmp.Or(e.Err, failed[n])
	}
	slices.Sort(e.Shards)
	return e
}

// writePart changes one part. What all replicas have already is not written again, so that a controller
// may say everything again and again, and nothing is sent. A majority is asked in any case: what this node
// holds may be behind, and what it writes has to win over what was confirmed, whatever the clocks say.
func (m *Map) writePart(ctx context.Context, key ddata.Key[part.Part], locations map[allocation.Shard]string) error {
	present, err := ddata.Get(ctx, m.host, key, ddata.Majority())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return err
	}
	others := part.Others(present, locations)
	if part.Doubtful(others, locations) {
		others, present = m.unsettled(ctx, key, locations, present)
	}
	if len(others) == 0 {
		return nil
	}
	now := time.Now().UnixNano()
	_, err = ddata.Update(ctx, m.host, key, ddata.Majority(), func(at crdt.Origin, p part.Part) (part.Part, error) {
		return part.Put(at, now, p, present, others, locations), nil
	})
	return err
}

// unsettled returns the shards whose locations some replica may not have, and what is known of the part then. While a
// replica does not answer, those are all shards, and nothing else is known than before.
func (m *Map) unsettled(ctx context.Context, key ddata.Key[part.Part], locations map[allocation.Shard]string, present part.Part) ([]allocation.Shard, part.Part) {
	deadline, _ := ctx.Deadline() // Every call has one.
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/allShare)
	defer cancel()
	everywhere, err := ddata.Get(ctx, m.host, key, ddata.All())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return part.All(locations), present
	}
	return part.Others(everywhere, locations), everywhere
}

// read returns the locations in some parts of a kind.
func (m *Map) read(ctx context.Context, kind string, numbers []int, c ddata.Consistency) (part.Known, error) {
	all := part.Known{}
	var mu sync.Mutex // Guards all.
	failed := each(numbers, func(n int) error {
		p, err := ddata.Get(ctx, m.host, keyOf(kind, n), c)
		if errors.Is(err, ddata.ErrNotFound) || errors.Is(err, ddata.ErrDeleted) {
			return nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all.Add(p, n)
		return nil
	})
	for _, n := range slices.Sorted(maps.Keys(failed)) {
		return nil, &UnreadError{Kind: kind, Err: failed[n]}
	}
	return all, nil
}

// each calls f for each part, some at a time, waits for all, and returns the errors by their part.
func each(numbers []int, f func(number int) error) map[int]error {
	failed := map[int]error{}
	var mu sync.Mutex // Guards failed.
	var running sync.WaitGroup
	places := make(chan struct{}, partsAtOnce)
	for _, n := range numbers {
		places <- struct{}{}
		// Owner: each, which waits. Ends with the context of f.
		running.Go(func() {
			defer func() { <-places }()
			if err := f(n); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[n] = err
			}
		})
	}
	running.Wait()
	return failed
}
