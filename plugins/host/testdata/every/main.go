// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command every is a plugin for the policy that its argument names, with a strategy that is
// built in, for tests of all policies.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/sdk"
)

type none struct{}

// place is a discovery that knows one contact point.
type place struct{}

// Lookup answers with the contact point.
func (place) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	t, err := discovery.ParseTarget("10.0.0.1:7946")
	return discovery.Targets{List: []discovery.Target{t}, Reason: "there is no other"}, err
}

func main() {
	all := map[plugins.Policy]sdk.Strategy{
		plugins.Downing: sdk.Downing(func(none) (downing.Provider, error) { return downing.KeepMajority{}, nil }),
		plugins.Allocation: sdk.Allocation(func(none) (allocation.Strategy, error) {
			return allocation.NewLeastShard(allocation.Default().LeastShard)
		}),
		plugins.FailureDetector: sdk.FailureDetector(func(none) (fd.Factory, error) { return fd.NewFactory(fd.Default()) }),
		plugins.JoinDecider:     sdk.JoinDecider(func(none) (bootstrap.JoinDecider, error) { return bootstrap.LowestAddress{}, nil }),
		plugins.Discovery:       sdk.Discovery(func(none) (discovery.Discovery, error) { return place{}, nil }),
	}
	s, ok := all[plugins.Policy(os.Args[1])]
	if !ok {
		fmt.Fprintln(os.Stderr, "unknown policy", os.Args[1])
		os.Exit(1)
	}
	sdk.Serve(s, sdk.WithName("every"), sdk.WithVersion("1.0.0"))
}
