// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"

	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// hostRole is the role of nodes that host, where not all do.
const hostRole = "host"

// mailboxSize is larger than the number of messages that a sender may have under way to
// one shard, so that a sender that floods one entity is slowed by the window of the shard
// and no message is refused at the entity. It is the one setting that differs from the
// defaults, and only where messages are told.
const mailboxSize = 1 << 14

// forTell changes the settings of nodes whose entities are flooded.
func forTell(roles ...string) func(*cluster.Config) {
	return func(c *cluster.Config) { c.Sharding.MailboxSize, c.Node.Roles = mailboxSize, roles }
}

// proxy joins the cluster of a host, and hosts nothing itself.
func proxy(ctx context.Context, s process.Spec, host string) (*sharding.Region[*message.Message], *cluster.Node, error) {
	node, err := rig.StartObserved(ctx, s, []string{host}, forTell())
	if err != nil {
		return nil, nil, err
	}
	region, err := sharding.Start(node, message.Probes(new(sequence.Tally), s.Senders+1, s.Size, hostRole))
	if err != nil {
		return nil, nil, errors.Join(err, node.Close())
	}
	return region, node, nil
}

// serveHost hosts the entities of [proxy].
func serveHost(ctx context.Context, s process.Spec, k *process.Link) error {
	node, err := rig.StartObserved(ctx, s, nil, forTell(hostRole))
	if err != nil {
		return err
	}
	var found sequence.Tally
	if _, err := sharding.Start(node, message.Probes(&found, s.Senders+1, s.Size, hostRole)); err != nil {
		return errors.Join(err, node.Close())
	}
	if err := k.Send(process.Hello{Address: node.Self().Address.String()}); err != nil {
		return errors.Join(err, node.Close())
	}
	return errors.Join(measure.NewStopwatch(&found, measure.CPUTime).Serve(k), node.Membership().Close())
}
