// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"sync"

	"github.com/quorate/quorate/ddata/crdt"
)

// Local changes. An update reads the cell, runs the function without the mutex of the bucket, and installs the join of
// the delta with the value of the cell, which may have changed meanwhile: if updates of others were added, the join is
// made again; if the value that the function saw is gone, by a sweep, an expiry, or because the bucket was dropped, the
// function runs again. Deletion and expiry run no function, and only take the mutex.

// pendingUpdate is a local update between its read and its write.
type pendingUpdate struct {
	bucket  *bucket
	keyHash uint64
	key     string
	kind    *kind

	// What was read: the cell, nil for none, with the number of its change; the value; and
	// under which origin the update will be made, after how many.
	cell     *cell
	rev      uint32
	value    any // Nil for none.
	size     int
	guesses  uint16
	versions Versions
	origin   crdt.Origin
	count    uint64

	// What was made of it: the delta, its join with the value, and the size of that.
	delta         any
	joined        any
	joinedSize    int
	joinedGuesses uint16
}

// Update changes the value of a key: it runs the function on the value, or on the zero value of the type if the key is
// absent or expired, installs the result, and keeps the delta for Pending. The function is passed the origin in whose
// name it changes the value. It may run more than once, and must not call Update, which could wait for itself: one
// function runs at a time for the keys of a bucket. The numbers of the change are equal if nothing has changed.
//
// The join of the value with the delta of the result is installed, so that a function whose result is not made of the
// value takes nothing away.
//
// Errors: [ErrKey], *[TypeError], [ErrDeleted], [ErrFunction], [ErrTooLarge], [ErrFull],
// [ErrExhausted]. Nothing has changed then.
func (t *Table) Update(key string, typ crdt.Type, change func(at crdt.Origin, v any) (any, error)) (Change, error) {
	if err := checkKey(key); err != nil {
		return Change{}, err
	}
	k, err := t.kinds.of(typ)
	if err != nil {
		return Change{}, err
	}
	d := pendingUpdate{keyHash: HashKey(key), key: key, kind: k}
	d.bucket = &t.buckets[bucketOf(d.keyHash)]
	d.bucket.edit.Lock()
	defer d.bucket.edit.Unlock()
	for {
		if err := t.read(&d); err != nil {
			return Change{}, err
		}
		made, err := d.run(change, t.cfg.MaxValueBytes)
		if err == nil && made {
			made, err = t.install(&d)
			if err == nil && !made {
				continue
			}
		}
		if err != nil {
			return Change{}, err
		}
		return d.change(made), nil
	}
}

// change returns the draft as a change: an empty one if nothing was made of it.
func (d *pendingUpdate) change(made bool) Change {
	c := Change{Key: d.key, Type: d.kind.typ, Origin: d.origin, From: d.count, To: d.count}
	if made {
		c.To, c.Delta, c.Whole = d.count+1, d.delta, d.kind.whole
	}
	return c
}

// read reads the cell.
func (t *Table) read(d *pendingUpdate) error {
	b := d.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[d.key]
	switch {
	case c == nil:
		d.cell, d.rev, d.versions, d.value, d.size, d.guesses = nil, 0, nil, nil, 0, 0
	case c.state == Deleted:
		return ErrDeleted
	case c.kind != d.kind:
		return typeError(d.key, c.kind.typ, d.kind.typ)
	default:
		d.observe(c)
	}
	var ok bool
	if d.origin, d.count, ok = b.own(t.self, c); !ok {
		return ErrExhausted
	}
	return nil
}

// observe notes the image of a cell.
func (d *pendingUpdate) observe(c *cell) {
	d.cell, d.rev, d.versions, d.value, d.size, d.guesses = c, c.rev, c.versions, c.value, int(c.size), c.guesses
}

// functionCaught makes an error of a panic of an update function, in a defer statement.
func functionCaught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: panic: %v", ErrFunction, p)
	}
}

// run runs the function, and reports whether it has changed anything.
func (d *pendingUpdate) run(change func(at crdt.Origin, v any) (any, error), maximum int) (made bool, err error) {
	v, typ := d.value, d.kind.typ
	if v == nil {
		v = typ.Zero()
	}
	if d.delta, made, err = Run(typ, d.origin, v, change); err != nil || !made {
		return false, err
	}
	return true, d.join(maximum)
}

// Run runs an update function on a value of a type, and returns the delta of its result; made is false if it has
// changed nothing. The delta is encoded once, to check that it can be: a value that cannot be sent or stored would hold
// up those in the same message or batch. The errors, those of a panic included, wrap [ErrFunction].
func Run(typ crdt.Type, at crdt.Origin, v any, change func(at crdt.Origin, v any) (any, error)) (delta any, made bool, err error) {
	defer functionCaught(&err)
	after, err := change(at, v)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrFunction, err)
	}
	if !typ.Is(after) {
		return nil, false, fmt.Errorf("%w: it returned a %T for a %s", ErrFunction, after, typ.Name())
	}
	if delta, made = typ.Delta(after); !made {
		return nil, false, nil
	}
	delta = typ.Settled(delta)
	if err := encodes(typ, delta); err != nil {
		return nil, false, fmt.Errorf("%w: it returned a value that cannot be encoded: %w", ErrFunction, err)
	}
	return delta, true, nil
}

// scratches are buffers for encodings that are not used.
//
//nolint:gochecknoglobals // Memory that is used again, shared by all tables.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// encodes returns the error with which a type refuses to encode a value.
func encodes(typ crdt.Type, v any) error {
	const keep = 64 << 10 // The bytes of the largest buffer that is used again.
	b := scratches.Get().(*[]byte)
	encoded, err := typ.Append((*b)[:0], v)
	if cap(encoded) <= keep {
		*b = encoded[:0]
	}
	scratches.Put(b)
	return err
}

// join joins the delta with the value. The maximum is that of its size.
func (d *pendingUpdate) join(maximum int) (err error) {
	defer functionCaught(&err)
	d.joined = d.delta
	if d.value != nil {
		d.joined = d.kind.typ.Merge(d.value, d.delta)
	}
	d.joinedSize, d.joinedGuesses = d.kind.sizeAfter(d.size, d.guesses, d.joined, d.delta, maximum)
	return nil
}

// install makes the update. It reports false if the function has to run again.
func (t *Table) install(d *pendingUpdate) (bool, error) {
	for {
		if err := tooLarge(d.size, d.joinedSize, t.cfg.MaxValueBytes); err != nil {
			return false, err
		}
		d.bucket.mu.Lock()
		as, c := t.compare(d)
		if as == asRead {
			crowded, err := t.put(d, c)
			d.bucket.mu.Unlock()
			if crowded != nil {
				t.kinds.compact(d.bucket, crowded)
			}
			return err == nil, err
		}
		d.bucket.mu.Unlock()
		if as == asOther {
			return false, nil
		}
		if err := d.join(t.cfg.MaxValueBytes); err != nil {
			return false, err
		}
	}
}

// reading says how a cell has changed since an update has read it.
type reading uint8

const (
	asRead  reading = iota // The cell is as it was read.
	asMore                 // Updates of others were added, and the draft has seen them now.
	asOther                // What was read is gone.
)

// compare says how the cell has changed that an update has read. The bucket is locked.
func (t *Table) compare(d *pendingUpdate) (reading, *cell) {
	c := d.bucket.cells[d.key]
	origin, count, _ := d.bucket.own(t.self, c)
	switch {
	case origin != d.origin || count != d.count:
		return asOther, c
	case c == d.cell && c.revision() == d.rev:
		return asRead, c
	case c == nil || c.state == Deleted || c.kind != d.kind || !c.versions.Covers(d.versions):
		return asOther, c
	default:
		d.observe(c)
		return asMore, c
	}
}

// put makes the update of the cell, nil for none. It returns the pending record if there are
// so many deltas in it that they are to be merged. The bucket is locked.
func (t *Table) put(d *pendingUpdate, c *cell) (*pending, error) {
	next := image{
		state: Live, kind: d.kind, value: d.joined, size: d.joinedSize, guesses: d.joinedGuesses,
		floor: c.floor(), versions: d.versions.with(d.origin, d.count+1),
	}
	before := c.image()
	diff := next.bytes(d.key)
	if c != nil {
		diff -= before.bytes(d.key)
	}
	if err := t.bytes.reserve(diff, t.cfg.MaxBytes); err != nil {
		return nil, err
	}
	if c != nil && c.state == Live {
		t.advance(d, c, &next)
	} else {
		c = t.set(d.bucket, d.keyHash, d.key, c, &next)
	}
	d.bucket.used = max(d.bucket.used, lifeOf(d.origin))
	p := c.pending
	if p == nil || p.origin != d.origin || p.to != d.count {
		p = &pending{key: c.key, kind: c.kind, origin: d.origin, from: d.count, to: d.count}
		c.pending = p
		t.journal.pushPending(p)
	}
	if p.add(d.delta) {
		return p, nil
	}
	return nil, nil
}

// advance is set for the next update of an origin to a live cell: the one
// that is made a million times a second. Only the term of the origin changes.
func (t *Table) advance(d *pendingUpdate, c *cell, next *image) {
	zero, expired := zeroTerm(c.versions, next.floor), next.floor.Of(d.origin)
	before := originTerm(d.keyHash, d.origin, d.count, expired, zero)
	count := 0
	if d.count == 0 && expired == 0 {
		count = 1
	}
	d.bucket.addTerm(d.origin, originTerm(d.keyHash, d.origin, d.count+1, expired, zero)-before, count)
	c.value, c.versions, c.size, c.guesses = next.value, next.versions, sizeOf(next), next.guesses
	t.touch(c)
}

// OriginOf returns the origin under which the next local update of a key would be made.
func (t *Table) OriginOf(key string) crdt.Origin {
	b := &t.buckets[BucketOf(key)]
	b.mu.Lock()
	defer b.mu.Unlock()
	origin, _, _ := b.own(t.self, b.cells[key])
	return origin
}

// Delete replaces whatever is there, or not there, by a tombstone with a stamp, and returns it.
// A key that is deleted already keeps its tombstone. Errors: [ErrKey]; [ErrFull] if nothing is
// there.
func (t *Table) Delete(key string, stamp uint64) (Entry, error) {
	if err := checkKey(key); err != nil {
		return Entry{}, err
	}
	keyHash := HashKey(key)
	b := &t.buckets[bucketOf(keyHash)]
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[key]
	before, next := c.image(), image{state: Deleted, stamp: stamp}
	if before.state == Deleted {
		return before.entry(key), nil
	}
	if err := t.replace(b, keyHash, key, c, &before, &next, t.cfg.MaxBytes); err != nil {
		return Entry{}, err
	}
	return next.entry(key), nil
}

// Expire drops the value of a live key if it holds no updates beyond those that were seen, and returns the tombstone;
// otherwise it returns false, and nothing has changed. The updates of the value become part of the Floor.
func (t *Table) Expire(key string, seen Versions, stamp uint64) (Entry, bool) {
	keyHash := HashKey(key)
	b := &t.buckets[bucketOf(keyHash)]
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[key]
	if c == nil || c.state != Live || !seen.Covers(c.versions) {
		return Entry{}, false
	}
	before := c.image()
	next := before.expired(stamp)
	// It never grows: the versions move to the floor, or are there already.
	_ = t.replace(b, keyHash, key, c, &before, &next, 0)
	return next.entry(key), true
}

// replace reserves the bytes of an image and sets it. The bucket is locked.
func (t *Table) replace(b *bucket, keyHash uint64, key string, c *cell, before, next *image, maximum int64) error {
	var diff int64
	if next.state != 0 {
		diff += next.bytes(key)
	}
	if before.state != 0 {
		diff -= before.bytes(key)
	}
	if err := t.bytes.reserve(diff, maximum); err != nil {
		return err
	}
	t.set(b, keyHash, key, c, next)
	return nil
}

// Commit makes a local update of a delta that another node has made in the name of [Table.OriginOf], of the entry with
// the hash base, zero for no entry. The error is [ErrConflict] if the entry is another one by now, or one of those of
// [Table.Update].
func (t *Table) Commit(key string, typ crdt.Type, base uint64, delta any) (Change, error) {
	if err := checkKey(key); err != nil {
		return Change{}, err
	}
	if err := unknown(delta); err != nil {
		return Change{}, err
	}
	k, err := t.kinds.of(typ)
	if err != nil {
		return Change{}, err
	}
	if !typ.Is(delta) {
		return Change{}, ErrValue
	}
	d := pendingUpdate{keyHash: HashKey(key), key: key, kind: k}
	d.bucket = &t.buckets[bucketOf(d.keyHash)]
	d.bucket.edit.Lock()
	defer d.bucket.edit.Unlock()
	if err := t.read(&d); err != nil {
		return Change{}, err
	}
	if t.HashEntry(key) != base {
		return Change{}, ErrConflict
	}
	d.delta = delta
	if err := d.join(t.cfg.MaxValueBytes); err != nil {
		return Change{}, err
	}
	made, err := t.install(&d)
	if err == nil && !made {
		err = ErrConflict
	}
	if err != nil {
		return Change{}, err
	}
	return d.change(true), nil
}
