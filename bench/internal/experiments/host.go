// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// The entities to which messages go ([probes]), and the node in another process that hosts them
// ([startPair], [serveHost], [serveGateway]).

// kindName is the name of the one kind of entities that an experiment uses.
const kindName = "bench"

// hostRole is the role of nodes that host, where not all do.
const hostRole = "host"

var _ sharding.Codec = harness.Codec{}

// probe is an entity that checks its messages, and answers questions.
type probe struct{ *harness.Receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c *sharding.Context, m *harness.Message) error {
	p.Take(m.Sender, m.Seq, harness.HeaderBytes+len(m.Payload))
	if m.Ask {
		return c.Reply(m)
	}
	return nil
}

// probes describes entities that check the messages of the senders of an experiment, and of one that wakes them.
func probes(t *harness.Tally, s harness.Spec, role string) sharding.Kind[*harness.Message] {
	return sharding.Kind[*harness.Message]{
		Name: kindName, Role: role, Codec: harness.Codec{}, EntityLimit: s.InMemory,
		New: func(*sharding.Context) sharding.Entity[*harness.Message] {
			return probe{t.Receiver(s.Senders+1, s.Size)}
		},
	}
}

// entityName is the id of the i-th entity.
func entityName(i int) string { return "entity-" + strconv.Itoa(i) }

// ask asks an entity.
type ask func(ctx context.Context, entity int, m *harness.Message) error

// prime asks every entity once, so that all of them exist and are known.
func prime(ctx context.Context, s harness.Spec, ask ask) error {
	payload := make([]byte, s.Size-harness.HeaderBytes)
	for i := range s.Entities {
		if err := ask(ctx, i, &harness.Message{Sender: uint32(s.Senders), Seq: 1, Ask: true, Payload: payload}); err != nil {
			return fmt.Errorf("bench: the first question to entity %d: %w", i, err)
		}
	}
	return nil
}

// asking asks entities of a region, and checks that the answer is to the question.
func asking(region *sharding.Region[*harness.Message]) ask {
	return func(ctx context.Context, entity int, m *harness.Message) error {
		answer, err := sharding.Ask[*harness.Message](ctx, region, entityName(entity), m)
		if err != nil {
			return err
		}
		return answers(answer, m)
	}
}

// answers returns an error if one message is not the answer to another.
func answers(answer, m *harness.Message) error {
	if answer.Sender != m.Sender || answer.Seq != m.Seq || len(answer.Payload) != len(m.Payload) {
		return fmt.Errorf("the answer is to question %d of %d", answer.Seq, answer.Sender)
	}
	return nil
}

// mailboxSize is larger than the number of messages that a sender may have under way to
// one shard, so that a sender that floods one entity is slowed by the window of the shard
// and no message is refused at the entity. It is the one setting that differs from the
// defaults, and only where messages are told.
const mailboxSize = 1 << 14

// forTell changes the settings of nodes whose entities are flooded, and has them send their messages as an
// experiment says.
func forTell(s harness.Spec, roles ...string) func(*cluster.Config) {
	return func(c *cluster.Config) {
		c.Sharding.MailboxSize, c.Node.Roles = mailboxSize, roles
		c.Transport.Lane = cmp.Or(s.Lane, c.Transport.Lane)
		if s.Keys != "" {
			c.Transport.TLS = certificates(s.Keys)
		}
	}
}

// pair is a host in another process, and its proxy here.
type pair struct {
	host   *harness.Process
	node   *cluster.Node
	region *sharding.Region[*harness.Message]
	keys   string // The directory of their certificate, if they have one.
}

// startPair starts a host, and its proxy. Whoever gets a pair ends it.
func startPair(ctx context.Context, s harness.Spec, k *harness.Link) (p *pair, err error) {
	p = new(pair)
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	if s.Secure {
		if p.keys, err = os.MkdirTemp("", "quorate-bench-"); err != nil {
			return nil, err
		}
		s.Keys = p.keys
		if err := writeCertificates(s.Keys); err != nil {
			return nil, err
		}
	}
	var address string
	if p.host, address, err = k.Peer(ctx, s.As(roleHost)); err != nil {
		return nil, err
	}
	if p.node, err = startObserved(ctx, s, []string{address}, forTell(s)); err != nil {
		return nil, err
	}
	p.region, err = sharding.Start(p.node, probes(new(harness.Tally), s, hostRole))
	return p, err
}

// end ends both nodes.
func (p *pair) end() {
	if p.node != nil {
		dropNode(p.node)
	}
	if p.host != nil {
		p.host.Stop()
	}
	if p.keys != "" {
		_ = os.RemoveAll(p.keys) // It holds keys that are of no use after the run.
	}
}

// serveHost hosts the entities of a [pair].
func serveHost(ctx context.Context, s harness.Spec, k *harness.Link) error {
	return serveProbes(ctx, s, k, forTell(s, hostRole), func(n *cluster.Node) string { return n.Self().Address.String() })
}

// serveGateway hosts the entities of [measureClient].
func serveGateway(ctx context.Context, s harness.Spec, k *harness.Link) error {
	return serveProbes(ctx, s, k, func(c *cluster.Config) {
		c.Node.Roles = []string{hostRole}
		c.Gateway.Address, c.Gateway.Kinds = "127.0.0.1:0", []string{kindName}
	}, func(n *cluster.Node) string { return n.Gateway().Address() })
}

// serveProbes runs a node that hosts entities, and says hello from an address of it.
func serveProbes(ctx context.Context, s harness.Spec, k *harness.Link, change func(*cluster.Config), address func(*cluster.Node) string) error {
	n, err := startObserved(ctx, s, nil, change)
	if err != nil {
		return err
	}
	defer dropNode(n)
	var found harness.Tally
	if _, err := sharding.Start(n, probes(&found, s, hostRole)); err != nil {
		return err
	}
	return k.HostMarks(address(n), &found)
}
