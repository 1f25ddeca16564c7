// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bank

import (
	"context"

	"github.com/quorate/quorate/examples/bank/bankpb"
	"github.com/quorate/quorate/sharding"
)

// Ask asks an account anything.
func (a *Accounts) Ask(ctx context.Context, account string, cmd *bankpb.Command) error {
	_, err := sharding.Ask[*bankpb.Outcome](ctx, a.region, account, cmd)
	return err
}
