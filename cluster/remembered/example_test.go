// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembered_test

import (
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/remembered"
	"github.com/quorate/quorate/sharding"
)

// The entities of a kind are remembered in the replicated data of the node that runs it.
func Example() {
	start := func(node *cluster.Node) (*sharding.Region[*wrapperspb.StringValue], error) {
		ids, err := remembered.In(node, remembered.Default())
		if err != nil {
			return nil, err
		}
		return sharding.Start(node, sharding.Kind[*wrapperspb.StringValue]{
			Name: "beacon", Remember: ids,
			New: func(*sharding.Context) sharding.Entity[*wrapperspb.StringValue] { return beacon{} },
		})
	}
	_ = start
	// Output:
}
