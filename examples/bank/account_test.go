// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank_test

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// Accounts on clusters of one node. The first test makes checks that can share a cluster:
// transfers, invalid ones, commands that nobody knows, an account that another owner has taken,
// and a journal that cannot be opened. The other is about an account that is rebuilt.

// branch starts a cluster of one node and opens the accounts on it, with their journals in
// dir.
func branch(t *testing.T, dir string) (*cluster.Node, *bank.Accounts) {
	t.Helper()
	for {
		cfg := cluster.Default()
		cfg.Cluster.Name, cfg.Membership = "bank", membership.Fast().Membership
		cfg.Node.Address = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		node, err := cluster.Start(t.Context(), cluster.WithConfig(cfg), cluster.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			require.ErrorContains(t, err, "in use") // Another program has the port: take another port.
			continue
		}
		t.Cleanup(func() { _ = node.Close() })
		accounts, err := bank.Open(node, dir)
		require.NoError(t, err)
		return node, accounts
	}
}

// cents returns the balance of an account.
func cents(t *testing.T, accounts *bank.Accounts, id string) int64 {
	t.Helper()
	outcome, err := accounts.Read(patience.Context(t), id)
	require.NoError(t, err)
	return outcome.GetCents()
}

// TestAccounts makes the checks that can share a cluster.
func TestAccounts(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	dir := t.TempDir()
	_, accounts := branch(t, dir)
	t.Run("transfers", func(t *testing.T) { checkTransfers(t, accounts) })
	t.Run("invalid transfers", func(t *testing.T) { checkNonsense(t, accounts) })
	t.Run("unknown command", func(t *testing.T) { checkUnknown(t, accounts) })
	t.Run("later owner", func(t *testing.T) { checkReplaced(t, accounts, dir) })
	t.Run("unusable journal", func(t *testing.T) { checkUnusable(t, accounts, dir) })
}

// checkTransfers shows what transfers do to balances: each is booked once, also when it is
// repeated. A transfer that is not covered changes nothing, and stays refused.
func checkTransfers(t *testing.T, accounts *bank.Accounts) {
	t.Helper()
	move := bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300}
	for range 3 {
		receipt, err := accounts.Transfer(patience.Context(t), move)
		require.NoError(t, err)
		require.False(t, receipt.Refused)
		require.NotEmpty(t, receipt.Paid)
		require.NotEmpty(t, receipt.Got)
		require.EqualValues(t, bank.OpeningCents-300, cents(t, accounts, "a"))
		require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "b"))
	}

	tooMuch := bank.Transfer{ID: "t2", From: "a", To: "b", Cents: bank.OpeningCents}
	for range 2 {
		receipt, err := accounts.Transfer(patience.Context(t), tooMuch)
		require.NoError(t, err)
		require.True(t, receipt.Refused)
		require.Empty(t, receipt.Got)
	}
	// With more money the transfer would be covered. It stays refused, since a client may
	// have been told so.
	_, err := accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t3", From: "b", To: "a", Cents: 5000})
	require.NoError(t, err)
	receipt, err := accounts.Transfer(patience.Context(t), tooMuch)
	require.NoError(t, err)
	require.True(t, receipt.Refused)
	require.EqualValues(t, bank.OpeningCents+4700, cents(t, accounts, "a"))

	// The whole balance is covered.
	receipt, err = accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t4", From: "a", To: "b", Cents: bank.OpeningCents + 4700})
	require.NoError(t, err)
	require.False(t, receipt.Refused)
	require.Zero(t, cents(t, accounts, "a"))
}

// checkNonsense shows that an invalid transfer is an error, and that no account changes.
func checkNonsense(t *testing.T, accounts *bank.Accounts) {
	t.Helper()
	for _, transfer := range []bank.Transfer{
		{ID: "t", From: "d", To: "d", Cents: 1},
		{ID: "t", From: "d", To: "e", Cents: 0},
		{ID: "t", From: "d", To: "e", Cents: -1},
		{ID: "", From: "d", To: "e", Cents: 1},
	} {
		_, err := accounts.Transfer(patience.Context(t), transfer)
		require.Error(t, err, "%+v", transfer)
	}
	require.EqualValues(t, bank.OpeningCents, cents(t, accounts, "d"))
	require.EqualValues(t, bank.OpeningCents, cents(t, accounts, "e"))
}

// TestAnAccountIsRebuiltFromItsJournal closes the node, and starts another one with the same
// journals, which forms a new cluster.
func TestAnAccountIsRebuiltFromItsJournal(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	dir := t.TempDir()
	node, accounts := branch(t, dir)
	first, err := accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300})
	require.NoError(t, err)
	require.NoError(t, node.Close())

	again, accounts := branch(t, dir)
	repeated, err := accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300})
	require.NoError(t, err)
	require.EqualValues(t, bank.OpeningCents-300, cents(t, accounts, "a"))
	require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "b"))
	require.NotEqual(t, node.Self(), again.Self())
	require.Greater(t, repeated.Paid, first.Paid, "the later owner has the higher epoch")
}

// checkReplaced claims an account for an owner with a higher epoch: the running account must
// not acknowledge one more transfer.
//
// covers I14.
func checkReplaced(t *testing.T, accounts *bank.Accounts, dir string) {
	t.Helper()
	_, err := accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t1", From: "f", To: "g", Cents: 300})
	require.NoError(t, err)
	somebody, err := journal.Open(dir, "somebody with a higher epoch")
	require.NoError(t, err)
	later := store.Owner{Epoch: epoch.Epoch{Born: math.MaxInt64}, Instance: 1}
	records, err := somebody.Load(patience.Context(t), []store.Claim{{Key: store.Key{Kind: "account", ID: "f"}, Owner: later}})
	require.NoError(t, err)
	require.Equal(t, store.Head{Owner: later, Version: 1}, records[0].Head)

	for range 2 { // First the running account finds the later owner; then it cannot start again.
		_, err = accounts.Transfer(patience.Context(t), bank.Transfer{ID: "t2", From: "f", To: "g", Cents: 1})
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, state.ErrFenced.Error())
	}
	lines, err := journal.Read(dir, store.Key{Kind: "account", ID: "f"})
	require.NoError(t, err)
	former, owner, booked, refused := lines[0].Node, "", map[string]int{}, map[string]int{}
	for _, l := range lines {
		switch {
		case l.Write == nil && l.Counts:
			owner = l.Node
		case l.Write != nil && l.Counts:
			booked[l.Node] += len(l.Write.Events)
		case l.Write != nil:
			refused[l.Node] += len(l.Write.Events)
		}
	}
	require.Equal(t, "somebody with a higher epoch", owner)
	require.Equal(t, map[string]int{former: 1}, booked)
	require.Equal(t, map[string]int{former: 1}, refused)
	require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "g"))
}

// checkUnusable shows that a journal which cannot be opened is an error to the
// caller and not a balance.
func checkUnusable(t *testing.T, accounts *bank.Accounts, dir string) {
	t.Helper()
	// A directory in the place of the file.
	require.NoError(t, os.Mkdir(journal.Path(dir, store.Key{Kind: "account", ID: "h"}), 0o700))
	_, err := accounts.Read(patience.Context(t), "h")
	require.ErrorIs(t, err, sharding.ErrEntityFailed)
	require.ErrorContains(t, err, state.ErrUnanswered.Error())
}

// checkUnknown shows that an account does not answer what it does not understand.
func checkUnknown(t *testing.T, accounts *bank.Accounts) {
	t.Helper()
	require.ErrorIs(t, accounts.Ask(patience.Context(t), "i", &bankpb.Command{}), sharding.ErrEntityFailed)
}
