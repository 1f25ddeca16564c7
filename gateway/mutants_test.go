// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package gateway_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the machine of a client makes its law fail, each of a node a test of the gateway, and each
// of the gate one of that, or of the transport.
func TestMutantsAreCaught(t *testing.T) {
	const broker, laws, node = "client/internal/broker/broker.go", "TestLawsOfTheBroker", "gateway/internal/exchange/exchange.go"
	const leave, answer, closed = "gateway/leave.go", "TestNodesAnswerBeforeTheyLeave", "TestAClosedGatewayHoldsNobody"
	const tapped, arriving, gated = "gateway/service.go", "gateway/arrival.go", "transport/gate/gate.go"
	const door = "transport/grpc/gate.go"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, file, test, old, to string }{
		{"what a lost node had is asked again", broker, laws, "			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n", "			if mutant(NAME) {\n				d.requeue(r)\n				continue\n			}\n			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n"},
		{"what was canceled is forgotten by the window", broker, "TestWhatWasCanceledKeepsItsPlaceInTheWindow", "		n.written[r.ID] = nil // ", "		if mutant(NAME) {\n			delete(n.written, r.ID)\n		} else {\n			n.written[r.ID] = nil\n		} // "},
		{"a node is given more than it takes", broker, laws, "n.open() && n.room() > 0 &&", "n.open() && (n.room() > 0 || mutant(NAME)) &&"},
		{"a node that ends is given requests", broker, laws, "return n.up && !n.going }", "return n.up && (!n.going || mutant(NAME)) }"},
		{"an outcome counts twice", broker, laws, "		delete(n.written, o.ID)\n		if r == nil {\n", "		if !mutant(NAME) {\n			delete(n.written, o.ID)\n		}\n		if r == nil {\n"},
		{"what was handled is given to another node", broker, "TestOnlyWhatNobodyHasHandledGoesToAnotherNode", "return c == NotDelivered || c == NoStanding || c == UnknownKind }", "return c == NotDelivered || c == NoStanding || c == UnknownKind || mutant(NAME) && c == EntityFailed }"},
		{"nobody is told that there is room", broker, laws, "		d.full, out.Room = false, true\n", "		d.full, out.Room = false, !mutant(NAME)\n"},
		{"clients need not read", node, "TestClientsThatNeverReadAreClosed", "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout {\n", "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout && !mutant(NAME) {\n"},
		{"who sends no more gets no outcomes", node, "TestClientsMayEndTheirSide", "return c.open == 0 && c.half }", "return (c.open == 0 || mutant(NAME)) && c.half }"},
		{"nodes leave before their clients are answered", leave, answer, "		out.Publish(component.Busy{Component: d.name})\n", "		if !mutant(NAME) {\n			out.Publish(component.Busy{Component: d.name})\n		}\n"},
		{"a node waits for clients and does not tell them", leave, answer, "			out.Add(endExchangesEffect{})\n", "			if !mutant(NAME) {\n				out.Add(endExchangesEffect{})\n			}\n"},
		{"a gateway that was closed holds its node", leave, closed, "	case <-s.going:\n	}\n", "	case <-s.going:\n		if mutant(NAME) {\n			return\n		}\n	}\n"},
		{"messages are taken before it is known who asks", tapped, "TestWhoAsksIsDecidedBeforeItsMessage", "	if _, err := s.admit(ctx); err != nil {\n		return nil, err\n	}\n	if s.ending() {", "	if _, err := s.admit(ctx); err != nil && !mutant(NAME) {\n		return nil, err\n	}\n	if s.ending() {"},
		{"what arrives has no bound", arriving, "TestWhatArrivesIsBounded", "	for c.conn.bytes > a.conn || a.hosts[host] > a.host || a.bytes > a.all {", "	for !mutant(NAME) && (c.conn.bytes > a.conn && !mutant(\"a connection may hold what a host may\") || a.hosts[host] > a.host && !mutant(\"a host may hold all\") || a.bytes > a.all && !mutant(\"all together may hold anything\")) {"},
		{"messages need not arrive", arriving, "TestMessagesMustArrive", "			if c.swept++; c.swept > sweeps {", "			if c.swept++; c.swept > sweeps && !mutant(NAME) {"},
		{"who has few connections gives way", gated, "TestTheOldestOfTheHostWithMostGivesWay", "		case most == nil || h.pending.Len() > most.pending.Len(),\n", "		case most == nil || h.pending.Len() > most.pending.Len() && !mutant(NAME) || h.pending.Len() < most.pending.Len() && mutant(NAME),\n"},
		{"a host may have any number of connections", gated, "TestHostsHavePlaces", "h.pending.Len() > g.cfg.HostPending:\n", "h.pending.Len() > g.cfg.HostPending && !mutant(NAME):\n"},
		{"strangers may say much", gated, "TestStrangersSayLittle", "	if c.came > g.cfg.Bytes {", "	if c.came > g.cfg.Bytes && !mutant(NAME) {"},
		{"all strangers together may say much", gated, "TestTheHeaviestGivesWay", "	for g.came > g.cfg.AllBytes {", "	for g.came > g.cfg.AllBytes && !mutant(NAME) {"},
		{"any number may be pending", gated, "TestTheOldestOfTheHostWithMostGivesWay", "		case g.pending > g.cfg.Pending:\n", "		case g.pending > g.cfg.Pending && !mutant(NAME):\n"},
		{"the newest gives way of several with as many", gated, "TestTheOldestOfTheHostWithMostGivesWay", "			h.pending.Len() == most.pending.Len() && h.oldest().seq < most.oldest().seq:\n", "			h.pending.Len() == most.pending.Len() && h.oldest().seq < most.oldest().seq != mutant(NAME):\n"},
		{"the newest of a host gives way", gated, "TestTheOldestOfTheHostWithMostGivesWay", "func (h *host) oldest() *Conn { return h.pending.Front().Value.(*Conn) }", "func (h *host) oldest() *Conn {\n	if mutant(NAME) {\n		return h.pending.Back().Value.(*Conn)\n	}\n	return h.pending.Front().Value.(*Conn)\n}"},
		{"who rests keeps the place of who is admitted", gated, "TestTheOldestOfTheHostWithMostGivesWay", "	if c.known.CompareAndSwap(true, false) {\n", "	if c.known.CompareAndSwap(true, false) && !mutant(NAME) {\n"},
		{"who has gone is admitted", gated, "TestTheOldestOfTheHostWithMostGivesWay", "		admitted := c.state == speaks\n", "		admitted := c.state == speaks || mutant(NAME)\n"},
		{"a host may have any number of admitted ones", gated, "TestHostsHavePlaces", "	case h != nil && g.cfg.HostAdmitted > 0 && h.admitted >= g.cfg.HostAdmitted:\n", "	case h != nil && g.cfg.HostAdmitted > 0 && h.admitted >= g.cfg.HostAdmitted && !mutant(NAME):\n"},
		{"any number may be admitted", gated, "TestHostsHavePlaces", "	case g.cfg.Admitted > 0 && g.admitted >= g.cfg.Admitted:\n", "	case g.cfg.Admitted > 0 && g.admitted >= g.cfg.Admitted && !mutant(NAME):\n"},
		{"who could not be admitted waits", gated, "TestHostsHavePlaces", "		if why, full := g.full(c.host); full {\n", "		if why, full := g.full(c.host); full && !mutant(NAME) {\n"},
		{"who has no place stays", gated, "TestHostsHavePlaces", "		_ = c.Conn.Close() // It could not be served.\n", "		if !mutant(NAME) {\n			_ = c.Conn.Close() // It could not be served.\n		}\n"},
		{"who says too much stays", gated, "TestStrangersSayLittle", "	return 0, errors.Join(ErrTooManyBytes, c.Close())\n", "	if mutant(NAME) {\n		return 0, ErrTooManyBytes\n	}\n	return 0, errors.Join(ErrTooManyBytes, c.Close())\n"},
		{"who was admitted once may say anything", gated, "TestStrangersSayLittle", "	if c.state != waits {\n		g.mu.Unlock()\n		return true\n", "	if c.state != waits || mutant(NAME) && c.seq > 2 {\n		g.mu.Unlock()\n		return true\n"},
		{"who is admitted counts among those that wait", gated, "TestTheHeaviestGivesWay", "		g.came -= c.came\n", "		if to != speaks || !mutant(NAME) {\n			g.came -= c.came\n		}\n"},
		{"who rests has said what came before", gated, "TestStrangersSayLittle", "		c.came = 0\n", "		if !mutant(NAME) {\n			c.came = 0\n		}\n"},
		{"the lightest gives way", gated, "TestTheHeaviestGivesWay", "most == nil || c.came > most.came ||", "most == nil || c.came > most.came && !mutant(NAME) || c.came < most.came && mutant(NAME) ||"},
		{"who gave way says more", gated, "TestTheHeaviestGivesWay", "	return !slices.Contains(gone, c)\n", "	return !slices.Contains(gone, c) || mutant(NAME)\n"},
		{"nobody makes room when there are no descriptors", gated, "TestDescriptorsAreFreed", "			g.relieve()\n", "			if !mutant(NAME) {\n				g.relieve()\n			}\n"},
		{"a connection may hold what a host may", arriving, "TestTheLargestCallGivesWay", "", ""},
		{"a host may hold all", arriving, "TestTheLargestCallGivesWay", "", ""},
		{"all together may hold anything", arriving, "TestTheLargestCallGivesWay", "", ""},
		{"the smallest call gives way", arriving, "TestTheLargestCallGivesWay", "most == nil || c.bytes > most.bytes ||", "most == nil || c.bytes > most.bytes && !mutant(NAME) || c.bytes < most.bytes && mutant(NAME) ||"},
		{"the emptiest connection gives way", arriving, "TestTheLargestCallGivesWay", "(most == nil || f.bytes > most.bytes) {", "(most == nil || f.bytes > most.bytes != mutant(NAME)) {"},
		{"the host of who came last gives way", arriving, "TestTheLargestCallGivesWay", "	if a.hosts[host] <= a.host {\n", "	if a.hosts[host] <= a.host && !mutant(NAME) {\n"},
		{"calls cost nothing by themselves", arriving, "TestFramesAreFollowed", "	a.grow(c, callBytes)\n", "	if !mutant(NAME) {\n		a.grow(c, callBytes)\n	}\n"},
		{"what is closed holds its bytes", arriving, "TestTheLargestCallGivesWay", "	for _, c := range f.calls {\n		f.of.drop(c)\n	}\n", "	for _, c := range f.calls {\n		if !mutant(NAME) {\n			f.of.drop(c)\n		}\n	}\n"},
		{"the largest message has no room", arriving, "TestTheLargestMessageHasRoom", "	least := 2 * (message + callBytes)\n", "	least := 2 * (message + callBytes)\n	if mutant(NAME) {\n		least = 0\n	}\n"},
		{"what a handler has counts as on its way", arriving, "TestMessagesHaveTheirTime", "		a.grow(c, -min(bytes, c.bytes-callBytes))\n", "		if !mutant(NAME) {\n			a.grow(c, -min(bytes, c.bytes-callBytes))\n		}\n"},
		{"the second message has the time of the first", arriving, "TestMessagesHaveTheirTime", "		c.swept, c.taken = 0, true\n", "		if c.taken = true; !mutant(NAME) {\n			c.swept = 0\n		}\n"},
		{"who says nothing may call for ever", arriving, "TestMessagesHaveTheirTime", "c.bytes > callBytes || c.once && !c.taken; !waits", "c.bytes > callBytes || (c.once && !mutant(NAME) || mutant(\"who asks for nothing is ended\")) && !c.taken; !waits"},
		{"who asks for nothing is ended", arriving, "TestMessagesHaveTheirTime", "", ""},
		{"padding counts", arriving, "TestFramesAreFollowed", "			f.of.add(f, f.stream, -1-int(rest[0]))\n", "			if !mutant(NAME) {\n				f.of.add(f, f.stream, -1-int(rest[0]))\n			}\n"},
		{"heads of calls count", arriving, "TestFramesAreFollowed", "	if f.head[3] == typeData {\n", "	if f.head[3] == typeData || mutant(NAME) {\n"},
		{"who is let in has no place", tapped, "TestClientsKeepTheirPlaces", "	if f == nil || !f.gate.Admit() {\n", "	if f == nil || !mutant(NAME) && !f.gate.Admit() {\n"},
		{"messages of any size are collected", "gateway/server.go", "TestLargerMessagesAreRefused", "grpc.MaxRecvMsgSize(largest)", "grpc.MaxRecvMsgSize(map[bool]int{false: largest, true: 64 << 20}[mutant(NAME)])"},
		{"a node takes any number of requests", node, "TestTimesAndLimitsOfARequest", "	return requests > int64(l.Requests) ||", "	return requests > int64(l.Requests) && !mutant(NAME) ||"},
		{"a node takes any number of bytes", node, "TestTimesAndLimitsOfARequest", "bytes > int64(l.Bytes) && requests > 1\n", "bytes > int64(l.Bytes) && (requests > 1 && !mutant(NAME) || mutant(\"a large request is never taken\"))\n"},
		{"a large request is never taken", node, "TestTimesAndLimitsOfARequest", "", ""},
		{"clients ask as much as they like", node, "TestARequestIsOpenUntilItsOutcomeIsSent", "	if c.open >= c.cfg.Window {\n", "	if c.open >= c.cfg.Window && !mutant(NAME) {\n"},
		{"replies that are not read have no bound", node, "TestRepliesThatWaitAreBounded", "	if c.unread > c.cfg.UnreadBytes && len(c.outbox) > 1 {\n", "	if c.unread > c.cfg.UnreadBytes && len(c.outbox) > 1 && !mutant(NAME) {\n"},
		{"strangers of one address may open any number", door, "TestUnfinishedConnectionsOfOneAddressAreBounded", "HostPending: cfg.PendingConnections, ", "HostPending: cfg.PendingConnections + map[bool]int{true: 1000}[mutant(NAME)], "},
		{"a host may connect any number of times", door, "TestOneHostHasABoundedNumberOfConnections", "HostAdmitted: cfg.HostConnections, ", "HostAdmitted: cfg.HostConnections * map[bool]int{false: 1, true: 0}[mutant(NAME)], "},
		{"frames of strangers have the size of those of members", "transport/session/pipe.go", "TestConformanceInVirtualTime", "	return size <= transport.StrangerFrameBytes || ", "	return mutant(NAME) || size <= transport.StrangerFrameBytes || "},
		{"a stranger may send any number of bytes", door, "TestStrangersHaveAnAllowance", "	if c.unasked.Add(int64(n)) <= allowance {\n", "	if c.unasked.Add(int64(n)) <= allowance || mutant(NAME) {\n"},
		{"a member has the allowance of strangers", door, "TestStrangersHaveAnAllowance", "large != nil && (*large)() {", "large != nil && (*large)() && !mutant(NAME) {"},
		{"what is asked for counts as unasked", door, "TestStrangersHaveAnAllowance", "		c.large.Store(&large)\n	}\n	c.unasked.Store(0)\n", "		c.large.Store(&large)\n	}\n	if !mutant(NAME) {\n		c.unasked.Store(0)\n	}\n"},
		{"lists are larger than their message allows", "machine/wire/budget.go", "TestListsAreBoundedByTheMessage", "	if n > b.bytes/max(size, 1) {\n", "	if n > b.bytes/max(size, 1) && !mutant(NAME) {\n"},
		{"each list has the room of all", "machine/wire/budget.go", "TestListsAreBoundedByTheMessage", "	b.bytes -= n * size\n", "	if !mutant(NAME) {\n		b.bytes -= n * size\n	}\n"},
		{"who greets has any time", "transport/session/inbound.go", "TestOpenersThatSayTooLittleAreClosedInTime", "	timer := time.AfterFunc(a.e.cfg.HandshakeTimeout, a.late) //", "	timer := time.AfterFunc(a.e.cfg.HandshakeTimeout+map[bool]time.Duration{true: time.Hour}[mutant(NAME)], a.late) //"},
		{"who shakes no hands has any time", "transport/grpc/grpc.go", "TestASilentCallerIsClosed", "		rpc.ConnectionTimeout(t.cfg.HandshakeTimeout),\n", "		rpc.ConnectionTimeout(t.cfg.HandshakeTimeout + map[bool]time.Duration{true: time.Hour}[mutant(NAME)]),\n"},
	} {
		of := "../client/internal/broker"
		switch {
		case m.file == node && !strings.HasPrefix(m.test, "TestClients"):
			of = "internal/exchange"
		case strings.HasPrefix(m.file, "gateway/"):
			of = "."
		case m.file == gated:
			of = "../transport/gate"
		case strings.HasPrefix(m.file, "machine/"):
			of = "../machine/wire"
		case strings.HasPrefix(m.file, "transport/"):
			of = "../transport/grpc"
		}
		one := simulationtest.Mutant{Name: m.name, Package: of, Tests: []string{m.test}}
		if m.old != "" { // Otherwise the edit of another one asks for it.
			one.Edits = []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}
		}
		all = append(all, one)
	}
	simulationtest.RequireFound(t, "..", all)
}
