// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/sharding"
)

// OpeningCents is what every account holds before its first transfer.
const OpeningCents = 100_000

// Account is one account. Its owner runs one message at a time, so it needs no
// lock.
type Account struct {
	dir     string // Directory of all journals.
	journal *journal.Journal
	cents   int64
	booked  map[string]bool // Whether each transfer was refused, by its id.
}

var (
	_ sharding.Entity[*bankpb.Command] = (*Account)(nil)
	_ sharding.Starter                 = (*Account)(nil)
	_ sharding.Stopper                 = (*Account)(nil)
)

// NewAccount returns an account whose journal lies under dir.
func NewAccount(dir string) *Account { return &Account{dir: dir} }

// Start opens the journal as its new owner and rebuilds the account from it.
func (a *Account) Start(c *sharding.Context) error {
	j, records, err := journal.Open(filepath.Join(a.dir, c.ID()), c.Epoch().String(), c.Node().String())
	if err != nil {
		return err
	}
	a.journal, a.cents, a.booked = j, OpeningCents, make(map[string]bool, len(records))
	for _, r := range records {
		a.apply(r)
	}
	return nil
}

// Stop closes the journal. While no other owner can exist, the journal is synced to disk
// before the next owner opens it. An owner that was replaced has nothing to save: its
// successor has decided which of its records count. It closes its file and touches
// nothing else.
func (a *Account) Stop(c *sharding.Context) {
	if a.journal == nil {
		return
	}
	if c.StopReason().Sole() {
		_ = a.journal.Sync() // Acknowledged records are written already; a disk that fails here fails the next owner.
	}
	_ = a.journal.Close() // Nothing is buffered, so closing loses nothing.
}

// Receive carries out a command.
func (a *Account) Receive(c *sharding.Context, cmd *bankpb.Command) error {
	switch kind := cmd.GetKind().(type) {
	case *bankpb.Command_Book:
		if err := a.book(kind.Book); err != nil {
			return err
		}
		return c.Reply(a.outcome(c, a.booked[kind.Book.GetTransfer()]))
	case *bankpb.Command_Read:
		return c.Reply(a.outcome(c, false))
	default:
		return fmt.Errorf("bank: command %T is not known", kind)
	}
}

// book writes one leg to the journal, unless it was booked before. An error leaves the
// account unchanged or out of date; either way the entity stops with it.
func (a *Account) book(b *bankpb.Book) error {
	if b.GetTransfer() == "" {
		return errors.New("bank: a transfer needs an id")
	}
	if _, done := a.booked[b.GetTransfer()]; done {
		return nil
	}
	r := journal.Record{Transfer: b.GetTransfer(), Cents: b.GetCents(), Refused: a.cents+b.GetCents() < 0}
	if err := a.journal.Append(r); err != nil {
		return err
	}
	a.apply(r)
	return nil
}

// apply changes the account by one record.
func (a *Account) apply(r journal.Record) {
	a.booked[r.Transfer] = r.Refused
	if !r.Refused {
		a.cents += r.Cents
	}
}

// outcome describes the account to a caller.
func (a *Account) outcome(c *sharding.Context, refused bool) *bankpb.Outcome {
	return &bankpb.Outcome{Cents: a.cents, Refused: refused, Epoch: c.Epoch().String()}
}
