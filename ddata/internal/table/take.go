// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

// How entries and changes of other replicas are added. The image of the key is read, the next image is made without the
// mutex of the bucket, since values may be large, and then it is set if the cell has not changed meanwhile. Local
// updates of the key could prevent that again and again; therefore the last attempt holds the mutex.

// takeAttempts is how many attempts are made without the mutex.
const takeAttempts = 3

// Join adds a whole entry of another replica, or one that was stored. Errors: [ErrKey], *[TypeError], [ErrTooLarge],
// [ErrFull], [ErrValue], all with Refused.
func (t *Table) Join(e Entry) (Outcome, error) {
	theirs, err := t.kinds.image(&e)
	if err != nil {
		return Refused, err
	}
	return t.take(e.Key, theirs.kind, func(mine *image) (image, Outcome) {
		next, news := joined(mine, &theirs)
		if !news {
			return next, Known
		}
		return next, Applied
	})
}

// Apply adds updates of another replica, or older ones of this one. It returns Gap, so that the caller asks for the
// whole entry, unless all earlier updates of the origin are there (Almeida et al. 2018, definition 5: delta intervals
// under causal delivery). Errors: as of Join.
func (t *Table) Apply(c Change) (Outcome, error) {
	k, err := t.kinds.ofChange(&c)
	if err != nil {
		return Refused, err
	}
	return t.take(c.Key, k, func(mine *image) (image, Outcome) {
		return applied(mine, &c, k, quarterMore(t.cfg.MaxValueBytes))
	})
}

// take replaces the image of a key by what a function makes of it.
func (t *Table) take(key string, k *kind, taking func(mine *image) (image, Outcome)) (Outcome, error) {
	keyHash := HashKey(key)
	b := &t.buckets[bucketOf(keyHash)]
	for range takeAttempts {
		b.mu.Lock()
		c := b.cells[key]
		mine, rev := c.image(), c.revision()
		b.mu.Unlock()
		next, outcome, err := t.kinds.made(key, &mine, k, quarterMore(t.cfg.MaxValueBytes), taking)
		if outcome != Applied {
			return outcome, err
		}
		b.mu.Lock()
		if b.cells[key] == c && c.revision() == rev {
			defer b.mu.Unlock()
			return t.takeOver(b, keyHash, key, c, &mine, &next)
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cells[key]
	mine := c.image()
	next, outcome, err := t.kinds.made(key, &mine, k, quarterMore(t.cfg.MaxValueBytes), taking)
	if outcome != Applied {
		return outcome, err
	}
	return t.takeOver(b, keyHash, key, c, &mine, &next)
}

// revision returns the number of the cell's last change, zero for no cell.
func (c *cell) revision() uint32 {
	if c == nil {
		return 0
	}
	return c.rev
}

// takeOver sets an image that was made with updates of others. The bucket is locked.
func (t *Table) takeOver(b *bucket, keyHash uint64, key string, c *cell, mine, next *image) (Outcome, error) {
	if err := t.replace(b, keyHash, key, c, mine, next, quarterMore(t.cfg.MaxBytes)); err != nil {
		return Refused, err
	}
	return Applied, nil
}
