// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package remembering

import (
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Entities that begin without a message, at a bounded rate: the machine notes when the next one may begin, and a
// twentieth of a second that has passed unused may be made up for. The shards take turns.

const (
	startsEvery = 10 * time.Millisecond // How often entities begin while some wait.
	startsAhead = time.Second / 20      // What may be made up for.
	startsTurn  = 16                    // How many entities of a shard begin before it is another one's turn.
)

// start starts as many waiting entities as the rate allows now.
func (m *Machine) start(now machine.Instant, out *Outbox) {
	m.next = max(m.next, now.Add(-startsAhead))
	for len(m.starting) > 0 && m.next <= now {
		s := m.starting[0]
		m.starting = m.starting[1:]
		n := len(s.pending)
		if m.cfg.Rate > 0 {
			n = min(n, startsTurn)
		}
		begin := make([]string, 0, n)
		for n > 0 && m.next <= now {
			id := s.pending[0]
			s.pending[0] = "" // The record of the entity has it.
			s.pending = s.pending[1:]
			n--
			if _, gone := s.gone[id]; !gone {
				begin = append(begin, id)
				m.noteStart()
			}
		}
		if len(begin) > 0 {
			m.stats.Started += uint64(len(begin))
			s.markHanded(begin)
			out.Start = append(out.Start, Entities{Shard: s.id, IDs: begin})
		}
		if len(s.pending) > 0 {
			m.starting = append(m.starting, s)
		} else {
			s.pending, s.gone = nil, nil
		}
	}
}

// Begin returns which of the ids of an [Outbox.Start] are to begin all the same, now that they do: some may have begun
// and stopped for good since. Nothing may happen to the shard between this call and their begin.
func (m *Machine) Begin(shard protocol.ShardID, ids []string) []string {
	s := m.shards[shard]
	if s == nil {
		return nil
	}
	begin := make([]string, 0, len(ids))
	for _, id := range ids {
		if _, there := s.handed[id]; there {
			delete(s.handed, id)
			begin = append(begin, id)
		}
	}
	if len(s.handed) == 0 {
		s.handed = nil
	}
	return begin
}

// noteStart moves the time of the next start by one entity.
func (m *Machine) noteStart() {
	if m.cfg.Rate > 0 {
		m.next = m.next.Add(time.Second / time.Duration(m.cfg.Rate))
	}
}
