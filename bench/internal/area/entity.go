// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"strconv"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/sharding"
)

// kindName is the name of the one kind of entities that an experiment uses.
const kindName = "bench"

var _ sharding.Codec = rig.Codec{}

// probe is an entity that checks its messages, and answers questions.
type probe struct{ *rig.Receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c *sharding.Context, m *rig.Message) error {
	p.Take(m.Sender, m.Seq, rig.HeaderBytes+len(m.Payload))
	if m.Ask {
		return c.Reply(m)
	}
	return nil
}

// probes describes entities that check the messages of a number of senders.
func probes(t *rig.Tally, senders, size int, role string) sharding.Kind[*rig.Message] {
	return sharding.Kind[*rig.Message]{
		Name: kindName, Role: role, Codec: rig.Codec{},
		New: func(*sharding.Context) sharding.Entity[*rig.Message] { return probe{t.Receiver(senders, size)} },
	}
}

// entityName is the id of the i-th entity.
func entityName(i int) string { return "entity-" + strconv.Itoa(i) }

// prime asks every entity once, so that all of them exist and are known.
func prime(ctx context.Context, s rig.Spec, region *sharding.Region[*rig.Message]) error {
	payload := make([]byte, s.Size-rig.HeaderBytes)
	for i := range s.Entities {
		m := &rig.Message{Sender: uint32(s.Senders), Seq: 1, Ask: true, Payload: payload}
		if _, err := sharding.Ask[*rig.Message](ctx, region, entityName(i), m); err != nil {
			return fmt.Errorf("bench: the first question to entity %d: %w", i, err)
		}
	}
	return nil
}
