// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downingpolicy

import (
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	fields "github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/plugins/internal/wire"
	pluginv1 "github.com/quorate/quorate/plugins/proto/quorate/plugin/v1"
)

// A view is written with a table of nodes to which its columns refer by index
// ([ViewToProto]), and read with a check of each column ([ViewFromProto]). Decisions are
// at the end.

// ViewToProto returns the request for a view, or the error of [downing.View.Validate].
func ViewToProto(v *downing.View) (*pluginv1.DowningDecideRequest, error) {
	if err := v.Validate(); err != nil {
		return nil, err
	}
	r, _ := whole(v)
	return r, nil
}

// whole returns the request for a valid view, and its table of nodes.
func whole(v *downing.View) (*pluginv1.DowningDecideRequest, *nodeTable) {
	t := &nodeTable{members: v.Members, list: newNodes(len(v.Members))}
	for _, m := range v.Members {
		appendNode(t.list, m.Node)
	}
	r := situation(v, t)
	r.Nodes, r.Members = t.list, membersToProto(v.Members)
	return r, t
}

// situation returns the request for a valid view without its nodes and members.
func situation(v *downing.View, t *nodeTable) *pluginv1.DowningDecideRequest {
	r := &pluginv1.DowningDecideRequest{
		Self:          t.place(v.Self),
		Complaints:    complaintsToProto(v.Unreachable, t),
		Seen:          t.places(v.Seen),
		Base:          make([]*pluginv1.Voters, len(v.Base)),
		StableNanos:   int64(v.Stable),
		UnstableNanos: int64(v.Unstable),
	}
	for i, voters := range v.Base {
		r.Base[i] = &pluginv1.Voters{Node: t.places(voters)}
	}
	return r
}

// nodeTable is the table of nodes of a message that is being written: the members in
// their order, then other nodes that the view names.
type nodeTable struct {
	members []*gossip.Member
	next    int // Look-ups are usually in the order of the table too.
	others  map[gossip.NodeID]uint32
	list    *pluginv1.Nodes // Nil: the table was sent before, and can have no further nodes.
	lacking bool            // A node is not in the table that was sent before.
}

// place returns the index of a node.
func (t *nodeTable) place(id gossip.NodeID) uint32 {
	if t.next < len(t.members) && t.members[t.next].Node == id {
		t.next++
		return uint32(t.next - 1)
	}
	i, ok := slices.BinarySearchFunc(t.members, id, compareMember)
	t.next = i
	if ok {
		t.next++
		return uint32(i)
	}
	place, ok := t.others[id]
	switch {
	case ok:
	case t.list == nil:
		t.lacking = true
	default:
		if t.others == nil {
			t.others = make(map[gossip.NodeID]uint32)
		}
		place = uint32(len(t.list.GetHost()))
		t.others[id] = place
		appendNode(t.list, id)
	}
	return place
}

func compareMember(m *gossip.Member, id gossip.NodeID) int { return m.Node.Compare(id) }

func (t *nodeTable) places(ids []gossip.NodeID) []uint32 {
	places := make([]uint32, len(ids))
	for i := range ids {
		places[i] = t.place(ids[i])
	}
	return places
}

func newNodes(n int) *pluginv1.Nodes {
	return &pluginv1.Nodes{Host: make([]string, 0, n), Port: make([]uint32, 0, n), Uid: make([]uint64, 0, n)}
}

func appendNode(n *pluginv1.Nodes, id gossip.NodeID) {
	n.Host = append(n.Host, id.Address.Host)
	n.Port = append(n.Port, uint32(id.Address.Port))
	n.Uid = append(n.Uid, uint64(id.UID))
}

func membersToProto(members []*gossip.Member) *pluginv1.Members {
	n := len(members)
	p := &pluginv1.Members{
		Status: make([]pluginv1.MemberStatus, n), UpNumber: make([]uint64, n),
		Zone: make([]uint32, n), AppVersion: make([]uint32, n), Roles: make([]uint32, n),
	}
	var zones, versions wire.Texts
	var roles wire.RoleSets
	for i, m := range members {
		p.Status[i] = pluginv1.MemberStatus(m.Status)
		p.UpNumber[i] = uint64(m.UpNumber)
		p.Zone[i] = zones.Add(m.Zone)
		p.AppVersion[i] = versions.Add(m.AppVersion)
		p.Roles[i] = roles.Add(m.Roles)
	}
	p.Text, p.RoleSets = wire.JoinTables(&zones, &versions, p.AppVersion), roles.List
	return p
}

func complaintsToProto(records []gossip.Record, t *nodeTable) *pluginv1.Complaints {
	n := len(records)
	p := &pluginv1.Complaints{Observer: make([]uint32, n), Subject: make([]uint32, n), Reach: make([]pluginv1.Reach, n)}
	for i := range records {
		p.Observer[i] = t.place(records[i].Observer)
		p.Subject[i] = t.place(records[i].Subject)
		p.Reach[i] = pluginv1.Reach(records[i].Status)
	}
	return p
}

// ViewFromProto returns the view of a received request, checked also by
// [downing.View.Validate].
func ViewFromProto(r *pluginv1.DowningDecideRequest) (downing.View, error) {
	c, err := castFromProto(r)
	if err != nil {
		return downing.View{}, err
	}
	return c.view(r)
}

// cast is whom a view is about: the members, and all nodes that it names. The members are
// the first of them.
type cast struct {
	ids     []gossip.NodeID
	members []*gossip.Member
}

func castFromProto(r *pluginv1.DowningDecideRequest) (cast, error) {
	ids, err := nodesFromProto(r.GetNodes())
	if err != nil {
		return cast{}, err
	}
	members, err := membersFromProto(r.GetMembers(), ids)
	return cast{ids, members}, err
}

// clone returns a cast of the same members whose lists a view may have for itself.
func (c cast) clone() cast { return cast{slices.Clone(c.ids), slices.Clone(c.members)} }

// view returns the view of a received request that is about c. It shares the lists of c.
func (c cast) view(r *pluginv1.DowningDecideRequest) (downing.View, error) {
	v := downing.View{Members: c.members, Stable: time.Duration(r.GetStableNanos()), Unstable: time.Duration(r.GetUnstableNanos())}
	if v.Stable < 0 || v.Unstable < 0 {
		return downing.View{}, wire.Malformed("stable_nanos", "a duration is negative")
	}
	if uint64(r.GetSelf()) >= uint64(len(v.Members)) {
		return downing.View{}, wire.Malformed("self", "place %d of %d members", r.GetSelf(), len(v.Members))
	}
	v.Self = c.ids[r.GetSelf()]
	var err error
	if v.Unreachable, err = complaintsFromProto(r.GetComplaints(), c.ids); err != nil {
		return downing.View{}, err
	}
	if v.Seen, err = pick("seen", r.GetSeen(), c.ids); err != nil {
		return downing.View{}, err
	}
	if len(r.GetBase()) > wire.MaxVoterSets {
		return downing.View{}, wire.Malformed("base", "%d sets of voters, the limit is %d", len(r.GetBase()), wire.MaxVoterSets)
	}
	v.Base = make(gossip.Base, len(r.GetBase()))
	for i, voters := range r.GetBase() {
		if v.Base[i], err = pick("base", voters.GetNode(), c.ids); err != nil {
			return downing.View{}, err
		}
	}
	if err := v.Validate(); err != nil {
		return downing.View{}, wire.Malformed("members", "%v", err)
	}
	return v, nil
}

func nodesFromProto(p *pluginv1.Nodes) ([]gossip.NodeID, error) {
	n := len(p.GetHost())
	if n > wire.MaxNodes {
		return nil, wire.Malformed("nodes", "%d nodes, the limit is %d", n, wire.MaxNodes)
	}
	if err := wire.SameLength("nodes", n, len(p.GetPort()), len(p.GetUid())); err != nil {
		return nil, err
	}
	ids := make([]gossip.NodeID, n)
	for i := range ids {
		host, port, uid := p.GetHost()[i], p.GetPort()[i], p.GetUid()[i]
		id, err := fields.NodeOf(host, port, uid)
		if err != nil || host == "" || len(host) > gossip.MaxHostBytes || port == 0 || uid == 0 {
			return nil, wire.Malformed("nodes", "node %d is %.300q port %d uid %d", i, host, port, uid)
		}
		ids[i] = id
	}
	return ids, nil
}

func membersFromProto(p *pluginv1.Members, ids []gossip.NodeID) ([]*gossip.Member, error) {
	n := len(p.GetStatus())
	if n > len(ids) || n > gossip.MaxMembers {
		return nil, wire.Malformed("members", "%d members of %d nodes, the limit is %d", n, len(ids), gossip.MaxMembers)
	}
	if err := wire.SameLength("members", n, len(p.GetUpNumber()), len(p.GetZone()), len(p.GetAppVersion()), len(p.GetRoles())); err != nil {
		return nil, err
	}
	for _, column := range [][]uint32{p.GetZone(), p.GetAppVersion()} {
		if err := wire.Within("members.text", column, len(p.GetText())); err != nil {
			return nil, err
		}
	}
	if err := wire.Within("members.roles", p.GetRoles(), len(p.GetRoleSets())); err != nil {
		return nil, err
	}
	all, members := make([]gossip.Member, n), make([]*gossip.Member, n)
	text, roles := p.GetText(), p.GetRoleSets()
	for i, status := range p.GetStatus() {
		if status < pluginv1.MemberStatus_MEMBER_STATUS_JOINING || status > pluginv1.MemberStatus_MEMBER_STATUS_DOWN {
			return nil, wire.Malformed("members.status", "member %d has status %d", i, status)
		}
		m := &all[i]
		m.Node, m.Status, m.UpNumber = ids[i], gossip.Status(status), gossip.UpNumber(p.GetUpNumber()[i])
		m.Zone, m.AppVersion, m.Roles = text[p.GetZone()[i]], text[p.GetAppVersion()[i]], roles[p.GetRoles()[i]].GetRole()
		members[i] = m
	}
	return members, nil
}

func complaintsFromProto(p *pluginv1.Complaints, ids []gossip.NodeID) ([]gossip.Record, error) {
	n := len(p.GetObserver())
	if n > wire.MaxComplaints {
		return nil, wire.Malformed("complaints", "%d complaints, the limit is %d", n, wire.MaxComplaints)
	}
	if err := wire.SameLength("complaints", n, len(p.GetSubject()), len(p.GetReach())); err != nil {
		return nil, err
	}
	if err := wire.Within("complaints.observer", p.GetObserver(), len(ids)); err != nil {
		return nil, err
	}
	if err := wire.Within("complaints.subject", p.GetSubject(), len(ids)); err != nil {
		return nil, err
	}
	records := make([]gossip.Record, n)
	for i := range records {
		reach := p.GetReach()[i]
		if reach != pluginv1.Reach_REACH_UNREACHABLE && reach != pluginv1.Reach_REACH_TERMINATED {
			return nil, wire.Malformed("complaints.reach", "complaint %d says %d", i, reach)
		}
		records[i] = gossip.Record{
			Observer: ids[p.GetObserver()[i]], Subject: ids[p.GetSubject()[i]], Status: gossip.ReachStatus(reach),
		}
	}
	return records, nil
}

// pick returns the nodes at the indices, as a part of ids where the indices are
// consecutive: most members have usually seen the state, and most vote.
func pick(field string, places []uint32, ids []gossip.NodeID) ([]gossip.NodeID, error) {
	if len(places) > wire.MaxNodes {
		return nil, wire.Malformed(field, "%d nodes, the limit is %d", len(places), wire.MaxNodes)
	}
	if err := wire.Within(field, places, len(ids)); err != nil {
		return nil, err
	}
	if consecutive(places) {
		first := int(places[0])
		return ids[first : first+len(places) : first+len(places)], nil
	}
	picked := make([]gossip.NodeID, len(places))
	for i, p := range places {
		picked[i] = ids[p]
	}
	return picked, nil
}

// consecutive reports whether there are indices and each is one above the one before.
func consecutive(places []uint32) bool {
	for i, p := range places {
		if p != places[0]+uint32(i) {
			return false
		}
	}
	return len(places) > 0
}

// DecisionToProto returns the answer for a decision about the view. The error names a
// node that is no member: the contract cannot express it.
func DecisionToProto(v *downing.View, d *downing.Decision) (*pluginv1.DowningDecideResponse, error) {
	p := &pluginv1.DowningDecideResponse{
		Verdict: pluginv1.Verdict(d.Verdict), Down: make([]uint32, len(d.Down)), Reason: wire.Text(d.Reason),
	}
	for i, id := range d.Down {
		place, ok := slices.BinarySearchFunc(v.Members, id, compareMember)
		if !ok {
			return nil, wire.Malformed("down", "%v is named, but is no member", id)
		}
		p.Down[i] = uint32(place)
	}
	return p, nil
}

// DecisionFromProto returns the decision in a received answer. Only its form is checked;
// [downing.Check] checks that it keeps the contract.
func DecisionFromProto(v *downing.View, p *pluginv1.DowningDecideResponse) (downing.Decision, error) {
	verdict := p.GetVerdict()
	if verdict < pluginv1.Verdict_VERDICT_NONE || verdict > pluginv1.Verdict_VERDICT_DOWN_ALL {
		return downing.Decision{}, wire.Malformed("verdict", "%d does not exist", verdict)
	}
	if len(p.GetDown()) > len(v.Members) {
		return downing.Decision{}, wire.Malformed("down", "%d nodes of %d members", len(p.GetDown()), len(v.Members))
	}
	if err := wire.Within("down", p.GetDown(), len(v.Members)); err != nil {
		return downing.Decision{}, err
	}
	d := downing.Decision{Verdict: downing.Verdict(verdict), Reason: p.GetReason()}
	if len(p.GetDown()) > 0 {
		d.Down = make([]gossip.NodeID, len(p.GetDown()))
	}
	for i, place := range p.GetDown() {
		d.Down[i] = v.Members[place].Node
	}
	return d, nil
}
