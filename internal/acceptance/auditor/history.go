// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package auditor

import (
	"encoding/json"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/sharding/state/store"
)

// AccountOwner is one owner of an account, that of one epoch, with what it has booked.
type AccountOwner struct {
	Epoch  string
	Node   string         // The owner.
	Began  int64          // Unix nanoseconds.
	Booked []bank.Booking // Those that count.
	Late   []bank.Booking // Written when another owner had the account: they do not count.
}

// AccountHistory is what the journal of an account holds: its owners, one after the other.
type AccountHistory struct {
	Owners  []AccountOwner // The earliest first.
	Refused []string       // The epochs of those who came when somebody with a higher one had the account.
}

// Owner returns the node that has the account.
func (b AccountHistory) Owner() string {
	if len(b.Owners) == 0 {
		return ""
	}
	return b.Owners[len(b.Owners)-1].Node
}

// ReadHistory returns the history of an account, of which the journals lie under dir. The error is one of
// package os if nobody has asked that account. Accounts may be at work meanwhile.
func ReadHistory(dir, account string) (AccountHistory, error) {
	entries, err := journal.Read(dir, record(account))
	if err != nil {
		return AccountHistory{}, err
	}
	var b AccountHistory
	for _, e := range entries {
		switch {
		case e.Write != nil:
			if err := b.add(e); err != nil {
				return AccountHistory{}, err
			}
		case !e.Counts:
			b.Refused = append(b.Refused, e.Claim.Owner.Epoch.String())
		case b.of(e.Claim.Owner) == nil: // An instance that is started anew in the same epoch is no new owner.
			b.Owners = append(b.Owners, AccountOwner{Epoch: e.Claim.Owner.Epoch.String(), Node: e.Node, Began: e.At})
		}
	}
	return b, nil
}

// add adds what an owner has written. What it has written before and repeats is nothing new.
func (b *AccountHistory) add(e journal.Entry) error {
	t := b.of(e.Write.Owner)
	if t == nil || !e.Counts && t == &b.Owners[len(b.Owners)-1] {
		return nil
	}
	for _, v := range e.Write.Events {
		var booking bank.Booking
		if err := json.Unmarshal(v.Bytes, &booking); err != nil {
			return err
		}
		if e.Counts {
			t.Booked = append(t.Booked, booking)
		} else {
			t.Late = append(t.Late, booking)
		}
	}
	return nil
}

// of returns the account owner that an owner of the store is; nil if the journal has none.
func (b *AccountHistory) of(owner store.Owner) *AccountOwner {
	for i := range b.Owners {
		if b.Owners[i].Epoch == owner.Epoch.String() {
			return &b.Owners[i]
		}
	}
	return nil
}

// ReadAccounts returns the names of all accounts that have journals under dir, in no order.
func ReadAccounts(dir string) ([]string, error) {
	keys, err := journal.Keys(dir)
	accounts := make([]string, len(keys))
	for i, k := range keys {
		accounts[i] = k.ID
	}
	return accounts, err
}

// record returns the key of an account.
func record(account string) store.Key { return store.Key{Kind: "account", ID: account} }
