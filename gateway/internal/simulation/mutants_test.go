// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects, of the machine of a client or of a call at a node, makes a seed fail.
func TestMutantsAreCaught(t *testing.T) {
	const broker, call = "client/internal/broker/broker.go", "gateway/internal/exchange/exchange.go"
	const faults, leaves = "TestClientsUnderFaults", "TestNodesLeaveWithoutAFailedRequest"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, file, test, old, to string }{
		{"what a lost node had is asked again", broker, faults, "			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n", "			if mutant(NAME) {\n				d.requeue(r)\n				continue\n			}\n			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n"},
		{"what was handled is given to another node", broker, faults, "return c == NotDelivered || c == NoStanding || c == UnknownKind }", "return c == NotDelivered && !mutant(\"what a node that ends sends back has failed\") || c == NoStanding || c == UnknownKind || mutant(NAME) && c == EntityFailed }"},
		{"what was canceled is forgotten by the window", broker, faults, "		n.written[r.ID] = nil // ", "		if mutant(NAME) {\n			delete(n.written, r.ID)\n		} else {\n			n.written[r.ID] = nil\n		} // "},
		{"a node is given more than it takes", broker, faults, "n.open() && n.room() > 0 &&", "n.open() && (n.room() > 0 || mutant(NAME)) &&"},
		{"what a node may have is called undelivered", broker, faults, "		d.end(r, Result{Code: UnknownOutcome, Detail: \"no answer came in time\"}, out)\n", "		if mutant(NAME) {\n			d.end(r, d.unsent(r), out)\n			break\n		}\n		d.end(r, Result{Code: UnknownOutcome, Detail: \"no answer came in time\"}, out)\n"},
		{"nobody is told that there is room", broker, faults, "		d.full, out.Room = false, true\n", "		d.full, out.Room = false, !mutant(NAME)\n"},
		{"what was sent is open for ever", call, faults, "	c.open -= outcomes\n", "	if !mutant(NAME) {\n		c.open -= outcomes\n	}\n"},
		{"clients need not read", call, faults, "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout {\n", "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout && !mutant(NAME) {\n"},
		{"replies wait without bound", call, faults, "c.unread > c.cfg.UnreadBytes &&", "c.unread > c.cfg.UnreadBytes && !mutant(NAME) &&"},
		{"what nobody reads is kept", call, faults, "	if c.closed {\n		return false\n", "	if c.closed && !mutant(NAME) {\n		return false\n"},
		{"a node takes what comes", call, faults, "	return requests > int64(l.Requests) ||", "	return !mutant(NAME) && requests > int64(l.Requests) ||"},
		{"a node that ends does not say so", call, leaves, "	going = ending && !c.told\n", "	going = ending && !c.told && !mutant(NAME)\n"},
		{"a node that ends waits for nothing on its way", call, leaves, "return c.open == 0 && c.half }", "return c.open == 0 && (c.half || mutant(NAME) && c.told) }"},
		{"what a node that ends sends back has failed", broker, leaves, "", ""}, // By an edit before.
	} {
		looked := simulationtest.Mutant{
			Name: m.name, Tests: []string{m.test}, Env: []string{"QUORATE_SEEDS=20", "QUORATE_SEED=", "QUORATE_FIRST_SEED=1000"},
		}
		if m.old != "" {
			looked.Edits = []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}
		}
		all = append(all, looked)
	}
	simulationtest.RequireFound(t, "../../..", all)
}
