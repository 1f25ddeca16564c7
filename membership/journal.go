// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The entry points come first: a decision ([journal.decision]), a new view with its
// events ([journal.advanced]), the end of the node ([journal.ended]). Below them are the
// lines of each event, and the sentences for decisions.

// journal writes what happens to a cluster into the log of a node. Each change is one
// line at level info, with a sentence as message:
//
//	the node decides ──decision──┐ kept if an event will tell of it
//	                             ▼
//	the view changes ──events──> lines, with the reason where this node decided
//
// So the leader does not log twice what it has decided, and the other members log it as
// well. A decision of this node that no event tells of is a line of its own.
type journal struct {
	log     *slog.Logger
	limited *slog.Logger // For decisions that may be taken often.

	mu   sync.Mutex // Guards kept: decisions of all components and views come from one goroutine, the last line from another.
	kept []machine.Decide
}

// decision logs a decision of a component, keeps it for the event that follows, or drops it when that event says
// more.
func (j *journal) decision(component string, d machine.Decide) {
	if component == ComponentName && toldWithMore(d) {
		return
	}
	if component == ComponentName && told(d) && !d.Often {
		j.mu.Lock()
		j.kept = append(j.kept, d)
		j.mu.Unlock()
		return
	}
	j.line(component, d)
}

// line logs a decision; one that may be taken often with each reason once a minute, and a few reasons a minute, since a
// strategy may have chosen them. Subject and verdict may be names that others have given, or what an operator has asked
// for.
func (j *journal) line(component string, d machine.Decide) {
	ctx, log := context.Background(), j.log
	if d.Often {
		ctx, log = machine.About(ctx, d.Reason, component, d.Topic, d.Subject, d.Verdict), j.limited
	}
	log.InfoContext(ctx, gossip.Escape(sentence(component, d)), "component", component, "topic", d.Topic, "subject", d.Subject, "verdict", d.Verdict, "reason", oneLine(d.Reason))
}

// advanced logs what led from one view to the next, and the decisions of the step that
// made the change if no event tells of them.
func (j *journal) advanced(prev, next View, events []Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if me := next.Member(); me == nil || me.Status == gossip.Down {
		// The beliefs of a node that is down about the others count no more.
		events = slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
			_, reach := e.(ReachabilityChanged)
			return reach
		})
	}
	if len(prev.State.Members()) == 0 {
		j.entered(next.Self, events)
	} else {
		for _, e := range events {
			j.event(e)
		}
	}
	j.flush()
}

// flush logs the kept decisions that no event told of.
func (j *journal) flush() {
	for _, d := range j.kept {
		j.line(ComponentName, d)
	}
	j.kept = nil
}

// entered says in one line what a node found when it became a member, and then logs the
// changes of the node itself: that the others have joined is no news.
func (j *journal) entered(self gossip.NodeID, events []Event) {
	var found []string
	var own []MemberChanged
	var rest []Event
	for _, e := range events {
		switch e := e.(type) {
		case MemberChanged:
			switch {
			case e.Member.Node == self:
				own = append(own, e)
			case e.Member.Status != gossip.Joining || e.Previous == gossip.StatusNone:
				found = addMember(found, e.Member)
			}
		default:
			rest = append(rest, e)
		}
	}
	if len(found) > 0 {
		attrs := j.because(self.String(), "joined", []any{"members", found})
		j.log.Info(gossip.Escape("this node has joined a cluster of "+plural(len(found), "member", "members")), attrs...)
	}
	for _, e := range own {
		if e.Member.Status != gossip.Joining {
			j.member(e)
		}
	}
	for _, e := range rest {
		j.event(e)
	}
}

// addMember adds the status of a member, in place of the one before.
func addMember(list []string, m *gossip.Member) []string {
	id := m.Node.String()
	if n := len(list); n > 0 && strings.HasPrefix(list[n-1], id+" ") {
		list = list[:n-1]
	}
	return append(list, id+" "+m.Status.String())
}

// event logs one change.
func (j *journal) event(e Event) {
	switch e := e.(type) {
	case MemberChanged:
		j.member(e)
	case MemberRemoved:
		j.tell(e.Member, removal(e.Previous), "removed", "previous", e.Previous.String())
	case ReachabilityChanged:
		if e.Reachable {
			j.tell(e.Member, "is reachable again", "reachable")
		} else {
			j.tell(e.Member, "is unreachable", "unreachable")
		}
	case LeaderChanged:
		if e.Leader.IsZero() {
			j.log.Info("nobody leads the cluster now")
		} else {
			j.log.Info(gossip.Escape(fmt.Sprintf("%s leads the cluster now", e.Leader.Address)), "member", e.Leader.String())
		}
	}
}

// removal says how a member was removed.
func removal(previous gossip.Status) string {
	if previous == gossip.Down {
		return "was removed after it had been declared down"
	}
	return "was removed after it had left"
}

// member logs the new status of a member. The steps of a member on its way out, and its
// up-number, are for debugging.
func (j *journal) member(e MemberChanged) {
	m := e.Member
	if m.Status == e.Previous {
		return
	}
	switch m.Status {
	case gossip.Joining:
		j.tell(m, "joins", "admitted", "roles", m.Roles, "zone", m.Zone, "app-version", m.AppVersion)
	case gossip.WeaklyUp:
		j.tell(m, "is weakly up", "weakly-up")
	case gossip.Up:
		j.tell(m, "is up", "up", "up-number", uint64(m.UpNumber))
	case gossip.Preparing:
		j.tell(m, "prepares for a shutdown of the whole cluster", "preparing")
	case gossip.Ready:
		j.tell(m, "is ready for a shutdown of the whole cluster", "ready")
	case gossip.Leaving:
		j.tell(m, "leaves", "leaving")
	case gossip.Exiting:
		j.tell(m, "has handed its work over", "exiting")
	case gossip.Down:
		j.downed(m)
	default:
		j.tell(m, "is "+m.Status.String(), m.Status.String())
	}
}

// downed logs by whom and why a member was declared down. The state says so, unless this
// node decided it and has a longer reason.
func (j *journal) downed(m *gossip.Member) {
	id := m.Node.String()
	attrs := []any{"member", id}
	if !m.Downed.IsZero() {
		attrs = append(attrs, "by", m.Downed.By.String())
	}
	all := j.because(id, "down", attrs)
	if len(all) == len(attrs) && m.Downed.Why != "" {
		all = append(all, "reason", m.Downed.Why)
	}
	j.log.Info(gossip.Escape(fmt.Sprintf("member %s is declared down", m.Node.Address)), all...)
}

// tell logs a change of a member, with the reason if this node decided it.
func (j *journal) tell(m *gossip.Member, does, verdict string, more ...any) {
	level := slog.LevelInfo
	if verdict == "exiting" {
		level = slog.LevelDebug
	}
	attrs := j.because(m.Node.String(), verdict, append([]any{"member", m.Node.String()}, more...))
	j.log.Log(context.Background(), level, gossip.Escape(fmt.Sprintf("member %s %s", m.Node.Address, does)), attrs...)
}

// because appends the reason of the decision behind the present line.
func (j *journal) because(subject, verdict string, attrs []any) []any {
	i := slices.IndexFunc(j.kept, func(d machine.Decide) bool { return d.Subject == subject && d.Verdict == verdict })
	if i < 0 {
		return attrs
	}
	attrs = append(attrs, "reason", oneLine(j.kept[i].Reason))
	j.kept = slices.Delete(j.kept, i, i+1)
	return attrs
}

// ended writes the last line of a node.
func (j *journal) ended(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flush()
	switch {
	case err == nil:
		j.log.Info("this node has left the cluster and ends")
	case errors.Is(err, ErrClosed):
		j.log.Info("this node was closed")
	default:
		text := oneLine(err.Error())
		j.log.Error(gossip.Escape("this node ends: "+strings.TrimPrefix(strings.TrimPrefix(text, "membership: "), "this node ")), "error", text)
	}
}

// toldWithMore reports whether the node itself writes a line that says more than a
// decision of membership: its last line, the voters that it waits for, and that it
// yields.
func toldWithMore(d machine.Decide) bool {
	switch d.Topic + "/" + d.Verdict {
	case "join/waiting", "join/listed nodes silent", "join/records are not kept", "cluster/yielded", "cluster/unrelated":
		return true
	default:
		return d.Topic == "stop"
	}
}

// told reports whether an event tells of a decision of membership.
func told(d machine.Decide) bool {
	switch d.Topic {
	case "leader":
		return d.Subject != "tombstones"
	case "reachability":
		return d.Verdict != "paused"
	case "join":
		return d.Verdict == "admitted" || d.Verdict == "joined"
	case "leave":
		return d.Verdict == "leaving"
	case "downing":
		return d.Verdict == "down"
	default:
		return false
	}
}

// sentence says a decision in words.
func sentence(component string, d machine.Decide) string {
	if component == ComponentName {
		if text := ownSentence(d); text != "" {
			return text
		}
	}
	return fmt.Sprintf("%s of %s: %s", d.Topic, d.Subject, d.Verdict)
}

// ownSentence returns the sentence for a decision of membership that has one of its own,
// otherwise "".
func ownSentence(d machine.Decide) string {
	switch d.Topic {
	case "join":
		return joinSentence(d)
	case "downing":
		return downingSentence(d)
	case "downing-report":
		return "the downing strategy only reports: this node " + d.Verdict
	case "cluster":
		return "this node's cluster " + d.Verdict
	}
	switch d.Topic + "/" + d.Verdict {
	case "leave/confirmed":
		return "this node hosts nothing any more: " + oneLine(d.Reason)
	case "leave/leaving":
		return d.Subject + " was asked to leave"
	case "reachability/paused":
		return "this node stood still"
	case "reachability/unreachable":
		return d.Subject + " does not answer this node"
	case "reachability/reachable":
		return d.Subject + " answers this node again"
	case "leader/pruned":
		return "records of members that are long gone were forgotten"
	}
	return ""
}

func joinSentence(d machine.Decide) string {
	switch d.Verdict {
	case "no vote":
		return d.Subject + " gave no vote"
	case "retry":
		return "this node begins anew to join"
	case "admitted":
		return d.Subject + " may join"
	default:
		return "this node has " + d.Verdict
	}
}

func downingSentence(d machine.Decide) string {
	switch d.Subject + "/" + d.Verdict {
	case "strategy/changed":
		return "the downing strategy of the cluster is settled"
	case "strategy/not loaded":
		return "the downing strategy of the cluster is not loaded here"
	case "strategy/loaded", "strategy/unloaded":
		return "a downing strategy was " + d.Verdict
	case "strategy/unfit":
		return "the downing strategy does not fit the cluster"
	case "strategy/fits":
		return "the downing strategy fits the cluster"
	case "strategy/waiting":
		return "a change of the downing strategy waits"
	case "answer/dropped":
		return "an answer of the downing strategy came too late"
	}
	switch d.Verdict {
	case "down":
		return d.Subject + " is declared down"
	case "unanswered":
		return fmt.Sprintf("the downing strategy of %s gave no answer", d.Subject)
	case "answered":
		return fmt.Sprintf("the downing strategy of %s decided", d.Subject)
	default:
		return "the downing strategy decided: " + d.Verdict
	}
}

// oneLine joins the lines of a text into one.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// connectionLevel is the level at which a refused connection is logged first. All nodes
// hear from membership that a node was restarted; a node that still dials the incarnation
// before, or is dialled by such a node, is in good health.
func connectionLevel(incarnation bool) slog.Level {
	if incarnation {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}
