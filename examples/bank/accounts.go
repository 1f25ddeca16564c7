// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/sharding"
)

// Accounts reaches the accounts from one node. It is safe for concurrent use.
type Accounts struct {
	region *sharding.Region[*bankpb.Command]
}

// Transfer is money on its way from one account to another.
type Transfer struct {
	ID    string `json:"id"`
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// Receipt says how a transfer ended.
type Receipt struct {
	ID      string `json:"id"`
	Refused bool   `json:"refused"` // The paying account did not cover it; nothing was moved.
	Paid    string `json:"paid"`    // Epoch in which the paying leg was acknowledged.
	Got     string `json:"got"`     // Epoch in which the receiving leg was acknowledged; empty when refused.

	// PaidAfter is how long the paying account took, in nanoseconds; the receiving
	// account is asked after that.
	PaidAfter time.Duration `json:"paid_after"`
}

// Open starts the accounts on a node. The journals lie under dir.
func Open(host sharding.Host, dir string) (*Accounts, error) {
	journals, err := journal.Open(dir, host.Sharding().Node().Self().String())
	if err != nil {
		return nil, err
	}
	accounts, err := accountKind(journals)
	if err != nil {
		return nil, err
	}
	region, err := sharding.Start(host, accounts)
	if err != nil {
		return nil, err
	}
	return &Accounts{region: region}, nil
}

// Transfer moves money. It may be repeated with the same id until it answers
// without an error: each leg is booked once.
func (a *Accounts) Transfer(ctx context.Context, t Transfer) (Receipt, error) {
	if t.Cents <= 0 || t.From == t.To {
		return Receipt{}, fmt.Errorf("bank: transfer %q moves %d cents from %q to %q", t.ID, t.Cents, t.From, t.To)
	}
	at := time.Now()
	paid, err := a.book(ctx, t.From, t.ID, -t.Cents)
	receipt := Receipt{ID: t.ID, Refused: paid.GetRefused(), Paid: paid.GetEpoch(), PaidAfter: time.Since(at)}
	if err != nil || receipt.Refused {
		return receipt, err
	}
	got, err := a.book(ctx, t.To, t.ID, t.Cents)
	receipt.Got = got.GetEpoch()
	return receipt, err
}

// Read returns the balance of an account in cents.
func (a *Accounts) Read(ctx context.Context, account string) (*bankpb.Outcome, error) {
	return sharding.Ask[*bankpb.Outcome](ctx, a.region, account,
		&bankpb.Command{Kind: &bankpb.Command_Read{Read: &bankpb.Read{}}})
}

// book asks an account to book one leg.
func (a *Accounts) book(ctx context.Context, account, transfer string, cents int64) (*bankpb.Outcome, error) {
	return sharding.Ask[*bankpb.Outcome](ctx, a.region, account,
		&bankpb.Command{Kind: &bankpb.Command_Book{Book: &bankpb.Book{Transfer: transfer, Cents: cents}}})
}
