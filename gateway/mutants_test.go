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
// of the gate one of that.
func TestMutantsAreCaught(t *testing.T) {
	const broker, laws, node = "client/internal/broker/broker.go", "TestLawsOfTheBroker", "gateway/internal/exchange/exchange.go"
	const leave, answer, closed = "gateway/leave.go", "TestNodesAnswerBeforeTheyLeave", "TestAClosedGatewayHoldsNobody"
	const tapped, arriving, gated = "gateway/service.go", "gateway/arrival.go", "transport/gate/gate.go"
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
		{"a node waits for clients and does not tell them", leave, answer, "			out.Add(dismiss{})\n", "			if !mutant(NAME) {\n				out.Add(dismiss{})\n			}\n"},
		{"a gateway that was closed holds its node", leave, closed, "	case <-s.going:\n	}\n", "	case <-s.going:\n		if mutant(NAME) {\n			return\n		}\n	}\n"},
		{"messages are taken before it is known who asks", tapped, "TestWhoAsksIsDecidedBeforeItsMessage", "	if _, err := s.admit(ctx); err != nil {\n		return nil, err\n	}\n	if s.ending() {", "	if _, err := s.admit(ctx); err != nil && !mutant(NAME) {\n		return nil, err\n	}\n	if s.ending() {"},
		{"what arrives has no bound", arriving, "TestWhatArrivesIsBounded", "	for c.conn.bytes > a.conn || a.hosts[host] > a.host || a.bytes > a.all {", "	for !mutant(NAME) && (c.conn.bytes > a.conn || a.hosts[host] > a.host || a.bytes > a.all) {"},
		{"messages need not arrive", arriving, "TestMessagesMustArrive", "			if c.swept++; c.swept > sweeps {", "			if c.swept++; c.swept > sweeps && !mutant(NAME) {"},
		{"who has few connections gives way", gated, "TestTheOldestOfTheHostWithMostGivesWay", "		case most == nil || h.pending.Len() > most.pending.Len(),\n", "		case most == nil || h.pending.Len() > most.pending.Len() && !mutant(NAME) || h.pending.Len() < most.pending.Len() && mutant(NAME),\n"},
		{"a host may have any number of connections", gated, "TestHostsHavePlaces", "h.pending.Len() > g.cfg.HostPending:\n", "h.pending.Len() > g.cfg.HostPending && !mutant(NAME):\n"},
		{"strangers may say much", gated, "TestStrangersSayLittle", "	if c.came > g.cfg.Bytes {", "	if c.came > g.cfg.Bytes && !mutant(NAME) {"},
		{"all strangers together may say much", gated, "TestTheHeaviestGivesWay", "	for g.came > g.cfg.AllBytes {", "	for g.came > g.cfg.AllBytes && !mutant(NAME) {"},
	} {
		of := "../client/internal/broker"
		switch {
		case strings.HasPrefix(m.file, "gateway/"):
			of = "."
		case m.file == gated:
			of = "../transport/gate"
		}
		all = append(all, simulationtest.Mutant{Name: m.name, Package: of, Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, "..", all)
}
