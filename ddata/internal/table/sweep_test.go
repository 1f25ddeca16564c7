// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

func newTable(self crdt.Origin) *table.Table { return table.New(table.Config{Self: self}) }

// updated updates keys.
func updated(t *testing.T, to *table.Table, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := update(to, key)
		require.NoError(t, err)
	}
}

func deleted(t *testing.T, from *table.Table, key string, stamp uint64) table.Entry {
	t.Helper()
	e, err := from.Delete(key, stamp)
	require.NoError(t, err)
	return e
}

func entryOf(t *testing.T, from *table.Table, key string) table.Entry {
	t.Helper()
	e, ok := from.Get(key)
	require.True(t, ok, "%s is not there", key)
	return e
}

func joined(t *testing.T, to *table.Table, e table.Entry) table.Outcome {
	t.Helper()
	outcome, err := to.Join(e)
	require.NoError(t, err)
	require.NoError(t, to.Check())
	return outcome
}

// A sweep drops what was confirmed: not a tombstone that came after, not one of a later stamp,
// not one that has become another since, and not a key that has come back.
func TestSweepDropsWhatWasConfirmed(t *testing.T) {
	a := newTable(1)
	updated(t, a, "c", "c2", "s", "s2")
	deleted(t, a, "early", 3)
	deleted(t, a, "late", 9)
	for _, key := range []string{"c", "c2", "s", "s2"} {
		_, ok := a.Expire(key, entryOf(t, a, key).Versions, 4)
		require.True(t, ok)
	}
	count, hash := a.Tombstones(5)
	require.Equal(t, 5, count)
	require.Equal(t, hash, a.Confirm(7, 5))
	require.True(t, a.Confirmed(7, hash))
	require.False(t, a.Confirmed(6, hash))
	require.False(t, a.Confirmed(7, hash+1))

	deleted(t, a, "after", 2)
	updated(t, a, "c2")       // It is back.
	deleted(t, a, "s", 5)     // It has expired, and is deleted now.
	deleted(t, a, "early", 1) // It is deleted already.
	b := newTable(2)          // More has expired than was confirmed.
	updated(t, b, "s2")
	e, ok := b.Expire("s2", entryOf(t, b, "s2").Versions, 4)
	require.True(t, ok)
	require.Equal(t, table.Applied, joined(t, a, e))

	a.Sweep(6, nil)
	require.Equal(t, 7, a.Len(), "nothing was confirmed for that sweep")
	a.Sweep(7, nil)
	require.NoError(t, a.Check())
	for _, key := range []string{"early", "c"} {
		_, ok := a.Get(key)
		require.False(t, ok, "%s is still there", key)
	}
	for _, key := range []string{"late", "after", "c2", "s", "s2"} {
		entryOf(t, a, key)
	}
}

// The marks of an earlier Confirm count no longer.
func TestLastConfirmCounts(t *testing.T) {
	a := newTable(1)
	deleted(t, a, "x", 3)
	deleted(t, a, "y", 4)
	first := a.Confirm(5, 4)
	second := a.Confirm(6, 3)
	require.NotEqual(t, first, second)
	require.False(t, a.Confirmed(5, first))
	a.Sweep(5, nil)
	require.Equal(t, 2, a.Len())
	a.Sweep(6, nil)
	require.Equal(t, 1, a.Len())
	entryOf(t, a, "y")
}

// A key that was deleted can be used again after the sweep, and begins anew.
func TestSweptKeyIsUsableAgain(t *testing.T) {
	a := newTable(1)
	updated(t, a, "c", "c")
	deleted(t, a, "c", 1)
	_, err := update(a, "c")
	require.ErrorIs(t, err, table.ErrDeleted)
	a.Confirm(2, 2)
	a.Sweep(2, nil)
	updated(t, a, "c")
	require.EqualValues(t, 1, entryOf(t, a, "c").Value.(crdt.GCounter).Value())
}

// Two replicas may have deleted a key in different generations. A tombstone that counts for
// a sweep must count for each later one, so the earlier stamp stays, in either order.
func TestEarlierStampOfTwoTombstonesStays(t *testing.T) {
	a, b := newTable(1), newTable(2)
	early, late := deleted(t, a, "x", 3), deleted(t, b, "x", 8)
	require.Equal(t, table.Known, joined(t, a, late))
	require.Equal(t, table.Applied, joined(t, b, early))
	require.Equal(t, a.Root(), b.Root())
	count, _ := b.Tombstones(3)
	require.Equal(t, 1, count)
}

// A replica whose copy of an expired value is the last one does not bring the value back, and
// its new updates are kept.
func TestSweptExpiryCoversNothingNew(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, a, "c")
	e, _ := a.Expire("c", entryOf(t, a, "c").Versions, 1)
	joined(t, b, e)
	require.Equal(t, a.Confirm(2, 2), b.Confirm(2, 2))
	updated(t, b, "c") // b keeps the floor, for the key has come back there.
	a.Sweep(2, nil)
	b.Sweep(2, nil)
	updated(t, a, "c")
	joined(t, a, entryOf(t, b, "c"))
	joined(t, b, entryOf(t, a, "c"))
	require.Equal(t, a.Root(), b.Root())
	require.EqualValues(t, 2, entryOf(t, b, "c").Value.(crdt.GCounter).Value())
}

// live returns an entry of a counter under the versions; the value counts like them.
func live(versions, floor table.Versions) table.Entry {
	v := crdt.GCounter{}
	for _, x := range versions {
		v = v.Add(x.Origin, x.Count)
	}
	return table.Entry{
		Key: "c", Type: counterType, Value: v.Settled(), Versions: versions, Floor: floor, State: table.Live,
	}
}

// What is folded into origin zero is numbered after what is there, which must therefore be the
// same on all replicas before: the hash of an owner tells them apart.
func TestOriginHashTellsWhatWasFoldedBefore(t *testing.T) {
	a, b := newTable(1), newTable(2)
	joined(t, a, live(table.Versions{{0, 2}, {7, 3}}, nil))
	joined(t, b, live(table.Versions{{7, 3}}, table.Versions{{0, 2}}))
	require.NotEqual(t, a.OriginHash([]crdt.Origin{7}), b.OriginHash([]crdt.Origin{7}))
	require.Equal(t, []crdt.Origin{7}, a.Origins())
}

// Updates of a retired owner that are alive do not vanish under a floor of those that were
// retired before.
func TestFoldedUpdatesStayAboveFloor(t *testing.T) {
	a := newTable(1)
	joined(t, a, live(table.Versions{{7, 3}}, table.Versions{{0, 5}}))
	a.Sweep(1, []crdt.Origin{7})
	require.NoError(t, a.Check())
	e := entryOf(t, a, "c")
	require.Equal(t, table.Live, e.State)
	require.Equal(t, table.Versions{{0, 8}}, e.Versions)
	require.EqualValues(t, 3, e.Value.(crdt.GCounter).Value())
	require.Empty(t, a.Origins())
	require.Equal(t, table.Known, joined(t, a, e))
}

// All lives of an owner are retired with it, those that have expired too, and a tombstone
// stays one.
func TestRetiringEndsAllLives(t *testing.T) {
	a := newTable(7)
	updated(t, a, "c", "c", "s")
	for _, key := range []string{"c", "s"} {
		_, ok := a.Expire(key, entryOf(t, a, key).Versions, 1)
		require.True(t, ok)
	}
	updated(t, a, "c")
	require.Equal(t, table.Versions{{table.LifeOf(7, 1), 1}}, entryOf(t, a, "c").Versions)
	require.Equal(t, []crdt.Origin{7}, a.Origins())
	a.Sweep(3, []crdt.Origin{7})
	require.NoError(t, a.Check())
	require.Empty(t, a.Origins())
	require.Equal(t, table.Versions{{0, 1}}, entryOf(t, a, "c").Versions)
	require.Nil(t, entryOf(t, a, "c").Floor)
	require.Equal(t, table.Expired, entryOf(t, a, "s").State)
}

// A replica that has dropped a bucket, and with it how far it had counted, counts under
// another life when it is a home again.
func TestDroppedBucketIsCountedUnderAnotherLife(t *testing.T) {
	a, b := newTable(1), newTable(2)
	updated(t, a, "c", "c")
	joined(t, b, entryOf(t, a, "c"))
	updated(t, a, "c") // Nobody else has seen the third.
	_ = a.Changed(100)
	a.Drop(table.BucketOf("c"))
	require.NoError(t, a.Check())
	require.Empty(t, a.Pending(100))
	require.Equal(t, []string{"c"}, a.Changed(100), "the disk has to forget it")
	joined(t, a, entryOf(t, b, "c"))
	updated(t, a, "c")
	require.Equal(t, table.Versions{{1, 2}, {table.LifeOf(1, 1), 1}}, entryOf(t, a, "c").Versions)

	a.Wipe()
	require.NoError(t, a.Check())
	require.Zero(t, a.Len())
	require.Zero(t, a.Bytes())
	require.Zero(t, a.Root())
	require.Empty(t, a.Changed(100))
	require.Empty(t, a.Pending(100))
	updated(t, a, "c")
	require.Equal(t, table.Versions{{table.LifeOf(1, 2), 1}}, entryOf(t, a, "c").Versions)
}

// The last life is used, and then the replica needs another name.
func TestOriginWithoutLifeIsExhausted(t *testing.T) {
	a := newTable(table.LifeOf(1, 1<<20-1))
	updated(t, a, "c")
	_, ok := a.Expire("c", entryOf(t, a, "c").Versions, 1)
	require.True(t, ok)
	_, err := update(a, "c")
	require.ErrorIs(t, err, table.ErrExhausted)
	require.NoError(t, a.Check())
}
