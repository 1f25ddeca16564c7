// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
)

// Kinds of outcomes, by what the error of a request says.
const (
	done         = "done"
	notDelivered = "not delivered"
	unknown      = "unknown outcome"
)

// outcomeOf returns the kind of an outcome, or the error if it is of no kind.
func outcomeOf(err error) string {
	if err == nil {
		return done
	}
	for _, outcome := range []string{notDelivered, unknown} {
		if strings.Contains(err.Error(), outcome) {
			return outcome
		}
	}
	return err.Error()
}

// tally sends one transfer from each account over a node, all at once and once each. The
// function that it returns waits for the outcomes and counts them by their words.
func (c *city) tally(name string, over *node, ids []string, within time.Duration) func() map[string]int {
	faults := make([]error, len(ids))
	var sending sync.WaitGroup
	for i, id := range ids {
		// Owned by the caller, who waits for it; ends when the node answers.
		sending.Go(func() {
			t := bank.Transfer{ID: name + "-" + id, From: id, To: "elsewhere", Cents: 7}
			faults[i] = over.do(c.t.Context(), http.MethodPost, "/transfers?within="+within.String(), t, new(bank.Receipt))
		})
	}
	return func() map[string]int {
		sending.Wait()
		outcomes := map[string]int{}
		for _, fault := range faults {
			outcomes[outcomeOf(fault)]++
		}
		return outcomes
	}
}

// TestOutcomesAfterAKillByKind kills a node that stands still with requests in its
// connections. The outcome of these requests is unknown. Later ones, while the node is
// still a member but does not answer, never leave the node that is asked: they are not
// delivered, and are in no journal when the accounts have new owners.
//
// covers F1, I20.
func TestOutcomesAfterAKillByKind(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	c := newCity(t)
	nodes := c.settle(3)
	ids := accounts(60)
	c.readAll(ids, nodes...)
	asker, victim := nodes[0], nodes[2]
	own := c.ownedBy(victim, ids)
	require.NotEmpty(t, own, "the victim hosts nothing")

	victim.freeze()
	written := c.tally("written", asker, own, 3*time.Second)
	const frozen = time.Second // Long enough to write the requests, too short to remove the node.
	<-time.After(frozen)       //quorate:realtime So long it stands still.
	victim.signal(syscall.SIGKILL)
	require.Equal(t, -1, victim.status())
	c.await(func(ctx context.Context) error { // Until the asker has heard that its connection was reset.
		err := asker.get(ctx, "/accounts/"+own[0]+"?within=50ms", new(balance))
		if outcomeOf(err) != notDelivered {
			return fmt.Errorf("the outcome is %q", outcomeOf(err))
		}
		return nil
	})
	for i := range 3 {
		outcomes := c.tally(fmt.Sprintf("late%d", i), asker, own, 500*time.Millisecond)()
		require.Equal(t, map[string]int{notDelivered: len(own)}, outcomes)
	}
	require.Equal(t, map[string]int{unknown: len(own)}, written())

	c.readAll(own, nodes[:2]...)
	for _, id := range own {
		require.NotEqual(t, victim.Node, c.owner(id))
		for _, s := range c.owners(id) {
			for _, b := range s.Booked {
				require.NotContains(t, b.Transfer, "late", "nobody carries out what was not delivered")
			}
		}
	}
}
