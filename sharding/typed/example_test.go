// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/typed"
	bankv1 "github.com/quorate/quorate/sharding/typed/internal/bank/v1"
	"github.com/quorate/quorate/sharding/typed/internal/bank/v1/bankv1quorate"
	"github.com/quorate/quorate/transport/memory"
)

// vault is an entity of the generated service; it has what it does not implement from the type
// that it embeds.
type vault struct {
	bankv1quorate.UnimplementedAccountsEntity[*sharding.Context]

	amount int64
}

func (v *vault) Deposit(_ *sharding.Context, m *bankv1.DepositRequest) (*bankv1.DepositResponse, error) {
	if m.GetAmount() <= 0 {
		return nil, rpc.Refuse("bad-amount", "%d is not above zero", m.GetAmount())
	}
	v.amount += m.GetAmount()
	return &bankv1.DepositResponse{Balance: v.amount}, nil
}

// A kind of typed entities, and the client that the generator has made for them.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "bank", "127.0.0.1:7946", []string{"127.0.0.1:7946"}
	node, err := membership.Start(ctx, cfg, membership.WithLogger(quiet), membership.WithTransport(memory.NewNetwork().Transport))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = node.Close() }()
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	if err != nil {
		fmt.Println(err)
		return
	}

	region, err := sharding.Start(system, typed.Kind("vaults", bankv1quorate.AccountsService[*sharding.Context](),
		func(*sharding.Context) bankv1quorate.AccountsEntity[*sharding.Context] { return new(vault) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	vaults := bankv1quorate.NewAccounts(typed.Caller(region))
	for _, amount := range []int64{100, 20, -1} {
		got, err := vaults.Deposit(ctx, "acct-42", &bankv1.DepositRequest{Amount: amount})
		fmt.Println(got.GetBalance(), err)
	}
	// Output:
	// 100 <nil>
	// 120 <nil>
	// 0 refused: bad-amount: -1 is not above zero
}
