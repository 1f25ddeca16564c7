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
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, file, old, to string }{
		{"what a lost node had is asked again", broker, "			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n", "			if mutant(NAME) {\n				d.requeue(r)\n				continue\n			}\n			d.end(r, Result{Code: UnknownOutcome, Detail: why}, out)\n"},
		{"what was handled is given to another node", broker, "return c == NotDelivered || c == NoStanding || c == UnknownKind }", "return c == NotDelivered || c == NoStanding || c == UnknownKind || mutant(NAME) && c == EntityFailed }"},
		{"what was canceled is forgotten by the window", broker, "		n.written[r.ID] = nil // ", "		if mutant(NAME) {\n			delete(n.written, r.ID)\n		} else {\n			n.written[r.ID] = nil\n		} // "},
		{"a node is given more than it takes", broker, "n.open() && n.room() > 0 &&", "n.open() && (n.room() > 0 || mutant(NAME)) &&"},
		{"what a node may have is called undelivered", broker, "		d.end(r, Result{Code: UnknownOutcome, Detail: \"no answer came in time\"}, out)\n", "		if mutant(NAME) {\n			d.end(r, d.unsent(r), out)\n			break\n		}\n		d.end(r, Result{Code: UnknownOutcome, Detail: \"no answer came in time\"}, out)\n"},
		{"nobody is told that there is room", broker, "		d.full, out.Room = false, true\n", "		d.full, out.Room = false, !mutant(NAME)\n"},
		{"what was sent is open for ever", call, "	c.open -= outcomes\n", "	if !mutant(NAME) {\n		c.open -= outcomes\n	}\n"},
		{"clients need not read", call, "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout {\n", "	if c.since != 0 && time.Duration(now-c.since) >= c.cfg.WriteTimeout && !mutant(NAME) {\n"},
		{"replies wait without bound", call, "c.unread > c.cfg.UnreadBytes &&", "c.unread > c.cfg.UnreadBytes && !mutant(NAME) &&"},
		{"what nobody reads is kept", call, "	if c.closed {\n		return false\n", "	if c.closed && !mutant(NAME) {\n		return false\n"},
		{"a node takes what comes", call, "	return requests > int64(l.Requests) ||", "	return !mutant(NAME) && requests > int64(l.Requests) ||"},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}, Tests: []string{"TestClientsUnderFaults"},
			Env: []string{"QUORATE_SEEDS=20", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	simulationtest.RequireFound(t, "../../..", all)
}
