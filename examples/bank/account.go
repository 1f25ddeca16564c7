// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// OpeningCents is what every account holds before its first transfer.
const OpeningCents = 100_000

// Account is the state of one account: what its bookings have made of it.
type Account struct {
	Change int64           // What was added to the opening balance, in cents.
	Booked map[string]bool // Whether each transfer was refused, by its id.
}

// Booking is one leg of a transfer: what happens to an account, and what is saved of it.
type Booking struct {
	Transfer string `json:"transfer"`
	Cents    int64  `json:"cents"`             // Added to the balance; negative for a debit.
	Refused  bool   `json:"refused,omitempty"` // A debit that the balance did not cover: it changes nothing.
	At       int64  `json:"at"`                // When the account has booked it, Unix nanoseconds.
}

// accountKind returns the kind of the accounts, which save their bookings in a store.
func accountKind(s store.Store) (sharding.Kind[*bankpb.Command], error) {
	cfg := state.Default()
	cfg.SnapshotEvery = math.MaxInt // Auditors want to see each booking.
	cfg.Limit = 5 * time.Second     // Below the patience of clients, who are then told why.
	keeper, err := state.NewKeeper(s, cfg)
	return sharding.Kind[*bankpb.Command]{
		Name: "account", // Their records have it too.
		New:  state.Events(keeper, state.JSON[Account](), state.JSON[Booking](), apply, receive),
	}, err
}

// apply changes an account by one booking, when it happens and whenever the account is loaded.
func apply(a *Account, b *Booking) {
	if a.Booked == nil {
		a.Booked = map[string]bool{}
	}
	a.Booked[b.Transfer] = b.Refused
	if !b.Refused {
		a.Change += b.Cents
	}
}

// receive carries out a command. Its reply leaves when the booking is saved. An account books each
// transfer once.
func receive(c *state.Context[Account], emit func(*Booking), cmd *bankpb.Command) error {
	switch kind := cmd.GetKind().(type) {
	case *bankpb.Command_Book:
		b := Booking{Transfer: kind.Book.GetTransfer(), Cents: kind.Book.GetCents(), At: time.Now().UnixNano()}
		if b.Transfer == "" {
			return errors.New("bank: a transfer needs an id")
		}
		if _, done := c.State().Booked[b.Transfer]; !done {
			b.Refused = balance(c)+b.Cents < 0
			emit(&b)
		}
		return c.Reply(&bankpb.Outcome{Cents: balance(c), Refused: c.State().Booked[b.Transfer], Epoch: c.Epoch().String()})
	case *bankpb.Command_Read:
		return c.Reply(&bankpb.Outcome{Cents: balance(c), Epoch: c.Epoch().String()})
	default:
		return fmt.Errorf("bank: command %T is not known", kind)
	}
}

// balance returns what an account holds, in cents.
func balance(c *state.Context[Account]) int64 { return OpeningCents + c.State().Change }
