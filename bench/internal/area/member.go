// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/sharding"
)

// residents is what a node reports about the entities that live on it.
type residents struct {
	Stays  []stay     `json:"stays"`
	Totals rig.Totals `json:"totals"`
}

// The requests that a member answers.
const (
	requestStays  = "stays"  // With its residents.
	requestHosted = "hosted" // With the number of shards that it hosts.
	requestLeave  = "leave"  // With its residents, when it has left the cluster in order.
)

// serveMember runs a node that hosts residents.
func serveMember(ctx context.Context, s rig.Spec, k *rig.Link) error {
	n, err := startNode(ctx, s.Seeds, nil)
	if err != nil {
		return err
	}
	defer dropNode(n)
	lives := newRegister()
	if _, err := sharding.Start(n, lives.kind(s.Shards)); err != nil {
		return err
	}
	return k.Host(n.Self().Address.String(), rig.Answers{
		requestHosted: func() (any, error) { return n.Sharding().Kinds()[0].Hosted, nil },
		requestStays:  func() (any, error) { return residents{lives.stays(), lives.found.Totals()}, nil },
		requestLeave: func() (any, error) {
			err := n.Leave(ctx)
			return residents{lives.stays(), lives.found.Totals()}, err
		},
	})
}
