// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
)

// The model of sharding behind gateways: a message waits in the stream of its node to its shard, travels to the home of
// that in order, and waits there for its entity, which handles one at a time. What package sharding promises is kept,
// and nothing more: what a dead host had is lost, and what its stream still has goes on to the next home.

const (
	kind    = "k"
	shards  = 5
	fence   = 8 * time.Second // Who stands still for so long loses its shards.
	early   = 4 * time.Millisecond
	foundIn = 6 * time.Second // Until the shards of a dead node have another home, at most.
)

func numberOf(entity string) (n int) {
	_, _ = fmt.Sscanf(entity, "e%d", &n) // Entities of this world have no other names.
	return n
}

func shardOf(entity int) int { return int(hash(fmt.Sprintf("e%d", entity)) % shards) }

// stage is where a message is.
type stage uint8

const (
	stageStream stage = iota // With its gateway.
	stageMail                // With its home.
	stageBegun               // The entity has begun.
	stageOver                // It will not be begun.
)

// message is a request behind a gateway.
type message struct {
	token    string
	entity   int
	from     *node
	life     int
	tell     bool
	deadline time.Duration
	stage    stage
	done     func(clientv1.Code, []byte) // Nil once it was called.
}

// stream is the messages of one node to one shard.
type stream struct {
	messages []*message
	moving   bool
}

// mailbox is what an entity has to handle.
type mailbox struct {
	home     *node
	life     int
	shard    int
	epoch    int // Of the shard.
	messages []*message
	busy     bool
}

// end tells the gateway what became of a message.
func (m *message) end(code clientv1.Code, payload []byte) {
	if m.done != nil {
		done := m.done
		m.done = nil
		done(code, payload)
	}
}

// submit hands a request of a call to sharding.
func (n *node) submit(c *call, r *clientv1.Request, done func(clientv1.Code, []byte)) {
	left := timeLeft(r)
	m := &message{
		token: string(r.GetPayload()), entity: numberOf(r.GetEntity()), from: n, life: n.life, tell: r.GetTell(),
		deadline: n.w.Now() + left, done: done,
	}
	switch {
	case n.fenced > n.w.Now():
		m.end(clientv1.Code_CODE_NO_STANDING, nil)
	case n.w.chance(0.01):
		m.end(clientv1.Code_CODE_OVERLOADED, nil)
	case n.w.chance(0.005):
		m.end(clientv1.Code_CODE_UNREACHABLE, nil)
	default:
		n.offer(c, m)
	}
}

// offer takes a message if there is room, and waits for room otherwise.
func (n *node) offer(c *call, m *message) {
	switch {
	case m.done == nil:
	case c.over:
		m.end(clientv1.Code_CODE_NOT_DELIVERED, nil)
	case m.deadline <= n.w.Now():
		m.end(clientv1.Code_CODE_OVERLOADED, nil)
	case n.w.full[shardOf(m.entity)] > n.w.Now():
		n.w.Counts.Waited++
		n.later(poll, func() { n.offer(c, m) })
	default:
		n.accept(m)
	}
}

// accept has a message travel.
func (n *node) accept(m *message) {
	shard := shardOf(m.entity)
	if n.windows[shard] == nil {
		n.windows[shard] = new(stream)
	}
	st := n.windows[shard]
	st.messages = append(st.messages, m)
	n.w.ledger.accept(m.token, n)
	if m.tell {
		m.end(clientv1.Code_CODE_OK, nil)
	} else {
		n.later(m.deadline-n.w.Now(), func() { n.expire(m) })
	}
	n.move(shard, st)
}

// expire ends an ask whose time is over.
func (n *node) expire(m *message) {
	switch m.stage {
	case stageStream:
		m.stage = stageOver
		m.end(clientv1.Code_CODE_NOT_DELIVERED, nil)
	case stageMail, stageBegun, stageOver:
		m.end(clientv1.Code_CODE_UNKNOWN_OUTCOME, nil)
	}
}

// move brings the first message of a stream to the home of its shard.
func (n *node) move(shard int, st *stream) {
	if st.moving || len(st.messages) == 0 {
		return
	}
	st.moving = true
	n.later(n.w.upTo(4*time.Millisecond), func() {
		st.moving = false
		home := n.w.homes[shard]
		if !home.up || home.frozen > n.w.Now() || n.w.handed[shard] {
			st.moving = true
			n.later(poll, func() {
				st.moving = false
				n.move(shard, st)
			})
			return
		}
		m := st.messages[0]
		st.messages = st.messages[1:]
		if m.stage == stageStream {
			m.stage = stageMail
			n.w.mail(home, m)
		}
		n.move(shard, st)
	})
}

// mail puts a message into the mailbox of its entity.
func (w *World) mail(home *node, m *message) {
	box, epoch := w.boxes[m.entity], w.epochs[shardOf(m.entity)]
	if box == nil || box.home != home || box.life != home.life || box.epoch != epoch {
		box = &mailbox{home: home, life: home.life, shard: shardOf(m.entity), epoch: epoch}
		w.boxes[m.entity] = box
	}
	box.messages = append(box.messages, m)
	w.handle(box)
}

// handle has an entity handle its first message, and then the next.
func (w *World) handle(box *mailbox) {
	if box.busy || len(box.messages) == 0 {
		return
	}
	box.busy = true
	m := box.messages[0]
	box.messages = box.messages[1:]
	home := box.home
	home.later(w.upTo(6*time.Millisecond), func() {
		switch {
		case m.stage != stageMail || w.epochs[shardOf(m.entity)] != box.epoch: // It has lost its shard meanwhile.
			w.lose(m)
		case home.fenced > w.Now():
			w.answer(m, clientv1.Code_CODE_NO_STANDING, nil)
			m.stage = stageOver
		case !m.tell && m.deadline <= w.Now()+early: // Clocks differ.
			m.stage = stageOver
			w.answer(m, clientv1.Code_CODE_EXPIRED, nil)
		default:
			m.stage = stageBegun
			w.ledger.handle(m)
			if w.chance(0.02) {
				w.answer(m, clientv1.Code_CODE_ENTITY_FAILED, nil)
			} else {
				w.answer(m, clientv1.Code_CODE_OK, w.reply(m))
			}
		}
		box.busy = false
		w.handle(box)
	})
}

// reply is what an entity answers: the token, and now and then much more, by which a node may come to its bound.
func (w *World) reply(m *message) []byte {
	reply := []byte("re " + m.token)
	if w.chance(0.3) {
		reply = append(reply, bytes.Repeat([]byte{' '}, w.rand.IntN(maxReply-len(reply)))...)
	}
	return reply
}

// answer sends a reply to the gateway of an ask, which may be lost.
func (w *World) answer(m *message, code clientv1.Code, payload []byte) {
	if m.tell {
		return
	}
	if w.chance(0.02) {
		w.Counts.Unanswered++
		return
	}
	w.After(w.upTo(4*time.Millisecond), m.from.alive(m.life, func() { m.end(code, payload) }))
}

// lose ends a message whose host is gone.
func (w *World) lose(m *message) {
	if m.stage == stageMail {
		m.stage = stageOver
	}
	if !m.tell {
		w.After(w.upTo(time.Second), m.from.alive(m.life, func() { m.end(clientv1.Code_CODE_UNKNOWN_OUTCOME, nil) }))
	}
}

// hosted has others take over what a node hosted.
func (w *World) hosted(n *node) {
	for entity := range entities {
		if box := w.boxes[entity]; box != nil && box.home == n {
			for _, m := range box.messages {
				w.lose(m)
			}
			w.boxes[entity] = nil
		}
	}
	lost := map[int]int{} // By shard: the epoch that nobody hosts.
	for shard, home := range w.homes {
		if home == n {
			w.epochs[shard]++ // Also what an entity is about to begin is lost.
			lost[shard] = w.epochs[shard]
		}
	}
	life := n.life
	w.After(w.upTo(foundIn), func() {
		for shard := range shards {
			epoch, none := lost[shard]
			if none && w.epochs[shard] == epoch && (!n.up || n.life != life || n.frozen > w.Now()) {
				w.rehome(shard)
			}
		}
	})
}

// handOver moves the shards of a node in order: nothing more goes there, what is there is handled, and then another
// node goes on.
func (w *World) handOver(n *node) {
	for shard, home := range w.homes {
		if home != n {
			continue
		}
		var wait func()
		wait = func() {
			if slices.ContainsFunc(w.boxes, func(box *mailbox) bool { return box.works(n, shard) }) {
				w.After(poll, wait)
				return
			}
			w.After(w.upTo(300*time.Millisecond), func() {
				w.rehome(shard)
			})
		}
		w.After(w.upTo(500*time.Millisecond), func() {
			w.handed[shard] = true
			wait()
		})
	}
}

// works reports whether an entity of a shard has something to handle on a node.
func (b *mailbox) works(n *node, shard int) bool {
	return b != nil && b.home == n && b.shard == shard && (b.busy || len(b.messages) > 0)
}

// rehome gives a shard to a node that can host.
func (w *World) rehome(shard int) {
	able := slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return !n.up || n.going || n.frozen > w.Now() || n.fenced > w.Now() })
	if len(able) == 0 {
		w.After(time.Second, func() { w.rehome(shard) })
		return
	}
	w.epochs[shard]++
	w.handed[shard] = false
	w.homes[shard] = able[w.rand.IntN(len(able))]
	w.Log("shard %d lives on %s", shard, w.homes[shard].name)
}
