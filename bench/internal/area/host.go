// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/quorate/quorate/bench/internal/rig"
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
func over(s rig.Spec, change func(*cluster.Config)) func(*cluster.Config) {
	return func(c *cluster.Config) {
		change(c)
		c.Transport.Lane = cmp.Or(s.Lane, c.Transport.Lane)
		if s.Keys != "" {
			c.Transport.TLS = certificates(s.Keys)
		}
	}
}

// pair starts a host in another process, and its proxy here. The function ends both.
func pair(ctx context.Context, s rig.Spec, k *rig.Link) (region *sharding.Region[*rig.Message], node *cluster.Node, host *rig.Process, end func(), err error) {
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
		if err := writeCertificates(s.Keys); err != nil {
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
	return region, node, host, func() { dropNode(node); host.Stop(); forget() }, nil
}

// proxy joins the cluster of a host, and hosts nothing itself.
func proxy(ctx context.Context, s rig.Spec, host string) (*sharding.Region[*rig.Message], *cluster.Node, error) {
	node, err := startObserved(ctx, s, []string{host}, over(s, forTell()))
	if err != nil {
		return nil, nil, err
	}
	region, err := sharding.Start(node, probes(new(rig.Tally), s.Senders+1, s.Size, hostRole))
	if err != nil {
		return nil, nil, errors.Join(err, node.Close())
	}
	return region, node, nil
}

// serveHost hosts the entities of [proxy].
func serveHost(ctx context.Context, s rig.Spec, k *rig.Link) error {
	n, err := startObserved(ctx, s, nil, over(s, forTell(hostRole)))
	if err != nil {
		return err
	}
	defer dropNode(n)
	var found rig.Tally
	if _, err := sharding.Start(n, probes(&found, s.Senders+1, s.Size, hostRole)); err != nil {
		return err
	}
	return k.HostMarks(n.Self().Address.String(), &found)
}
