// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bootstraptest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/discovery/bootstrap/bootstraptest"
)

// later forms a cluster by the built-in rule, but none of the service "batch".
type later struct{}

func (later) Decide(_ context.Context, o bootstrap.Observations) (bootstrap.Decision, error) {
	d := bootstrap.LowestAddress{}.DecideNow(o)
	if d.Action == bootstrap.Form && o.Service == "batch" {
		return bootstrap.Decision{Reason: "the cluster for batches is formed by hand"}, nil
	}
	return d, nil
}

func Example() {
	// In a test file:
	_ = func(t *testing.T) {
		bootstraptest.TestJoinDecider(t, func(testing.TB) bootstrap.JoinDecider { return later{} })
	}
	self := discovery.Target{Host: "10.0.0.1", Port: 7946}
	d, err := later{}.Decide(context.Background(), bootstrap.Observations{
		Service: "batch", Self: self, Required: 1, Points: []bootstrap.Observed{{Point: self}},
	})
	fmt.Println(d.Action, err)
	// Output: probe <nil>
}
