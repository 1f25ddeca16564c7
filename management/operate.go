// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// The operations by which operators change who is a member ([Operations]): a member leaves ([operations.leave]),
// members are declared failed ([operations.down]), a node joins ([operations.join]), the whole cluster prepares to be
// stopped ([operations.shutdown]). Each first finds out whether the node that was asked is one that can do it
// ([operations.takesPart]) and which member is meant ([operations.find]). A command goes on with the id of that member,
// so that it does not meet who is started at its address meanwhile.

// The operations about members, for [OperatorHeader].
const (
	LeaveOperation = "leave"
	DownOperation  = "down"
	JoinOperation  = "join"
)

// SelfName is the name of the node that is asked itself, in a path where a member is named.
const SelfName = "self"

// What names of members in a path are, for [OpenAPI].
const (
	aboutMember = "The id of the member, host:port#hex, which means this incarnation and no other; or its address, host:port, which means whoever is " +
		"the member there when the command is carried out; or self, the node that is asked"
	aboutMembers = "Members, separated by commas. " + aboutMember
)

// membersNamed is how many members an error names at most.
const membersNamed = 8

// LeaveAnswer is the answer to a request that a member leaves.
type LeaveAnswer struct {
	Self   string `json:"self"`   // The node that was asked.
	Member string `json:"member"` // The member that leaves.
	Status string `json:"status"` // Its status now: "leaving", or "exiting" if it had been asked before.
}

// Downed is the answer to a request that members are declared failed.
type Downed struct {
	Self    string   `json:"self"`    // The node that was asked.
	Members []string `json:"members"` // The members that are declared failed.
	Costs   []string `json:"costs"`   // What that costs beside what those members host, each a sentence.
}

// Joining is the answer to a request that a node joins.
type Joining struct {
	Self  string   `json:"self"`  // The node that was asked, and begins to join.
	Seeds []string `json:"seeds"` // The addresses that it asks.
}

// Operations returns the routes by which operators change who is a member:
//
//	POST /v1/members/{member}/leave   [LeaveAnswer]
//	POST /v1/members/{members}/down   [Downed]; force
//	POST /v1/join/{seeds}             [Joining]
//	POST /v1/shutdown                 [ClusterShutdown]; force
//
// A member is named by its whole id, "host:port#hex", which no other incarnation has; by its
// address alone, which means whoever is the member there when the command is carried out; or as
// "self" if it is the node that is asked. Several are separated by commas. A name that no member
// has is refused with 404, what became of it, and nothing changed. Each takes the parameter cluster: the name or the
// id of the cluster to which the node that is asked must belong, or it refuses.
//
// A node that is asked to declare itself failed, or so many that those who are left have no
// majority, refuses with what that costs, unless force is true. So does one that is to have its whole cluster
// prepare to be stopped.
func Operations(node *membership.Node) []Route {
	o := operations{node}
	const cluster = "The name or the id of the cluster to which the node that is asked must belong, or nothing is done"
	named := map[string]string{"member": aboutMember, "members": aboutMembers, "cluster": cluster}
	return []Route{
		{Path: "/v1/members/{member}/leave", Summary: "Have a member leave in order", Result: LeaveAnswer{}, Query: []string{"cluster"}, About: named, Operation: LeaveOperation, Authorized: true, Answer: o.leave},
		{Path: "/v1/members/{members}/down", Summary: "Declare members failed", Result: Downed{}, Query: []string{"cluster", "force"}, About: named, Operation: DownOperation, Authorized: true, Answer: o.down},
		{Path: "/v1/join/{seeds}", Summary: "Have a node that is in no cluster join one", Result: Joining{}, Query: []string{"cluster"}, Operation: JoinOperation, Authorized: true, Answer: o.join},
		{Path: "/v1/shutdown", Summary: "Have the whole cluster prepare to be stopped", Result: ClusterShutdown{}, Query: []string{"cluster", "force"}, Operation: ShutdownOperation, Authorized: true, Answer: o.shutdown},
	}
}

// operations answers the routes of [Operations].
type operations struct{ node *membership.Node }

// leave has a member leave in order.
func (o operations) leave(ctx context.Context, r Request) (any, error) {
	if err := o.takesPart(r); err != nil {
		return nil, err
	}
	m, err := o.find(r.Path("member"))
	if err != nil {
		return nil, err
	}
	answer := LeaveAnswer{Self: o.node.Self().String(), Member: m.Node.String(), Status: gossip.Leaving.String()}
	switch {
	case m.Status == gossip.Down:
		return nil, refuse(http.StatusConflict, "%v is down: it does not leave, it is removed", m.Node)
	case m.Status >= gossip.Leaving: // Asked before.
		answer.Status = m.Status.String()
		return answer, nil
	}
	return answer, o.commanded(o.node.LeaveMember(ctx, m.Node.String()))
}

// down declares members failed.
func (o operations) down(ctx context.Context, r Request) (any, error) {
	if err := o.takesPart(r); err != nil {
		return nil, err
	}
	force, err := forced(r)
	if err != nil {
		return nil, err
	}
	var members []*gossip.Member
	answer := Downed{Self: o.node.Self().String(), Costs: []string{}}
	for name := range strings.SplitSeq(r.Path("members"), ",") {
		m, err := o.find(name)
		if err != nil {
			return nil, err
		}
		if m.Status == gossip.Down {
			return nil, refuse(http.StatusConflict, "%v is down already: it is removed as soon as all others know that", m.Node)
		}
		if !slices.Contains(members, m) {
			members, answer.Members = append(members, m), append(answer.Members, m.Node.String())
		}
	}
	if costs := costs(o.node.View(), answer.Members); len(costs) > 0 {
		if !force {
			return nil, &Error{Status: http.StatusConflict, Text: "nothing was done, since this costs more than those members: say force if it is meant", Reasons: costs}
		}
		answer.Costs = costs
	}
	// The node itself comes last: it ends by it, and would leave out the others.
	slices.SortStableFunc(members, func(a, b *gossip.Member) int { return selfLast(o.node.Self(), a.Node, b.Node) })
	return answer, each(members, func(m *gossip.Member) error { return o.commanded(o.node.Down(ctx, m.Node.String())) })
}

// each has something done to members in turn. The error of one says to which others it was done before.
func each(members []*gossip.Member, do func(*gossip.Member) error) error {
	for i, m := range members {
		err := do(m)
		if err == nil {
			continue
		}
		if i == 0 {
			return err
		}
		status := http.StatusConflict
		if e, ok := errors.AsType[*Error](err); ok {
			status = e.Status
		}
		return refuse(status, "this was done to %s, but not to %v: %v", roll(members[:i]), m.Node, err)
	}
	return nil
}

// selfLast orders a node behind all others.
func selfLast(self, a, b gossip.NodeID) int {
	switch {
	case a == self && b != self:
		return 1
	case b == self && a != self:
		return -1
	}
	return 0
}

// costs says what it costs that members are declared failed, beside the members themselves; none
// if those who are left go on.
func costs(view membership.View, members []string) []string {
	var why []string
	named := func(n gossip.NodeID) bool { return slices.Contains(members, n.String()) }
	if named(view.Self) {
		why = append(why, fmt.Sprintf("%v is the node that was asked: it ends at once and hands nothing over, so what it hosts is suspended until others "+
			"may take it over; quorate leave hands over first", view.Self))
	}
	state := view.State
	var voters, left int
	counts := func(n gossip.NodeID) bool {
		m := state.Member(n)
		return m != nil && m.Status <= gossip.Leaving && (n == view.Self || state.Reachable(n)) && !named(n)
	}
	for _, n := range state.Config().Voters {
		voters++
		if counts(n) {
			left++
		}
	}
	if voters == 0 || view.Base.Wins(counts) {
		return why
	}
	cost := fmt.Sprintf("of %d voters %d would be left, which is no majority: ", voters, left)
	if d := state.Downing(); d.MajorityOnly {
		cost += "all nodes that are left end as well, and the cluster with them, until a majority of the voters is started again with its data"
	} else {
		cost += fmt.Sprintf("the strategy %s decides whether those who are left go on, or end as well", d.Name)
	}
	return append(why, cost)
}

// join has a node that is in no cluster look for one.
func (o operations) join(ctx context.Context, r Request) (any, error) {
	view := o.node.View()
	if view.Member() != nil {
		return nil, refuse(http.StatusConflict, "this node is a member of cluster %v already: only a node that is in none joins", view.State.Cluster())
	}
	if err := o.belongs(r); err != nil {
		return nil, err
	}
	answer := Joining{Self: o.node.Self().String()}
	for seed := range strings.SplitSeq(r.Path("seeds"), ",") {
		a, err := gossip.ParseAddress(seed)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "the seed node %q is no \"host:port\"", clip(seed))
		}
		answer.Seeds = append(answer.Seeds, a.String())
	}
	return answer, o.commanded(o.node.Join(ctx, answer.Seeds...))
}

// takesPart refuses a command about members on a node that is in no cluster, or in another one than was
// meant.
func (o operations) takesPart(r Request) error {
	if ended, why := end(o.node); ended {
		return refuse(http.StatusConflict, "%s: ask another node", why)
	}
	if err := o.belongs(r); err != nil {
		return err
	}
	if o.node.View().Member() != nil {
		return nil
	}
	text := "this node is a member of no cluster"
	if w := o.node.Waiting(); w != nil {
		text += ", it waits for one (" + w.Reason + ")"
	}
	return refuse(http.StatusConflict, "%s: ask a member, or end the process", text)
}

// belongs refuses a command that was meant for the nodes of another cluster.
func (o operations) belongs(r Request) error {
	want, id := r.Query("cluster"), o.node.State().Cluster()
	if want == "" || want == o.node.ClusterName() || !id.IsZero() && want == id.String() {
		return nil
	}
	if id.IsZero() {
		return refuse(http.StatusConflict, "this node belongs to the cluster named %s, not to %q: nothing was done", o.node.ClusterName(), clip(want))
	}
	return refuse(http.StatusConflict, "this node belongs to the cluster named %s, %v, not to %q: nothing was done", o.node.ClusterName(), id, clip(want))
}

// find returns the member that a name stands for: an address, a whole id, or [SelfName].
func (o operations) find(name string) (*gossip.Member, error) {
	if name == SelfName {
		name = o.node.Self().String()
	}
	if _, err := membership.ParseMember(name); err != nil {
		return nil, refuse(http.StatusBadRequest, "%q names no member: give its address, or its id, as /v1/members has them, or %s", clip(name), SelfName)
	}
	m, err := o.node.View().Find(name)
	return m, o.commanded(err)
}

// roll names members, not too many.
func roll(members []*gossip.Member) string {
	names := make([]string, 0, membersNamed)
	for _, m := range members[:min(len(members), membersNamed)] {
		names = append(names, m.Node.Address.String())
	}
	text := strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return text
}

// commanded gives an error of a command to the membership its status.
func (o operations) commanded(err error) error {
	unknown, none := errors.AsType[*membership.UnknownMemberError](err)
	switch {
	case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case none && unknown.Now.IsZero() && unknown.Removed.Node.IsZero():
		return refuse(http.StatusNotFound, "%s, whose members are %s", strings.TrimPrefix(err.Error(), "membership: "), roll(o.node.State().Members()))
	case none:
		return refuse(http.StatusNotFound, "%s", strings.TrimPrefix(err.Error(), "membership: "))
	}
	return refuse(http.StatusConflict, "%s", strings.TrimPrefix(err.Error(), "membership: "))
}
