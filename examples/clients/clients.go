// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients has the program of docs/clients.md: a node with typed entities, a typed client in
// it, and the same client in a program that is no member.
package clients

import (
	"context"
	"fmt"
	"io"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/clients/bank"
	"github.com/quorate/quorate/examples/clients/bank/bankquorate"
	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/typed"
)

type account struct{ cents int64 }

func (a *account) Deposit(_ *sharding.Context, m *bank.DepositRequest) (*bank.Balance, error) {
	if m.GetCents() <= 0 {
		return nil, rpc.Refuse("bad-amount", "%d is not above zero", m.GetCents())
	}
	a.cents += m.GetCents()
	return &bank.Balance{Cents: a.cents}, nil
}

func (a *account) Note(c *sharding.Context, m *bank.NoteRequest) error {
	fmt.Println(c.ID(), "notes", m.GetText())
	return nil
}

// Host runs the accounts on a node, and returns the client of that node.
func Host(node *cluster.Node) (*bankquorate.Accounts, error) {
	region, err := sharding.Start(node, typed.Kind("accounts", bankquorate.AccountsService[*sharding.Context](),
		func(*sharding.Context) bankquorate.AccountsEntity[*sharding.Context] { return new(account) }))
	if err != nil {
		return nil, err
	}
	return bankquorate.NewAccounts(typed.Caller(region)), nil
}

// Shop is a program that is no member.
func Shop(ctx context.Context, out io.Writer, gateways ...string) error {
	cfg := client.Default()
	cfg.Addresses = gateways
	c, err := client.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // It returns nil.
	accounts := bankquorate.NewAccounts(c.Caller("accounts"))
	balance, err := accounts.Deposit(ctx, "acct-42", &bank.DepositRequest{Cents: 500})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "acct-42 has", balance.GetCents())
	return err
}
