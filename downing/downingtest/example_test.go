// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/gossip"
)

// Your own provider passes the suite in a test: this is the body of func
// TestContract(t *testing.T).
func ExampleTestProvider() {
	t := new(testing.T) // The parameter of the test.
	downingtest.TestProvider(t, func(testing.TB) downing.Provider { return downing.KeepMajority{} })
}

// Five voters fall into two sides, each of which decides by itself.
func ExampleSplitView() {
	members := downingtest.Members(5)
	voters := gossip.Base{downingtest.IDs(members)}
	for _, side := range []func(gossip.NodeID) bool{
		func(id gossip.NodeID) bool { return id.UID <= members[1].Node.UID },
		func(id gossip.NodeID) bool { return id.UID > members[1].Node.UID },
	} {
		view := downingtest.SplitView(members, side, voters)
		decision, err := downing.KeepMajority{}.Decide(context.Background(), view)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(view.Side().Members()), "of 5, survives:", downingtest.Survives(view, decision))
	}
	// Output:
	// 2 of 5, survives: false
	// 3 of 5, survives: true
}
