// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// branch starts a cluster of one node and opens the accounts on it. What the
// node wrote is in dir.
func branch(t *testing.T, dir string) (*cluster.Node, *bank.Accounts) {
	t.Helper()
	for {
		cfg := cluster.Default()
		cfg.Cluster.Name, cfg.Membership = "bank", membership.Fast().Membership
		cfg.Node.Address = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		node, err := cluster.Start(t.Context(), cluster.WithConfig(cfg), cluster.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			require.ErrorContains(t, err, "in use") // Somebody else's port: take another.
			continue
		}
		t.Cleanup(func() { _ = node.Close() })
		accounts, err := bank.Open(node, dir)
		require.NoError(t, err)
		return node, accounts
	}
}

// within bounds a test's questions.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// cents returns the balance of an account.
func cents(t *testing.T, accounts *bank.Accounts, id string) int64 {
	t.Helper()
	outcome, err := accounts.Read(within(t), id)
	require.NoError(t, err)
	return outcome.GetCents()
}

// TestAccounts runs what needs no cluster of its own.
func TestAccounts(t *testing.T) {
	t.Parallel() // A cluster mostly waits.
	dir := t.TempDir()
	_, accounts := branch(t, dir)
	t.Run("transfers", func(t *testing.T) { checkTransfers(t, accounts) })
	t.Run("nonsense", func(t *testing.T) { checkNonsense(t, accounts) })
	t.Run("sealed journal", func(t *testing.T) { checkSealed(t, accounts, dir) })
	t.Run("unusable journal", func(t *testing.T) { checkUnusable(t, accounts, dir) })
}

// checkTransfers shows what transfers do to balances: each is booked once, also
// when it is repeated, and one that is not covered changes nothing, now and
// whenever it is repeated.
func checkTransfers(t *testing.T, accounts *bank.Accounts) {
	t.Helper()
	move := bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300}
	for range 3 {
		receipt, err := accounts.Transfer(within(t), move)
		require.NoError(t, err)
		require.False(t, receipt.Refused)
		require.NotEmpty(t, receipt.Paid)
		require.NotEmpty(t, receipt.Got)
		require.EqualValues(t, bank.OpeningCents-300, cents(t, accounts, "a"))
		require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "b"))
	}

	tooMuch := bank.Transfer{ID: "t2", From: "a", To: "b", Cents: bank.OpeningCents}
	for range 2 {
		receipt, err := accounts.Transfer(within(t), tooMuch)
		require.NoError(t, err)
		require.True(t, receipt.Refused)
		require.Empty(t, receipt.Got)
	}
	// With more money the transfer would be covered. It was refused before, and
	// a client that was told so must not be deceived.
	_, err := accounts.Transfer(within(t), bank.Transfer{ID: "t3", From: "b", To: "a", Cents: 5000})
	require.NoError(t, err)
	receipt, err := accounts.Transfer(within(t), tooMuch)
	require.NoError(t, err)
	require.True(t, receipt.Refused)
	require.EqualValues(t, bank.OpeningCents+4700, cents(t, accounts, "a"))

	// The whole balance is covered.
	receipt, err = accounts.Transfer(within(t), bank.Transfer{ID: "t4", From: "a", To: "b", Cents: bank.OpeningCents + 4700})
	require.NoError(t, err)
	require.False(t, receipt.Refused)
	require.Zero(t, cents(t, accounts, "a"))
}

// checkNonsense shows what is not even tried.
func checkNonsense(t *testing.T, accounts *bank.Accounts) {
	t.Helper()
	for _, transfer := range []bank.Transfer{
		{ID: "t", From: "d", To: "d", Cents: 1},
		{ID: "t", From: "d", To: "e", Cents: 0},
		{ID: "t", From: "d", To: "e", Cents: -1},
		{ID: "", From: "d", To: "e", Cents: 1},
	} {
		_, err := accounts.Transfer(within(t), transfer)
		require.Error(t, err, "%+v", transfer)
	}
	require.EqualValues(t, bank.OpeningCents, cents(t, accounts, "d"))
	require.EqualValues(t, bank.OpeningCents, cents(t, accounts, "e"))
}

// TestAnAccountIsRebuiltFromItsJournal closes the node and starts another one,
// of another cluster life, with the same journals.
func TestAnAccountIsRebuiltFromItsJournal(t *testing.T) {
	t.Parallel() // A cluster mostly waits.
	dir := t.TempDir()
	node, accounts := branch(t, dir)
	first, err := accounts.Transfer(within(t), bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300})
	require.NoError(t, err)
	require.NoError(t, node.Close())

	again, accounts := branch(t, dir)
	repeated, err := accounts.Transfer(within(t), bank.Transfer{ID: "t1", From: "a", To: "b", Cents: 300})
	require.NoError(t, err)
	require.EqualValues(t, bank.OpeningCents-300, cents(t, accounts, "a"))
	require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "b"))
	require.NotEqual(t, node.Self(), again.Self())
	require.Greater(t, repeated.Paid, first.Paid, "the later owner has the higher epoch")
}

// checkSealed puts the seal of a higher epoch into a journal, as a new owner
// would: the running account must not acknowledge one more transfer.
//
// covers I14.
func checkSealed(t *testing.T, accounts *bank.Accounts, dir string) {
	t.Helper()
	_, err := accounts.Transfer(within(t), bank.Transfer{ID: "t1", From: "f", To: "g", Cents: 300})
	require.NoError(t, err)
	next, records, err := journal.Open(filepath.Join(dir, "f"), "~", "somebody with a higher epoch")
	require.NoError(t, err)
	defer func() { _ = next.Close() }()
	require.Len(t, records, 1)

	for range 2 { // At first it finds the seal; then it cannot even start.
		_, err = accounts.Transfer(within(t), bank.Transfer{ID: "t2", From: "f", To: "g", Cents: 1})
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
	}
	chain, err := journal.ReadChain(filepath.Join(dir, "f"))
	require.NoError(t, err)
	for _, s := range chain {
		for _, r := range s.Records {
			require.Equal(t, "t1", r.Transfer)
		}
	}
	require.EqualValues(t, bank.OpeningCents+300, cents(t, accounts, "g"))
}

// checkUnusable shows that a journal which cannot be opened is an error to the
// caller and not a balance.
func checkUnusable(t *testing.T, accounts *bank.Accounts, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "h"), nil, 0o600)) // A file in the place of the directory.
	_, err := accounts.Read(within(t), "h")
	require.ErrorIs(t, err, sharding.ErrEntityFailed)
}

// TestUnknownCommandsAreErrors shows that an account does not answer what it
// does not understand.
func TestUnknownCommandsAreErrors(t *testing.T) {
	require.Error(t, bank.NewAccount(t.TempDir()).Receive(nil, &bankpb.Command{}))
}
