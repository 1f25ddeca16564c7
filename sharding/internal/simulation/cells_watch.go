// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/window"
)

// idOf returns the id of a message: what a client has sent, or its encoding. A message that
// has been handled may have neither.
func idOf(m *cell.Message) (id uint64, ok bool) {
	if id, ok = m.Value.(uint64); ok {
		return id, true
	}
	if len(m.Payload) == idBytes {
		return binary.BigEndian.Uint64(m.Payload), true
	}
	return 0, false
}

// idOfMail is idOf for a message in a mailbox.
func idOfMail(m cell.Mail) (id uint64, ok bool) {
	if id, ok = m.Value.(uint64); ok || m.Message() == nil {
		return id, ok
	}
	return idOf(m.Message())
}

// decode returns the id of a message.
func decode(_ string, payload []byte) any {
	id, _ := idOf(&cell.Message{Payload: payload})
	return id
}

// Comes notes by which map a message of another node came.
func (c *Cells) Comes(m *cell.Message) { c.routes[m] = m.Route }

// Acts tells the ledger what becomes of messages.
func (c *Cells) Acts(shard protocol.ShardID, actions []cell.Action, i int) {
	switch a := &actions[i]; a.Op {
	case cell.OpForward:
		if came := c.routes[a.Message]; !came.Less(a.Message.Route) {
			c.ledger.violate("I20: %s passes message of shard %d on by epoch %s, by which it came: %s", c.self, shard, a.Message.Route, came)
		}
	case cell.OpReply:
		if a.Reply.Code != protocol.CodeOK && a.Reply.Code != protocol.CodeUnknownOutcome {
			// The action after this one frees the refused message.
			id, _ := idOf(actions[i+1].Message)
			c.ledger.hostRefused(id)
		}
	case cell.OpFree:
		delete(c.routes, a.Message)
		if id, known := idOf(a.Message); known && a.Message.Origin == c.self {
			c.ledger.delivered(id)
		}
	case cell.OpArrived:
		c.ledger.delivered(a.Seq)
	case cell.OpAcked:
		for v, all := (window.View{}), a.Items; all.Next(&v); {
			id, _ := idOf(&cell.Message{Payload: v.Item().Payload})
			c.ledger.delivered(id)
		}
	case cell.OpMove:
		c.ledger.counts.Handed++
	case cell.OpFail:
		c.failed(a)
	case cell.OpDrop:
		delete(c.routes, a.Message)
		id, _ := idOf(a.Message)
		c.ledger.drop(a.Drop, id)
	case cell.OpStop:
		c.checkEviction(a.Entity)
		if a.Entity.Info().Released { // It waited for standing when it was left behind: its stop begins only now.
			c.leave(a.Entity)
		}
	case cell.OpStart:
		delete(c.weight.evicting, a.Entity)
		c.ledger.archive.starts(c.self, a.Entity)
	case cell.OpRun:
		c.ledger.bounded(c.self, a.Entity)
		c.give(a.Entity.Mail())
	default:
	}
}

// give notes that the job of an entity has a message.
func (c *Cells) give(m cell.Mail) {
	if id, known := idOfMail(m); known && c.ledger.messages[id] != nil {
		c.ledger.messages[id].given = true
	}
}

// failed notes that a message of this node has failed.
func (c *Cells) failed(a *cell.Action) {
	id, _ := idOf(a.Message)
	if a.Message.Seq == 0 {
		c.ledger.messages[id].left = true // A message of this node reaches its entity without leaving.
	}
	if waits := c.asks[id]; waits != nil {
		waits.told = true
		c.failing = append(c.failing, waits)
	}
	c.ledger.outcome(id, a.Code)
}

// Acted notes whether a shard is being stopped, and that asks whose messages have failed
// were told.
func (c *Cells) Acted(shard protocol.ShardID, in *cell.Cell) {
	for _, a := range c.failing {
		if c.asks[a.Correlation] == a {
			c.ledger.violate("I20: message %d has failed, and its asker was not told", a.Correlation)
		}
	}
	c.failing = c.failing[:0]
	c.ledger.follow(c.self, shard, in.Handoff().Stopping())
}
