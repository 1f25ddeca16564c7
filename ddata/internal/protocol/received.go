// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// How an envelope is handled ([group.received]): what it says of its sender is noted ([group.meet]), what it brings of
// the register is adopted ([group.learn]), and its body is handed to one part ([group.dispatch]). Before each of these
// steps a guard may stop the envelope; the guards are in one table ([guards]).

// checkpoint says before which step of [group.received] a guard is asked.
type checkpoint uint8

const (
	beforeMeeting checkpoint = iota
	beforeLearning
	beforeNoting
	beforeBody
)

// guard is a reason for which an envelope goes no further.
type guard struct {
	at    checkpoint
	why   string
	stops func(g *group, p *peer, e Envelope) bool
	then  func(g *group, p *peer, e Envelope) // Is called when the envelope was stopped; nil: nothing is done.
}

// guards returns the guards in the order in which they are asked.
func guards() [9]guard {
	return [...]guard{
		{
			beforeMeeting, "the replica is not that of the node, which speaks for another one",
			func(g *group, p *peer, e Envelope) bool { return !g.cfg.speaks(p.node, e.From) },
			func(g *group, _ *peer, _ Envelope) { g.m.counts.Malformed++ },
		}, {
			beforeMeeting, "the replica is that of another member",
			func(g *group, p *peer, e Envelope) bool { return g.claimed(p.node, e.From) },
			func(g *group, _ *peer, _ Envelope) { g.m.counts.Claims++ },
		}, {
			beforeMeeting, "it was sent before the replica of its node was given another id",
			func(_ *group, p *peer, e Envelope) bool { return p.former(e) }, nil,
		}, {
			beforeLearning, "the register of the sender is of another lineage",
			func(g *group, _ *peer, e Envelope) bool {
				return e.Register != nil && g.reg.conflicts(e.Register.Lineage) || g.reg.conflicts(e.Lineage)
			},
			func(g *group, _ *peer, _ Envelope) {
				g.proposer.refused = "another replica has a register of another lineage: one of the two has to accept its loss"
				g.m.counts.Malformed++
			},
		}, {
			beforeNoting, "the sender believes that a register is known here which is not: the answer tells it better",
			func(g *group, _ *peer, e Envelope) bool {
				return e.Gen > g.gen() || g.reg != nil && e.Lineage.Turn > g.reg.Lineage.Turn
			},
			func(g *group, p *peer, _ Envelope) { g.send(p, Hello{}) },
		}, {
			// What the sender has written in that lineage since is not merged: it drops it when it gets the register.
			beforeNoting, "an operator has ended the lineage of the sender",
			func(g *group, _ *peer, e Envelope) bool {
				return g.reg != nil && !e.Lineage.IsZero() && e.Lineage.Turn < g.reg.Lineage.Turn
			},
			func(g *group, p *peer, _ Envelope) {
				g.m.counts.Stale++
				g.sendRegister(p)
			},
		}, {
			beforeNoting, "the store of the sender is older than what is remembered of it here",
			func(g *group, p *peer, e Envelope) bool {
				p.lostBatch, p.compared = g.storeCheck.compare(p, e), true
				return p.lostBatch != 0
			},
			func(g *group, p *peer, e Envelope) {
				if b, told := e.Body.(OlderStore); told {
					g.putBack(p, b) // Without an answer: two whose stores are older would answer each other for ever.
					return
				}
				g.send(p, OlderStore{Of: e.From, Written: p.lostBatch})
			},
		}, {
			beforeBody, "this replica does not count, and the body wants something of one that does",
			func(g *group, _ *peer, e Envelope) bool {
				return g.apart() && demands(e.Body) && !(e.Unsure && g.storeCheck.participation == unsure && compares(e.Body))
			}, nil,
		}, {
			beforeBody, "what the body acknowledges may have been lost since: the operation asks again",
			func(g *group, _ *peer, e Envelope) bool {
				return e.Restarts < g.storeCheck.restarts && acknowledges(e.Body)
			}, nil,
		},
	}
}

// stops reports whether a guard stops an envelope at a checkpoint.
func (g *group) stops(at checkpoint, p *peer, e Envelope) bool {
	for _, of := range guards() {
		if of.at != at || !of.stops(g, p, e) {
			continue
		}
		if p.stoppedBy = of.why; of.then != nil {
			of.then(g, p, e)
		}
		return true
	}
	return false
}

// received handles a message of a member.
func (g *group) received(from gossip.NodeID, e Envelope) {
	p := g.nodes[from]
	if p == nil {
		p = &peer{node: from}
	}
	if g.stops(beforeMeeting, p, e) {
		return
	}
	if g.meet(p, e); g.stops(beforeLearning, p, e) {
		return
	}
	if g.learn(e); g.stops(beforeNoting, p, e) {
		return
	}
	g.compared()
	if e.Gen == g.gen() && g.reg != nil && e.Lineage == g.reg.Lineage {
		g.knows[p.id] = true
		if e.Sealed {
			g.noteSealed(true)
		}
		if e.Caught {
			p.caught = e.Gen
		}
	}
	if !g.stops(beforeBody, p, e) {
		p.stoppedBy = ""
		g.dispatch(p, e)
	}
	g.noteSealed(false)
	if g.reg != nil && g.misses(p) {
		g.sendRegister(p)
	}
}

// meet notes what an envelope says about its sender.
func (g *group) meet(p *peer, e Envelope) {
	g.nodes[p.node] = p
	if p.id != e.From {
		if g.peers[p.id] == p {
			delete(g.peers, p.id)
		}
		p.id, p.written = e.From, 0
		g.rerouted = true
	}
	p.written = max(p.written, e.Written)
	if !g.startedAgain(p) {
		g.peers[p.id] = p
	}
	p.peerStatus, p.agrees = statusOf(e, p.peerStatus, g.m.now.Mono), p.agrees || e.Agrees
	if p.gen == 0 && g.reg == nil {
		g.none[p.node] = true
	}
}

// learn adopts what an envelope brings: a greater number of unclean starts, and a later register. Replicas that
// acknowledge something from now on know of that number; what was acknowledged before may have been lost, and is asked
// for again.
func (g *group) learn(e Envelope) {
	if g.cfg.Durable && e.Restarts > g.storeCheck.restarts {
		g.flushDeltas()
		g.storeCheck.restarts = e.Restarts
		g.disk.metaChanged()
		g.ops.restartsRaised()
	}
	if e.Register != nil && (g.reg == nil || e.Register.Above(g.reg)) {
		g.adopt(e.Register, false)
	}
}

// demands reports whether a message asks for something that only a replica does which counts.
func demands(body any) bool {
	switch body.(type) {
	case Prepare, Accept, Deltas, Put, Ask, Compare, AskBuckets, Pull, Sweep, EntryRequest, Commit, RemoveKey:
		return true
	default:
		return false
	}
}

// dispatch hands the body of an envelope to the part that handles it.
func (g *group) dispatch(p *peer, e Envelope) {
	switch b := e.Body.(type) {
	case Hello:
		if b.Taken > p.progress.taken {
			p.progress.taken, p.progress.at = b.Taken, g.m.now.Mono
		}
		if b.Ask {
			g.send(p, Hello{})
		}
	case Prepare:
		g.reply(p, g.change.prepared(p.node, b))
	case Promise:
		g.promised(p.id, b)
	case Accept:
		g.reply(p, g.change.accept(p.node, b))
	case Accepted:
		g.accepted(p.id, b)
	case Deltas:
		taken := g.propagation.taken(b)
		g.answer(p, taken, g.lacked(p, taken.Deleted))
	case DeltasTaken:
		g.answered(p, b)
	case Put:
		if answer := g.ops.put(b); b.Op != 0 {
			g.answer(p, answer, g.lacked(p, answer.Deleted))
		}
	case PutTaken:
		g.ops.putTaken(p, b)
	case Ask:
		g.send(p, g.ops.ask(b))
	case Answer:
		if over, asked := g.explainer.answer(p, b); asked {
			g.explain(over)
		} else {
			g.ops.answer(p, e.Gen, b)
		}
	case EntryRequest:
		g.remote.answerEntry(p, b)
	case EntryReply:
		g.remote.fetched(p, b)
	case Commit:
		if w, made := g.remote.commitFor(p, b); made {
			g.ops.write(w)
		}
	case RemoveKey:
		if d, here := g.remote.removeFor(p, b); here {
			g.ops.remove(d)
		}
	case Committed:
		g.remote.committed(p, b)
	case Sweep:
		g.reply(p, g.sweep.asked(b))
	case SweepReply:
		g.sweep.answered(p, b)
	case OlderStore:
		g.putBack(p, b)
	default:
		g.compare(p, e)
	}
}

// answered handles the answer to a batch of deltas: it sends the entries that the peer lacks, notes what that means for
// operations, and sends the batches that have waited for the answer.
func (g *group) answered(p *peer, b DeltasTaken) {
	if len(b.Gaps) > 0 {
		g.give(p, g.lacked(p, b.Gaps))
	}
	notices, asked := g.propagation.answered(p, b)
	if g.ops.carry(nil, notices); asked && (g.propagation.more || len(g.propagation.unsent) > 0) {
		g.ops.carry(g.propagation.proceed())
	}
}

// promised counts a promise of a replica, and has this one accept too when enough have promised.
func (g *group) promised(by ReplicaID, b Promise) {
	enough, out := g.change.promise(by, b)
	g.post(out...)
	if !enough {
		return
	}
	if own, votes := g.change.ownAccepted(); votes {
		g.accepted(g.self, own)
	}
}

// accepted counts an acceptance of a replica, and adopts the register that is decided by it.
func (g *group) accepted(by ReplicaID, b Accepted) {
	if v := g.change.acceptance(by, b); v != nil {
		g.m.out.Decide(ComponentName, g.cfg.Name, fmt.Sprintf("generation %d %v", v.Gen, v.Phase), describe(v))
		g.adopt(v, g.reg == nil)
	}
}

// compare handles a message of a pass, and tells the other parts when the pass has ended.
func (g *group) compare(p *peer, e Envelope) {
	x := g.passes.received(p, e)
	g.give(p, x.back)
	g.post(x.out...)
	if x.ended == nil {
		return
	}
	if x.ended.catchingUp {
		g.caughtUp(g.transfer.noteTaken(x.ended))
	}
	g.storeCheck.ended(x.ended)
	g.restored()
	g.majorities.ended(x.ended)
}
