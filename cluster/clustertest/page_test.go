// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
)

// The tests on the page about testing, as they stand there, and the entity that they
// test.

// teller is an account: it adds up what it is sent, and mails its balance after ten minutes.
type teller struct {
	cents int64
	mails *sharding.Region[*wrapperspb.StringValue] // Nil: it mails nothing.
}

// Receive books an amount, and answers with the balance.
func (a *teller) Receive(c *sharding.Context, cents *wrapperspb.Int64Value) error {
	a.cents += cents.GetValue()
	if a.mails != nil {
		c.After("statement", 10*time.Minute, func(c *sharding.Context) error {
			return a.mails.Tell(c.Context(), c.ID(), wrapperspb.String(fmt.Sprintf("balance: %d", a.cents)))
		})
	}
	return c.Reply(wrapperspb.Int64(a.cents))
}

// accountWith is the kind of accounts that mail.
func accountWith(mails *sharding.Region[*wrapperspb.StringValue]) sharding.Kind[*wrapperspb.Int64Value] {
	return sharding.Kind[*wrapperspb.Int64Value]{
		Name: "account", PassivateAfter: time.Minute,
		New: func(*sharding.Context) sharding.Entity[*wrapperspb.Int64Value] { return &teller{mails: mails} },
	}
}

// account is the kind of accounts that do not.
var account = accountWith(nil)

// What stands on the page is in this file, word for word, and so it compiles, and holds.
func TestTheTestsOfThePageAreRun(t *testing.T) {
	text := func(name string) string {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		return strings.ReplaceAll(string(b), "\r\n", "\n")
	}
	file, blocks := text("page_test.go"), strings.Split(text("../../docs/testing.md"), "\n```go\n")[1:]
	require.Len(t, blocks, 4)
	for _, block := range blocks {
		code, _, ends := strings.Cut(block, "```")
		require.True(t, ends)
		require.Contains(t, file, "\n"+code)
	}
}

func TestAccountsOutliveTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3)
		accounts := clustertest.StartKind(c, account)
		c.Kill(accounts.Home("acct-42"))
		_, err := sharding.Ask[*wrapperspb.Int64Value](t.Context(), accounts.Any(), "acct-42", wrapperspb.Int64(100))
		require.NoError(t, err)
	})
}

func TestThePartThatIsCutOffStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 5)
		few, many := c.Nodes()[:2], c.Nodes()[2:]
		c.Cut(few, many)
		c.Await("the few host nothing", func() error {
			for _, n := range few {
				if n.Membership().Standing().Held() {
					return fmt.Errorf("%s has standing", n.Address())
				}
			}
			return nil
		})
		c.AwaitConverged(many...)
	})
}

func TestBackendsHostAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 3, clustertest.WithConfig("sharding: {passivate-after: 10m}"))
		kind := account
		kind.Role = "backend"
		accounts := clustertest.StartKind(c, kind)
		backend := c.Add(clustertest.WithRoles("backend"))
		require.Same(t, backend, accounts.Home("acct-42"))
		c.Add(clustertest.WithRoles("backend"))
		c.AwaitConverged()
		c.Leave(backend)
		require.NotSame(t, backend, accounts.Home("acct-42"))
	})
}

func TestAnAccountSendsItsStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 1)
		mails := clustertest.Record(c, sharding.Kind[*wrapperspb.StringValue]{Name: "mail"}, nil)
		e := clustertest.NewEntity(c, accountWith(mails.Any()), "acct-42")

		balance, err := clustertest.Ask[*wrapperspb.Int64Value](e, wrapperspb.Int64(100))
		require.NoError(t, err)
		require.EqualValues(t, 100, balance.GetValue())
		c.Advance(10 * time.Minute) // The account has set a timer for its statement.
		require.Equal(t, "balance: 100", mails.Messages()[0].Message.GetValue())

		c.Advance(2 * time.Minute)
		_, lives := e.State()
		require.False(t, lives) // It is passivated.
	})
}
