// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"errors"
	"os"

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

// over has nodes send their messages as an experiment says, besides another change.
func over(s process.Spec, change func(*cluster.Config)) func(*cluster.Config) {
	return func(c *cluster.Config) {
		change(c)
		c.Transport.Lane = cmp.Or(s.Lane, c.Transport.Lane)
		if s.Keys != "" {
			c.Transport.TLS = rig.Certificates(s.Keys)
		}
	}
}

// pair starts a host in another process, and its proxy here. The function ends both.
func pair(ctx context.Context, s process.Spec, k *process.Link) (region *sharding.Region[*message.Message], node *cluster.Node, host *process.Process, end func(), err error) {
	if s.Secure {
		if s.Keys, err = os.MkdirTemp("", "quorate-bench-"); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	forget := func() {
		if s.Keys != "" {
			_ = os.RemoveAll(s.Keys) // It holds keys that are of no use after the run.
		}
	}
	if s.Secure {
		if err := rig.WriteCertificates(s.Keys); err != nil {
			forget()
			return nil, nil, nil, nil, err
		}
	}
	host, address, err := k.Peer(ctx, s.As(roleHost))
	if err != nil {
		forget()
		return nil, nil, nil, nil, err
	}
	region, node, err = proxy(ctx, s, address)
	if err != nil {
		host.Stop()
		forget()
		return nil, nil, nil, nil, err
	}
	return region, node, host, func() { rig.Drop(node); host.Stop(); forget() }, nil
}

// proxy joins the cluster of a host, and hosts nothing itself.
func proxy(ctx context.Context, s process.Spec, host string) (*sharding.Region[*message.Message], *cluster.Node, error) {
	node, err := rig.StartObserved(ctx, s, []string{host}, over(s, forTell()))
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
	node, err := rig.StartObserved(ctx, s, nil, over(s, forTell(hostRole)))
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
