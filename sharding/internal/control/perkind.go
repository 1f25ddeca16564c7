// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// What happens with one kind: receive takes the message of another node to the region or,
// by toCoordinator, to the coordinator; obeys keeps the promise that only the highest term is
// obeyed. Then, by singleton, where the coordinator of the kind starts and ends.

// send sends a message to a node, which may be this one.
func (k *perKind) send(to gossip.NodeID, m Message) {
	if to == k.control.cfg.Self {
		k.control.local = append(k.control.local, m)
		return
	}
	k.control.out.Send(to, m)
}

// sendBulk is send for a message with a memory, which must not delay others.
func (k *perKind) sendBulk(to gossip.NodeID, m Message) {
	if to == k.control.cfg.Self {
		k.send(to, m)
		return
	}
	k.control.out.Add(machine.Send{To: to, Lane: machine.LaneBulk, Message: m})
}

func (k *perKind) violation(s protocol.ShardID, detail string) {
	k.control.out.Publish(Violation{Kind: k.name, Shard: s, Detail: detail})
}

// receive takes a message of another node's Control. Messages of nodes that are not known
// as members are ignored: a member repeats its messages until this node knows it.
func (c *Control) receive(from gossip.NodeID, m Message) {
	if c.state == nil || c.state.Member(from) == nil {
		return
	}
	k := c.of(m)
	switch m := m.(type) {
	case Query:
		k.onQuery(from, m)
	case Host:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.onHost(from, m)
		}
	case Stop:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.onStop(from, m)
		}
	case Resume:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.onResume(from, m)
		}
	case Release:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.onRelease(from, m)
		}
	case Map:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.onMap(from, m)
		}
	case SettingsRefused:
		k.onSettingsRefused(from, m)
	case ExplainShard:
		k.send(from, k.answer(m))
	case ShardExplanation:
		c.answered(from, Explain{m.Kind, m.Shard, m.ID}, sortExplain, m)
	case MoveShard:
		k.send(from, k.answer(m))
	case MoveAnswered:
		c.answered(from, Explain{m.Kind, m.Shard, m.ID}, sortMove, m)
	case TellScale:
		if k.obeys(from, m.Term) && k.host != nil {
			k.host.learnScale(m.Scale)
		}
	case SetScale:
		k.send(from, k.answer(m))
	case ScaleAnswered:
		c.answered(from, Explain{Kind: m.Kind, ID: m.ID}, sortScale, m)
	case ReshardKind:
		k.send(from, k.answer(m))
	case ReshardAnswered:
		c.answered(from, Explain{Kind: m.Kind, ID: m.ID}, sortReshard, m)
	case ImportRequest:
		c.out.Add(ToRemembering{Kind: m.Kind, Input: protocol.Asked{From: from, Request: m.Take}})
	case ImportReply:
		c.out.Add(ToRemembering{Kind: m.Kind, Input: m.Given})
	case SingletonMessage:
		if k.core == nil && c.exceeds(int(m.Settings.Shards)) == "" && k.keeps() {
			k.learnSettings(m.Settings, Timings{})
		}
		k.singleton(func(a *singleton.Actions) { k.core.Receive(c.now.Mono, from, m.Message, a) })
	default:
		k.toCoordinator(from, m)
	}
}

// toCoordinator takes the messages that are meant for the coordinator to it, if it runs
// here.
func (k *perKind) toCoordinator(from gossip.NodeID, m Message) {
	if reg, ok := m.(Register); ok && !k.admits(from, reg.Registration.Settings) || k.coord == nil {
		return
	}
	switch m := m.(type) {
	case Register:
		k.coord.onRegister(from, m)
	case Refused:
		k.onRefused(m)
	case Report:
		k.coord.onReport(from, m)
	case NoRegion:
		k.coord.onNoRegion(from, m)
	case NeedMap:
		k.coord.sendWhole(from)
	case Hosting:
		k.coord.onHosting(from, m)
	case ShardsStopped:
		k.coord.onStopped(from, m)
	case Resumed:
		k.coord.onResumed(from, m)
	}
}

// onQuery promises to obey the asking term, and reports what this node hosts; or refuses,
// if a higher term has the promise.
func (k *perKind) onQuery(from gossip.NodeID, m Query) {
	if !k.obeys(from, m.Term) {
		return
	}
	if k.host == nil {
		k.send(from, NoRegion{Kind: k.name, Term: m.Term, Follows: true})
		return
	}
	k.host.report(from, m.Term)
}

// obeys reports whether a command of a term is to be obeyed. A higher term raises the
// promise, a lower term is refused.
func (k *perKind) obeys(from gossip.NodeID, term protocol.Term) bool {
	switch term.Compare(k.promise) {
	case -1:
		k.send(from, Refused{Kind: k.name, Promise: k.promise})
		return false
	case 1:
		k.promise, k.asker = term, from
		if k.core != nil {
			k.core.SetFloor(term.Age())
		}
	}
	return true
}

// onRefused ends a coordinator whose term is too low to be obeyed.
func (k *perKind) onRefused(m Refused) {
	if m.Promise.Compare(k.coord.term) <= 0 {
		return
	}
	k.control.out.Decide("coordinator", k.name, "retired",
		"a region promised to obey term "+m.Promise.String()+", above "+k.coord.term.String())
	k.core.Retire(m.Promise.Age())
	k.stopCoordinator()
}

// onSettingsRefused notes that the coordinator refuses the region. Only the coordinator at
// which the region registers, and the one that has asked, are believed.
func (k *perKind) onSettingsRefused(from gossip.NodeID, m SettingsRefused) {
	if k.host == nil || k.host.refused == m || from != k.coordinatorNode() && from != k.asker {
		return
	}
	k.host.refused = m
	k.control.out.Publish(KindRefused{m})
}

// singleton feeds the singleton rule by act, and carries out the actions that follow.
func (k *perKind) singleton(act func(*singleton.Actions)) {
	if k.core == nil {
		return
	}
	var a singleton.Actions
	act(&a)
	if a.Stop {
		k.endCoordinator(&a)
	}
	if !a.Start.IsZero() {
		k.startCoordinator(a.Start)
	}
	for _, s := range a.Send {
		k.send(s.To, SingletonMessage{Kind: k.name, Settings: k.settings, Message: s.Message})
	}
	for _, node := range a.Stuck {
		k.control.out.Decide("coordinator", k.name, "waiting", node.String()+" is leaving and has not confirmed that its coordinator stopped")
	}
}

func (k *perKind) startCoordinator(term protocol.Term) {
	k.coord = newCoordinator(k, term)
	k.control.out.Decide("coordinator", k.name, "started", "this node is the oldest that can run it; term "+term.String())
	k.control.out.Publish(CoordinatorStarted{Kind: k.name, Term: term})
	k.coord.start()
}

// renew ends a coordinator whose epochs begin with a lower birth than that of the cluster,
// which rises when a node joins that was in a cluster with later epochs. The epochs of the
// next term begin with the new birth.
func (k *perKind) renew(born int64) {
	if k.coord == nil || k.coord.ending || k.coord.born >= born {
		return
	}
	k.control.out.Decide("coordinator", k.name, "renewed", fmt.Sprintf("epochs begin with birth %d from now on, %d before", born, k.coord.born))
	k.stopCoordinator()
	k.core.Retire(gossip.Age{})
}

// endCoordinator stops the coordinator of a node that leaves, when the moves under
// way have ended: the positions of the streams are then with the new homes, and not
// on their way.
func (k *perKind) endCoordinator(a *singleton.Actions) {
	if k.coord != nil && !k.coord.ending {
		k.coord.retire()
	}
	if k.coord != nil && !k.coord.retired() {
		return
	}
	k.stopCoordinator()
	k.core.InstanceStopped(k.control.now.Mono, a)
}

// retireCoordinator stops a coordinator that is ending, as soon as it can stop.
func (k *perKind) retireCoordinator() {
	if k.coord.retired() {
		k.singleton(func(a *singleton.Actions) { k.endCoordinator(a) })
	}
}

func (k *perKind) stopCoordinator() {
	if k.coord == nil {
		return
	}
	term := k.coord.term
	k.coord.stop()
	k.coord = nil
	k.control.out.Publish(CoordinatorStopped{Kind: k.name, Term: term})
}

// coordinatorNode returns the node that coordinates the kind as far as this node knows:
// the one that asked with the highest term, else the oldest that could coordinate. A region
// repeats its registration for as long as it lives, so that a wrong guess does no harm.
func (k *perKind) coordinatorNode() gossip.NodeID {
	st := k.control.state
	if st == nil {
		return gossip.NodeID{}
	}
	if m := st.Member(k.asker); m != nil && m.Status < gossip.Leaving {
		return k.asker
	}
	var oldest *gossip.Member
	for _, m := range st.Members() {
		if k.couldTake(m) && m.Age().Compare(k.promise.Age()) >= 0 && (oldest == nil || m.OlderThan(oldest)) {
			oldest = m
		}
	}
	if oldest == nil {
		return gossip.NodeID{}
	}
	return oldest.Node
}

// couldTake reports whether a member stays, runs sharding and has the role of the kind. None stays when all
// leave together, though not all have begun to.
func (k *perKind) couldTake(m *gossip.Member) bool {
	return m.Status.IsUp() && m.UpNumber > 0 && !k.control.together &&
		m.HasService(uint16(protocol.Service)) && m.HasRole(k.settings.Role)
}

// successor reports whether another member could take over what this one hosts.
func (k *perKind) successor() bool {
	for _, m := range k.control.state.Members() {
		if m.Node != k.control.cfg.Self && k.couldTake(m) {
			return true
		}
	}
	return false
}

// called takes the answer to a call of one of the coordinators. An answer for which no
// coordinator waits any more is counted, and changes nothing.
func (c *Control) called(in machine.Called) {
	for _, k := range c.kinds {
		if k.coord != nil && in.ID != 0 && k.coord.strategy.asked.id == in.ID {
			k.coord.called(in)
			return
		}
	}
	c.unsolicited++
}

// Unsolicited returns how many answers of strategies came when no coordinator waited for
// them any more: after the limit of the call, or after the coordinator had stopped.
func (c *Control) Unsolicited() uint64 { return c.unsolicited }
