// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// The audit of the bank's books. Helpers write journals and note what clients were told
// (books). Then one fault at a time is planted and found, odd books that are right are
// allowed, and damaged ones are an error; last come answers of frozen nodes, and the report.

// books has journals that a test writes, and what it claims that clients were told.
type books struct {
	t    *testing.T
	dir  string
	load *load
	now  map[string]*owner // Account to its owner.
}

// owner is who writes the journal of an account.
type owner struct {
	store    *journal.Store
	as       store.Owner
	expected uint64 // The version that the owner believes the account to have.
}

// epochText returns the text of the n-th epoch.
func epochText(n uint64) string { return epoch.Epoch{Born: 1, N: n}.String() }

// newBooks returns the books of accounts a, b and c, each with one owner.
func newBooks(t *testing.T) *books {
	t.Helper()
	b := &books{t: t, dir: t.TempDir(), load: newLoad(1, 3, 300, &nodeProcesses{}), now: map[string]*owner{}}
	for _, account := range []string{"a", "b", "c"} {
		b.take(account, 1)
	}
	return b
}

// keyOf returns the key of an account.
func keyOf(account string) store.Key { return store.Key{Kind: "account", ID: account} }

// take makes a new owner of an account, in its n-th epoch.
func (b *books) take(account string, n uint64) {
	b.t.Helper()
	s, err := journal.Open(b.dir, fmt.Sprint("node-", n))
	require.NoError(b.t, err)
	as := store.Owner{Epoch: epoch.Epoch{Born: 1, N: n}, Instance: 1}
	records, err := s.Load(b.t.Context(), []store.Claim{{Key: keyOf(account), Owner: as}})
	require.NoError(b.t, err)
	require.Equal(b.t, as, records[0].Owner)
	b.now[account] = &owner{s, as, records[0].Version}
}

// book writes one leg.
func (b *books) book(account, id string, cents int64) {
	b.t.Helper()
	require.True(b.t, b.write(account, b.now[account], bank.Booking{Transfer: id, Cents: cents}))
}

// write has an owner write a booking, and reports whether it counts.
func (b *books) write(account string, by *owner, booking bank.Booking) bool {
	b.t.Helper()
	booking.At = time.Now().UnixNano()
	event, err := json.Marshal(booking)
	require.NoError(b.t, err)
	w := store.Write{
		Key: keyOf(account), Owner: by.as, Expected: by.expected, Version: by.expected + 1,
		Events: []store.Value{{Form: 1, Bytes: event}},
	}
	heads, err := by.store.Save(b.t.Context(), []store.Write{w})
	require.NoError(b.t, err)
	by.expected++
	return heads[0] == w.After()
}

// tell notes that a client was told of a transfer by the present owners.
func (b *books) tell(id, from, to string, cents int64) *told {
	b.load.asked[id] = true
	b.load.told = append(b.load.told, told{
		bank.Transfer{ID: id, From: from, To: to, Cents: cents},
		bank.Receipt{ID: id, Paid: b.now[from].as.Epoch.String(), Got: b.now[to].as.Epoch.String()},
	})
	return &b.load.told[len(b.load.told)-1]
}

// transfer does all that a transfer does.
func (b *books) transfer(id, from, to string, cents int64) *told {
	b.t.Helper()
	b.book(from, id, -cents)
	b.book(to, id, cents)
	return b.tell(id, from, to, cents)
}

// frozen notes that an answer came from a node that had been frozen.
func (b *books) frozen(node string, t *told) { b.load.late = append(b.load.late, lateAnswer{*t, node}) }

// rewrite changes the text of a journal behind the back of its owner.
func (b *books) rewrite(account string, change func(string) string) {
	b.t.Helper()
	path := journal.Path(b.dir, keyOf(account))
	text, err := os.ReadFile(path)
	require.NoError(b.t, err)
	changed := change(string(text))
	require.NotEqual(b.t, string(text), changed)
	require.NoError(b.t, os.WriteFile(path, []byte(changed), 0o600))
}

// TestAuditFindsEachPlantedFault plants one fault at a time into books that are
// right. The audit must say what it is, and must not say ok.
func TestAuditFindsEachPlantedFault(t *testing.T) {
	tests := map[string]struct {
		plant func(*books)
		want  verdict // The counts of faults; the rest of the verdict is not compared.
	}{
		"an acknowledged transfer without its paying leg": {
			func(b *books) { b.book("b", "x", 5); b.tell("x", "a", "b", 5) },
			verdict{Lost: 1, CentsAppeared: 5},
		},
		"an acknowledged transfer without its receiving leg": {
			func(b *books) { b.book("a", "x", -5); b.tell("x", "a", "b", 5) },
			verdict{Lost: 1, CentsAppeared: -5},
		},
		"an acknowledged transfer that is nowhere": {
			func(b *books) { b.tell("x", "a", "b", 5) }, verdict{Lost: 2},
		},
		"a whole transfer booked twice": {
			func(b *books) { b.transfer("x", "a", "b", 5); b.book("a", "x", -5); b.book("b", "x", 5) },
			verdict{Duplicated: 2},
		},
		"a leg booked twice, by two owners": {
			func(b *books) { b.transfer("x", "a", "b", 5); b.take("b", 2); b.book("b", "x", 5) },
			verdict{Duplicated: 1, CentsAppeared: 5},
		},
		"a leg with another amount": {
			func(b *books) { b.book("a", "x", -5); b.book("b", "x", 6); b.tell("x", "a", "b", 5) },
			verdict{Lost: 1, CentsAppeared: 1},
		},
		"a transfer refused in the books and done in the answer": {
			func(b *books) {
				require.True(b.t, b.write("a", b.now["a"], bank.Booking{Transfer: "x", Cents: -5, Refused: true}))
				b.book("b", "x", 5)
				b.tell("x", "a", "b", 5)
			},
			verdict{Lost: 1, CentsAppeared: 5},
		},
		"a transfer done in the books and refused in the answer": {
			func(b *books) { b.transfer("x", "a", "b", 5).receipt.Refused = true }, verdict{Lost: 1},
		},
		"an acknowledged write behind the claim of a newer owner": {
			func(b *books) {
				old := b.now["a"]
				b.take("a", 2)
				require.False(b.t, b.write("a", old, bank.Booking{Transfer: "x", Cents: -5}))
				b.book("b", "x", 5)
				b.tell("x", "a", "b", 5).receipt.Paid = epochText(1)
			},
			verdict{Lost: 1, OverlappingEpoch: 2, CentsAppeared: 5}, // The times of the owners overlap as well.
		},
		"an older epoch's acknowledgement of what a newer one wrote": {
			func(b *books) { b.take("a", 2); b.transfer("x", "a", "b", 5).receipt.Paid = epochText(1) },
			verdict{OverlappingEpoch: 1},
		},
		"an owner that writes after its successor began": {
			func(b *books) {
				old := b.now["a"]
				b.take("a", 2)
				require.False(b.t, b.write("a", old, bank.Booking{Transfer: "nobody was told", Cents: -5}))
			},
			verdict{OverlappingEpoch: 1},
		},
		"money out of nothing": {
			func(b *books) { b.book("c", "x", 5) }, verdict{CentsAppeared: 5, Unasked: 1},
		},
		"money into nothing": {
			func(b *books) { b.book("c", "x", -5) }, verdict{CentsAppeared: -5, Unasked: 1},
		},
		"a transfer that nobody asked for": {
			func(b *books) { b.book("a", "x", -5); b.book("c", "x", 5) }, verdict{Unasked: 2},
		},
		"a record taken out of a journal": {
			func(b *books) {
				b.rewrite("a", func(text string) string {
					lines := strings.Split(text, "\n") // The first is empty, then comes the claim.
					return strings.Join(append(lines[:2:2], lines[3:]...), "\n")
				})
			},
			verdict{Lost: 1, CentsAppeared: 10},
		},
		"a paying account that answers after it was frozen": {
			func(b *books) { b.frozen("node-1", b.transfer("x", "a", "b", 5)); b.take("a", 2) }, verdict{Late: 1},
		},
		"a receiving account that answers after it was frozen": {
			func(b *books) { b.take("a", 2); b.frozen("node-1", b.transfer("x", "a", "b", 5)) }, verdict{Late: 1},
		},
		"a transfer without an answer":     {func(b *books) { b.load.unanswered++ }, verdict{Unanswered: 1}},
		"an account without a journal":     {func(b *books) { b.load.accounts++ }, verdict{}},
		"a run without an acknowledgement": {func(b *books) { b.load.told = nil }, verdict{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.transfer("t1", "a", "b", 10)
			b.transfer("t2", "b", "c", 20)
			v, err := audit(b.dir, b.load)
			require.NoError(t, err)
			require.True(t, v.OK, "the books are right before the fault: %+v", v)

			test.plant(b)
			v, err = audit(b.dir, b.load)
			require.NoError(t, err)
			require.False(t, v.OK, "%+v", v)
			require.Equal(t, test.want, faultsOf(v))
		})
	}
}

// faultsOf returns a verdict with the counts of faults alone.
func faultsOf(v verdict) verdict {
	return verdict{
		Lost: v.Lost, Duplicated: v.Duplicated, OverlappingEpoch: v.OverlappingEpoch, CentsAppeared: v.CentsAppeared,
		Unanswered: v.Unanswered, Unasked: v.Unasked, Late: v.Late,
	}
}

// TestAuditAllowsWhatFailureBrings audits books that look odd and are right: legs that were
// repeated to a later owner, an older owner's acknowledged write that a later one has read,
// a refused transfer.
func TestAuditAllowsWhatFailureBrings(t *testing.T) {
	b := newBooks(t)
	b.transfer("t1", "a", "b", 10)
	b.take("a", 2)
	b.transfer("t2", "b", "a", 20)
	b.book("a", "t3", -5) // Only the third owner acknowledges this leg, when it is asked again.
	b.book("b", "t3", 5)
	b.take("a", 3)
	b.tell("t3", "a", "b", 5)
	require.True(t, b.write("c", b.now["c"], bank.Booking{Transfer: "t4", Cents: -1 << 40, Refused: true}))
	b.tell("t4", "c", "a", 1<<40).receipt = bank.Receipt{ID: "t4", Refused: true, Paid: epochText(1)}
	v, err := audit(b.dir, b.load)
	require.NoError(t, err)
	require.True(t, v.OK, "%+v", v)
	require.Equal(t, 4, v.Acknowledged)
	require.Equal(t, 5, v.Moved)
}

// TestAuditOfDamagedJournalsIsAnError shows that a journal which cannot be read is not taken
// for an empty one.
func TestAuditOfDamagedJournalsIsAnError(t *testing.T) {
	b := newBooks(t)
	b.transfer("t1", "a", "b", 10)
	b.rewrite("a", func(text string) string { return strings.Replace(text, `"write"`, `"write`, 1) })
	_, err := audit(b.dir, b.load)
	require.ErrorContains(t, err, journal.Path(b.dir, keyOf("a")))
	_, err = audit(filepath.Join(b.dir, "nowhere"), b.load)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAFrozenNodeMayPassAnAnswerOn shows that an answer of the present owners counts, also
// when it came by way of a node that had been frozen.
func TestAFrozenNodeMayPassAnAnswerOn(t *testing.T) {
	b := newBooks(t)
	b.take("a", 2)
	b.take("b", 2)
	b.frozen("node-1", b.transfer("x", "a", "b", 5))
	v, err := audit(b.dir, b.load)
	require.NoError(t, err)
	require.True(t, v.OK, "%+v", v)
}

// TestReportEndsWithOneObject reads the last line: one JSON object with the fields that
// programs look for, also when the books are wrong.
func TestReportEndsWithOneObject(t *testing.T) {
	for _, ok := range []bool{true, false} {
		var out strings.Builder
		d := &demo{printer: &printer{out: &out}, load: newLoad(1, 10, 200, &nodeProcesses{})}
		d.windows = []window{{string(restartAll), 0, time.Hour}}
		d.load.failed = []failure{{at: time.Second}}
		require.Equal(t, ok, d.report(verdict{Nodes: 7, Accounts: 1000, Acknowledged: 5, OK: ok}))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		var last map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
		for _, key := range []string{"nodes", "accounts", "acknowledged", "lost", "duplicated", "overlapping_epochs", "unavailable_ms_max", "late_acknowledged", "phases", "missed", "ok"} {
			require.Contains(t, last, key)
		}
		require.Equal(t, ok, last["ok"])
		require.Equal(t, !ok, strings.Contains(out.String(), "THE BANK IS WRONG"))
		for _, line := range lines[:len(lines)-1] {
			require.LessOrEqual(t, len(line), columns, line)
		}
	}
}
