// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"context"
	"fmt"
	"strconv"

	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/sharding"
)

// Kind is the name of the one kind of entities that an experiment uses.
const Kind = "bench"

// probe is an entity that checks its messages, and answers questions.
type probe struct{ *sequence.Receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c *sharding.Context, m *Message) error {
	p.Take(m.Sender, m.Seq, HeaderBytes+len(m.Payload))
	if m.Ask {
		return c.Reply(m)
	}
	return nil
}

// Probes describes entities that check the messages of a number of senders.
func Probes(t *sequence.Tally, senders, size int, role string) sharding.Kind[*Message] {
	return sharding.Kind[*Message]{
		Name: Kind, Role: role, Codec: Codec{},
		New: func(*sharding.Context) sharding.Entity[*Message] { return probe{t.Receiver(senders, size)} },
	}
}

// EntityName is the id of the i-th entity.
func EntityName(i int) string { return "entity-" + strconv.Itoa(i) }

// Prime asks every entity once, so that all of them exist and are known.
func Prime(ctx context.Context, s process.Spec, region *sharding.Region[*Message]) error {
	payload := make([]byte, s.Size-HeaderBytes)
	for i := range s.Entities {
		m := &Message{Sender: uint32(s.Senders), Seq: 1, Ask: true, Payload: payload}
		if _, err := sharding.Ask[*Message](ctx, region, EntityName(i), m); err != nil {
			return fmt.Errorf("bench: the first question to entity %d: %w", i, err)
		}
	}
	return nil
}
