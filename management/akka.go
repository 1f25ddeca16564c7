// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// The routes of Akka and Pekko Management, for probes and scripts that ask those ([Akka]). They say nothing that
// other routes do not say, in the words of those; writes are the operations of [Operations], with the
// same rules, and are converted into them ([asked]).

// maxAkkaBody bounds the body of a request: two fields of a form.
const maxAkkaBody = 4 << 10

// akkaSeedNodes is how many members are listed as seed nodes at most.
const akkaSeedNodes = 5

// akkaMember is a member in the words of Akka.
type akkaMember struct {
	Node    string   `json:"node"`
	NodeUID string   `json:"nodeUid"`
	Status  string   `json:"status"`
	Roles   []string `json:"roles"`
}

// akkaUnreachable is a member that others cannot reach.
type akkaUnreachable struct {
	Node       string   `json:"node"`
	ObservedBy []string `json:"observedBy"`
}

// akkaMembers is a cluster in the words of Akka.
type akkaMembers struct {
	SelfNode      string            `json:"selfNode"`
	Members       []akkaMember      `json:"members"`
	Unreachable   []akkaUnreachable `json:"unreachable"`
	Leader        string            `json:"leader,omitempty"`
	Oldest        string            `json:"oldest,omitempty"`
	OldestPerRole map[string]string `json:"oldestPerRole"`
}

// akkaSeeds are the members that others may ask to let them join.
type akkaSeeds struct {
	SelfNode  string       `json:"selfNode"`
	SeedNodes []akkaMember `json:"seedNodes"`
}

// akkaMessage is the answer to a write.
type akkaMessage struct {
	Message string `json:"message"`
}

// Akka returns routes with the paths and the JSON of Akka and Pekko Management:
//
//	GET    /cluster/members             the members
//	POST   /cluster/members             joins the nodes in the field address
//	GET    /cluster/members/{address}   one member
//	PUT    /cluster/members/{address}   the field operation: Leave or Down; force
//	DELETE /cluster/members/{address}   leaves
//	PUT    /cluster                     the field operation: Prepare-for-full-shutdown; force
//	GET    /bootstrap/seed-nodes        up to five members that can be reached
//
// The stream of events, /cluster/domain-events, is among those of [Feed.Routes].
//
// A node is written as quorate://cluster@host:port; in requests the protocol and the name of the cluster may be left
// out, and a name that is there must be that of the cluster. Writes are operations for operators, with the header
// [OperatorHeader] and the operation join or leave; of PUT it is "member", and of that of the cluster
// "shutdown-cluster".
func Akka(node *membership.Node) []Route {
	a := akka{operations{node}}
	const member = "/cluster/members/{address}"
	return []Route{
		{Path: "/cluster/members", Summary: "The members, as of Akka Management", Result: akkaMembers{}, Answer: a.members},
		{Path: "/cluster/members", Summary: "Have the node join a cluster, as of Akka Management", Result: akkaMessage{}, Operation: JoinOperation, Authorized: true, Body: maxAkkaBody, Answer: a.join},
		{Path: member, Summary: "One member, as of Akka Management", Result: akkaMember{}, Answer: a.member},
		{Path: member, Summary: "Have a member leave, or declare it failed, as of Akka Management", Result: akkaMessage{}, Method: http.MethodPut, Operation: AkkaOperation, Authorized: true, Body: maxAkkaBody, Answer: a.put},
		{Path: member, Summary: "Have a member leave, as of Akka Management", Result: akkaMessage{}, Method: http.MethodDelete, Operation: LeaveOperation, Authorized: true, Answer: a.leave},
		{Path: "/cluster", Summary: "Have the whole cluster prepare to be stopped, as of Akka Management", Result: akkaMessage{}, Method: http.MethodPut, Operation: ShutdownOperation, Authorized: true, Body: maxAkkaBody, Answer: a.prepare},
		{Path: "/bootstrap/seed-nodes", Summary: "Members that can be asked to let a node join, as of Akka Management", Result: akkaSeeds{}, Answer: a.seeds},
	}
}

// AkkaOperation is the operation of PUT of a member, which says in its body what it changes.
const AkkaOperation = "member"

// akka answers the routes of [Akka].
type akka struct{ operations }

// name writes the address of a node.
func (a akka) name(n gossip.NodeID) string { return akkaName(a.node, n) }

// akkaName writes the address of a node in the cluster of another one.
func akkaName(of *membership.Node, n gossip.NodeID) string {
	return "quorate://" + of.ClusterName() + "@" + n.Address.String()
}

// akkaStatus is a status in the words of Akka.
func akkaStatus(s gossip.Status) string {
	if text, other := map[gossip.Status]string{
		gossip.WeaklyUp: "WeaklyUp", gossip.Preparing: "PreparingForShutdown", gossip.Ready: "ReadyForShutdown",
	}[s]; other {
		return text
	}
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}

// describe describes a member.
func (a akka) describe(m *gossip.Member) akkaMember {
	return akkaMember{
		Node: a.name(m.Node), NodeUID: strconv.FormatUint(uint64(m.Node.UID), 10), Status: akkaStatus(m.Status), Roles: append([]string{}, m.Roles...),
	}
}

// members lists the members.
func (a akka) members(context.Context, Request) (any, error) {
	view := a.node.View()
	answer := akkaMembers{SelfNode: a.name(view.Self), Members: []akkaMember{}, Unreachable: []akkaUnreachable{}, OldestPerRole: map[string]string{}}
	if !view.Leader.IsZero() {
		answer.Leader = a.name(view.Leader)
	}
	var oldest *gossip.Member
	perRole := map[string]*gossip.Member{}
	for _, m := range view.State.Members() {
		answer.Members = append(answer.Members, a.describe(m))
		if observers := view.State.Observers(m.Node); len(observers) > 0 {
			item := akkaUnreachable{Node: a.name(m.Node)}
			for _, o := range observers {
				item.ObservedBy = append(item.ObservedBy, a.name(o))
			}
			answer.Unreachable = append(answer.Unreachable, item)
		}
		if m.UpNumber == 0 {
			continue
		}
		if oldest == nil || m.OlderThan(oldest) {
			oldest = m
		}
		for _, role := range m.Roles {
			if o := perRole[role]; o == nil || m.OlderThan(o) {
				perRole[role] = m
			}
		}
	}
	if oldest != nil {
		answer.Oldest = a.name(oldest.Node)
	}
	for role, m := range perRole {
		answer.OldestPerRole[role] = a.name(m.Node)
	}
	return answer, nil
}

// seeds lists members that a node may ask to let it join, those of the lowest addresses.
func (a akka) seeds(context.Context, Request) (any, error) {
	view := a.node.View()
	answer := akkaSeeds{SelfNode: a.name(view.Self), SeedNodes: []akkaMember{}}
	for _, m := range view.State.Members() { // By address.
		if m.Status >= gossip.Joining && m.Status <= gossip.Up && view.State.Reachable(m.Node) && len(answer.SeedNodes) < akkaSeedNodes {
			answer.SeedNodes = append(answer.SeedNodes, a.describe(m))
		}
	}
	return answer, nil
}

// member describes one member.
func (a akka) member(_ context.Context, r Request) (any, error) {
	m, err := a.addressed(r.Path("address"))
	if err != nil {
		return nil, err
	}
	return a.describe(m), nil
}

// addressed returns the member at an address that may have a protocol and the name of a cluster.
func (a akka) addressed(text string) (*gossip.Member, error) {
	name, address := akkaAddress(text)
	if name != "" && name != a.node.ClusterName() {
		return nil, refuse(http.StatusNotFound, "%q names another cluster than %s", clip(text), a.node.ClusterName())
	}
	return a.find(address)
}

// akkaAddress takes the name of the cluster, none if there is none, and the address out of
// protocol://cluster@host:port.
func akkaAddress(text string) (name, address string) {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text = rest
	}
	if name, address, ok := strings.Cut(text, "@"); ok {
		return name, address
	}
	return "", text
}

// asked is the request to one of [Operations] with these parts.
func asked(path map[string]string, query url.Values) Request {
	return Request{path: func(name string) string { return path[name] }, query: query}
}

// leave has a member leave.
func (a akka) leave(ctx context.Context, r Request) (any, error) {
	m, err := a.addressed(r.Path("address"))
	if err != nil {
		return nil, err
	}
	if _, err := a.operations.leave(ctx, asked(map[string]string{"member": m.Node.String()}, nil)); err != nil {
		return nil, err
	}
	return akkaMessage{"Leaving " + a.name(m.Node)}, nil
}

// put has a member leave, or declares it failed.
func (a akka) put(ctx context.Context, r Request) (any, error) {
	m, err := a.addressed(r.Path("address"))
	if err != nil {
		return nil, err
	}
	form, err := r.Form()
	if err != nil {
		return nil, err
	}
	switch operation := form.Get("operation"); {
	case strings.EqualFold(operation, "leave"):
		return a.leave(ctx, r)
	case strings.EqualFold(operation, "down"):
		if _, err := a.down(ctx, asked(map[string]string{"members": m.Node.String()}, url.Values{"force": form["force"]})); err != nil {
			return nil, err
		}
		return akkaMessage{"Downing " + a.name(m.Node)}, nil
	default:
		return nil, refuse(http.StatusBadRequest, "operation: %q is neither Leave nor Down", clip(operation))
	}
}

// prepare has the whole cluster prepare to be stopped.
func (a akka) prepare(ctx context.Context, r Request) (any, error) {
	form, err := r.Form()
	if err != nil {
		return nil, err
	}
	if operation := form.Get("operation"); !strings.EqualFold(operation, "Prepare-for-full-shutdown") {
		return nil, refuse(http.StatusBadRequest, "operation: %q is not Prepare-for-full-shutdown", clip(operation))
	}
	if _, err := a.shutdown(ctx, asked(nil, url.Values{"force": form["force"]})); err != nil {
		return nil, err
	}
	return akkaMessage{"Preparing for full cluster shutdown"}, nil
}

// join has this node join others.
func (a akka) join(ctx context.Context, r Request) (any, error) {
	form, err := r.Form()
	if err != nil {
		return nil, err
	}
	name, address := akkaAddress(form.Get("address"))
	query := url.Values{}
	if name != "" {
		query.Set("cluster", name)
	}
	if _, err := a.operations.join(ctx, asked(map[string]string{"seeds": address}, query)); err != nil {
		return nil, err
	}
	return akkaMessage{"Joining " + form.Get("address")}, nil
}
