// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/sharding"
)

// residents is what a node reports about the entities that live on it.
type residents struct {
	Stays  []stay          `json:"stays"`
	Totals sequence.Totals `json:"totals"`
}

// The requests that a member answers.
const (
	requestStays  = "stays"  // With its residents.
	requestHosted = "hosted" // With the number of shards that it hosts.
	requestLeave  = "leave"  // With its residents, when it has left the cluster in order.
)

// serveMember runs a node that hosts residents.
func serveMember(ctx context.Context, s process.Spec, k *process.Link) error {
	node, err := rig.Start(ctx, s.Seeds, nil)
	if err != nil {
		return err
	}
	lives := newRegister()
	if _, err := sharding.Start(node, lives.kind(s.Shards)); err != nil {
		return errors.Join(err, node.Close())
	}
	if err := k.Send(process.Hello{Address: node.Self().Address.String()}); err != nil {
		return errors.Join(err, node.Close())
	}
	err = k.Serve(func(request string) (any, error) {
		var err error
		switch request {
		case requestHosted:
			return node.Sharding().Kinds()[0].Hosted, nil
		case requestLeave:
			err = node.Leave(ctx)
		case requestStays:
		default:
			err = fmt.Errorf("bench: request %q is not known", request)
		}
		return residents{lives.stays(), lives.found.Totals()}, err
	})
	return errors.Join(err, node.Membership().Close())
}
