// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// Components of other packages are attached first ([Node.Attach]). Then come the effects
// of all machines, out to the transport, the strategies and the subscribers
// ([Node.ports]).

// Attachment is a component of another package together with the functions that carry out
// its effects.
type Attachment struct {
	Component machine.Component

	// Call answers the component's calls of strategies, on a goroutine of its own. Nil if
	// the component makes none.
	Call func(ctx context.Context, call machine.Call) (any, error)

	// Other carries out effects of the component's own types, on the driver's goroutine:
	// it must not block. Nil if there are none.
	Other func(effect machine.Effect)

	// Published hears what the component publishes, on the driver's goroutine:
	// it must not block. May be nil.
	Published func(event any)
}

// Attach adds a component to the node: it is fed the messages that members send to its
// service, and every event that the node's other components publish. Another component
// with the same name or service is an error, [machine.ErrTaken]; a node that
// has ended returns [ErrClosed].
func (n *Node) Attach(a Attachment) (*machine.Handle, error) {
	if a.Component.Codec != nil {
		a.Component.Codec = meteredCodec{a.Component.Codec, a.Component.Name, n.metrics}
	}
	if _, taken := n.attached.LoadOrStore(a.Component.Name, a); taken {
		return nil, fmt.Errorf("membership: component %s: %w", a.Component.Name, machine.ErrTaken)
	}
	handle, err := n.driver.Attach(a.Component)
	if err != nil {
		n.attached.Delete(a.Component.Name)
	}
	if errors.Is(err, machine.ErrClosed) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("membership: component %s: %w", a.Component.Name, err)
	}
	if a.Component.Service != 0 {
		h := n.admission.receiver(a.Component, handle)
		if a.Component.Service != protocol.Service { // By which a node becomes a member.
			h = n.strangers.keepOut(a.Component.Service, h)
		}
		n.transport.Handle(a.Component.Service, h)
	}
	return handle, nil
}

// Notices lets f hear of the transport's connections from now on, on the transport's
// goroutines. f must return soon.
func (n *Node) Notices(f func(transport.Notice)) { n.connections.listen(f) }

// Transport returns the node's transport, for components whose messages do not go through
// a machine. Its handlers get messages of members only: a connection waits for a moment
// until the news that its peer has joined has come, and then drops and counts the peer's
// frames, see [Stats].
func (n *Node) Transport() transport.Transport {
	return membersTransport{n.transport, &n.strangers, n.life.ctx}
}

// Clock returns the clock by which the node's machines are stepped.
func (n *Node) Clock() *machine.SystemClock { return n.clock }

// ports connects the driver to everything outside of the machines.
func (n *Node) ports() machine.Ports {
	return machine.Ports{
		Clock: n.clock, Send: n.send, Publish: n.dispatch, Other: n.other,
		Decide: func(component string, now machine.Now, d machine.Decide) {
			n.decisions.decided(component, now, d)
			n.spans.decided(component, d)
		},
		Call: func(ctx context.Context, component string, c machine.Call) (any, error) {
			return n.spans.call(ctx, c, func(ctx context.Context) (any, error) {
				return n.metrics.call(ctx, c.Port, func() (any, error) { return n.call(ctx, component, c) })
			})
		},
	}
}

// send encodes a message straight into the lane's batch. Messages that a lane does not
// take are counted: the protocols repeat what matters. The answer to a heartbeat, or to a
// relay, goes with the receipt for the question where it can: it may be lost or overtake
// others, and every second packet of a quiet cluster is so saved.
func (n *Node) send(c *machine.Component, s machine.Send) {
	var failed, err error
	size := 0
	encode := func(dst []byte) []byte {
		out, err := c.Codec.Append(dst, s.Message)
		failed, size = err, len(out)-len(dst)
		return out
	}
	if !answers(n.transport, c, s, encode) {
		err = n.transport.Lane(s.To, s.Lane).Append(c.Service, encode)
	}
	machine.Assert(failed == nil, "a component encodes its own messages", "component", c.Name, "error", failed)
	if err != nil {
		n.counters.unsent.Add(1)
		n.log.Debug("message not sent", "to", s.To.String(), "component", c.Name, "error", err)
		return
	}
	n.admission.sent(s.To, s.Message)
	n.metrics.sent(c.Name, s.Message, size)
}

// answers sends the answer to a heartbeat, to the question of a relay, or to one asked of a
// relay, with a receipt, and reports whether it has.
func answers(t transport.Transport, c *machine.Component, s machine.Send, encode func([]byte) []byte) bool {
	switch s.Message.(type) {
	case protocol.HeartbeatReply, protocol.GiveStanding, protocol.LendStanding:
	default:
		return false
	}
	answerer, ok := t.(transport.Answerer)
	return ok && answerer.Answer(s.To, s.Lane, c.Service, encode)
}

// call carries out a call of a strategy.
func (n *Node) call(ctx context.Context, component string, c machine.Call) (any, error) {
	if component == ComponentName && c.Port == protocol.CallDowning {
		return n.loaded.decide(ctx, c.Request.(protocol.DowningRequest))
	}
	if component == ComponentName && c.Port == protocol.CallRemember {
		return nil, n.disk.remember(c.Request.(protocol.Record))
	}
	if component == ComponentName && c.Port == protocol.CallLookup {
		return n.search.lookUp(ctx, c.Request.(discovery.Query))
	}
	if component == ComponentName && c.Port == protocol.CallJoinDecider {
		return n.search.decide(ctx, c.Request.(bootstrap.Observations))
	}
	if component == ComponentName && c.Port == protocol.CallFailureDetector {
		return judgedBy(ctx, n.judge, c.Request.(fd.Batch))
	}
	if a, ok := n.attached.Load(component); ok && a.(Attachment).Call != nil {
		return a.(Attachment).Call(ctx, c)
	}
	return nil, fmt.Errorf("membership: nothing answers calls of component %q to port %q", c.Port, component)
}

// judgedBy asks the judge. That it has begun anew is an answer. A batch belongs to the judge that
// is asked, and the machine holds the verdicts against it afterwards: so the judge gets nodes of
// its own.
func judgedBy(ctx context.Context, j fd.Judge, b fd.Batch) (any, error) {
	b.Subjects = slices.Clone(b.Subjects)
	verdicts, err := j.Judge(ctx, b)
	if errors.Is(err, fd.ErrOutOfStep) {
		return protocol.OutOfStep{}, nil
	}
	return verdicts, err
}

// other carries out effects that only some machines have.
func (n *Node) other(c *machine.Component, e machine.Effect) {
	switch e := e.(type) {
	case protocol.Probe:
		// Owned by the node: ends with its limit or the node, run waits for it.
		n.clients.Go(func() {
			n.probe(e)
		})
	case protocol.Block:
		n.transport.Block(e.Node, e.Reason)
	default:
		a, _ := n.attached.Load(c.Name)
		machine.Assert(a != nil && a.(Attachment).Other != nil, "an effect has somebody to carry it out", "component", c.Name, "effect", e)
		a.(Attachment).Other(e)
	}
}

// probe dials a joining node back.
func (n *Node) probe(e protocol.Probe) {
	ctx, cancel := context.WithTimeout(n.life.ctx, e.Limit)
	defer cancel()
	node, err := n.transport.Probe(ctx, e.Address, e.Roles...)
	_ = n.machine.PostWait(n.life.ctx, protocol.Probed{Address: e.Address, Node: node, Err: err}) // A node that ended needs no answer.
}

// dispatch hands an event that a component published to the node, if it is membership's, and to what is
// attached to the component.
func (n *Node) dispatch(c *machine.Component, event any) {
	if c.Name == ComponentName {
		n.membershipEvent(event)
	}
	if a, ok := n.attached.Load(c.Name); ok && a.(Attachment).Published != nil {
		a.(Attachment).Published(event)
	}
}

// membershipEvent handles an event of the membership machine.
func (n *Node) membershipEvent(event any) {
	switch e := event.(type) {
	case component.Changed:
		n.strangers.learn(e.State)
		n.report.waiting.Store(nil)
		n.search.joined()
		view := viewOf(e)
		prev, events := n.hub.advance(view)
		n.decisions.journal.advanced(prev, view, events)
	case component.Standing:
		n.standing.set(e.Until)
		n.metrics.lapses.moved(n.clock.Instant(), e)
	case component.Fenced:
		n.hub.publish(Fenced{Node: e.Node, Graceful: e.Graceful})
	case protocol.Settled:
		n.loaded.settled(e.Load)
	case protocol.Unloaded:
		n.loaded.unload(e.Load)
	case protocol.Refused:
		n.counters.refused.Add(1)
		source := n.Source(e.Peer)
		n.limited.Log(aboutOf("", e.What, e.Peer.String(), e.Reason), refusalLevel(e), gossip.Escape(fmt.Sprintf("%s of %s is refused", e.What, e.Peer)), "peer", e.Peer.String(), "address", source.Address,
			"certificate", source.Certificate, "what", e.What, "why", e.Refusal.String(), "reason", e.Reason)
		n.hub.publish(Refused{Peer: e.Peer, What: e.What, Reason: e.Reason})
	case protocol.SettingsDiffer:
		for _, d := range e.Differences {
			n.limited.Warn("settings should be equal on all nodes", "peer", e.Peer.String(), "key", d.Key, "member", d.Member, "joiner", d.Joiner)
		}
	case protocol.Waiting:
		w := n.report.wait(e, n.search.found != nil, n.clock.Now().Wall)
		n.log.Info(gossip.Escape("this node waits to join: "+w.Reason), "voters", w.voters(), "cure", w.Cure)
	case protocol.SearchProgress:
		n.search.sought(e, n.clock.Now().Wall)
		if n.View().Member() != nil {
			n.search.joined()
		}
	case protocol.FormAnswered:
		n.report.forms.answer(e.ID, e)
	case protocol.CommandAnswered:
		n.commands.orders.answer(e.ID, e)
	case protocol.RecordLost:
		n.report.recordLost.Store(true)
		n.log.Warn("the record could not be written and was removed: after a restart this node has no vote in who starts the cluster again", "error", e.Reason)
	case protocol.Strangers:
		for _, s := range n.report.meet(e) {
			n.limited.Warn(gossip.Escape("a node of another cluster answers: "+s.Reason), "peer", s.Node.String(), "cluster", s.Cluster.String())
		}
	case protocol.SilentSeeds:
		n.log.Warn("this node has founded a cluster, and some listed nodes were silent: if a cluster runs there, there are two now", "silent", fmt.Sprint(e.Addresses))
	case protocol.NodesWithoutRecord:
		n.log.Warn("nodes without a node.data-dir and nodes with one are in one cluster: after a restart of all only those with one count, "+
			"and if they are no majority of the voters none starts by itself", "without", fmt.Sprint(e.Addresses))
	case protocol.Yielded:
		n.log.Error(gossip.Escape("this node hosts nothing any more: " + e.Reason))
	case protocol.Examined:
		n.metrics.inquiry.Answer(e.ID, e)
	case component.Stopping: // The decision is recorded, and the last line of the node reports it.
		n.standing.set(0)
		n.life.end(stopError(e))
	}
}

// stopError turns the reason for which a node ends into its error.
func stopError(s component.Stopping) error {
	switch s.Reason {
	case component.StopLeft:
		return nil
	case component.StopDowned:
		return fmt.Errorf("%w: %s", ErrDown, s.Detail)
	case component.StopRefused:
		return fmt.Errorf("%w: %s", ErrRefused, s.Detail)
	case component.StopYielded:
		return fmt.Errorf("%w: %s", ErrYielded, s.Detail)
	case component.StopDisk:
		return fmt.Errorf("%w: %s", ErrDisk, s.Detail)
	default:
		return fmt.Errorf("%w: %s", ErrJoinFailed, s.Detail)
	}
}

// refusalLevel is the level at which a refusal is logged. A message may overtake the news
// that its sender has joined, and an answer may come after the wait for it: both happen
// in good health.
func refusalLevel(e protocol.Refused) slog.Level {
	switch e.Refusal {
	case protocol.RefusedNotMember, protocol.RefusedUnsolicited, protocol.RefusedByPeer: // The last is logged by connections.
		return slog.LevelDebug
	case protocol.RefusedPredecessor: // A node was restarted faster than its predecessor was found dead.
		return slog.LevelInfo
	default:
		return slog.LevelWarn
	}
}
