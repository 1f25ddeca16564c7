// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// A cluster that is to be stopped as a whole prepares first, so that no node takes over from
// another what is about to stop as well, and so that the voters stay those who can start the
// cluster again, in any order.
//
//	up -> preparing         somebody asked for it ([clusterShutdown.command]), or another member prepares
//	joining -> leaving      another member prepares: nobody comes in any more
//	preparing -> ready      by the leader, when all members prepare ([leader.ready])
//	ready -> leaving        another member that was ready leaves: all end together
//
// While members prepare, nobody is let in and nobody becomes up. Who is ready leaves when it sees another one
// leave, so that there is no convergence, and nobody exits, before all leave ([leader.exitTogether]). There is
// no way back: statuses only rise.

// clusterShutdown is this node's part in a shutdown of the whole cluster.
type clusterShutdown struct{ *core }

// command has the cluster prepare to be stopped, if this node may ask for that.
func (p *clusterShutdown) command() {
	if me := p.state.Member(p.self); p.phase != phaseMember || me == nil || me.Status != gossip.Up {
		if p.state.Shutdown() == gossip.StatusNone {
			p.refuse(p.self, "Prepare", RefusedUnsolicited, "only a member that is up can have its cluster prepare for a shutdown; this node is "+p.ownStatus().String())
		}
		return
	}
	p.raiseStatus(gossip.Preparing, "somebody asked for a shutdown of the whole cluster")
}

// observe has this node prepare, or leave, when another member does.
func (p *clusterShutdown) observe() {
	me := p.state.Member(p.self)
	if p.phase != phaseMember || me == nil || me.Status >= gossip.Leaving {
		return
	}
	switch of := p.first(); {
	case of == nil:
	case me.Status < gossip.Up:
		p.raiseStatus(gossip.Leaving, fmt.Sprintf("%v is %v for a shutdown of the whole cluster, and this node was not up", of.Node, of.Status))
	case me.Status == gossip.Up:
		p.raiseStatus(gossip.Preparing, fmt.Sprintf("%v is %v for a shutdown of the whole cluster", of.Node, of.Status))
	}
	if me.Status == gossip.Ready {
		if of := p.leaver(); of != nil {
			p.raiseStatus(gossip.Leaving, fmt.Sprintf("all are ready for a shutdown of the whole cluster, and %v is %v", of.Node, of.Status))
		}
	}
}

// raiseStatus raises this node's own status.
func (p *clusterShutdown) raiseStatus(to gossip.Status, why string) {
	p.out.Decide("shutdown", p.self.String(), to.String(), why)
	p.edit(func(e *gossip.Edit) { e.SetStatus(p.self, to, p.state.Member(p.self).UpNumber) })
}

// first returns the first member that prepares for a shutdown of the whole cluster, or is ready for it.
func (p *clusterShutdown) first() *gossip.Member {
	for _, m := range p.state.Members() {
		if m.Status == gossip.Preparing || m.Status == gossip.Ready {
			return m
		}
	}
	return nil
}

// leaver returns another member that leaves.
func (p *clusterShutdown) leaver() *gossip.Member {
	for _, m := range p.state.Members() {
		if m.Node != p.self && (m.Status == gossip.Leaving || m.Status == gossip.Exiting) {
			return m
		}
	}
	return nil
}
