// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

// questions are the types of this repository that may be more than one concern, by their directory and name, with
// their present numbers. The check demands that a number is lowered with the type, and a type taken out that is
// no question any more. A cut is one suggestion, by the fields alone; a better one may be found by reading.
func questions() map[string]Question {
	return map[string]Question{
		"cluster.Node":                          {Operations: 63, Parts: 1, Cut: "data ends member plugins registry reloader started topics"},
		"ddata.Replicator":                      {Operations: 43, Parts: 1, Cut: "cfg ctx disk feed handle link log node stopped"},
		"ddata/internal/simulation.Cluster":     {Operations: 49, Parts: 1},
		"gossip.State":                          {Operations: 47, Parts: 1, Cut: "bases clock core seen"},
		"gossip.core":                           {Operations: 42, Parts: 1, Cut: "members registers"},
		"membership.Node":                       {Operations: 44, Parts: 1, Cut: "builtIns cluster commands dataDir hub life loaded report search self"},
		"membership/internal/protocol.inquiry":  {Operations: 41, Parts: 1, Cut: "heard known strangers"},
		"sharding/internal/cell.Cell":           {Operations: 52, Parts: 1, Kept: "the door of the runtime to the parts of a cell: a method hands an input to one part, or to several in an order that no part knows"},
		"sharding/internal/cell.origin":         {Operations: 45, Parts: 1, Cut: "blocked cursor places window written"},
		"sharding/internal/control.coordinator": {Operations: 58, Parts: 1, Kept: "it has the parts do what follows from an event, in an order that no part knows; what it knows itself is in its parts"},
		"sharding/internal/control.table":       {Operations: 59, Parts: 1, Cut: "changed changes env phases populated byEpoch snapshots used version wanted"},
		"sharding/internal/runtime.Slot":        {Operations: 53, Parts: 1, Kept: "one lock over one cell: a method takes the lock, calls the cell, and carries out what the cell asks for; asks, lane and batch are types"},
		"sharding/internal/simulation.Cells":    {Operations: 51, Parts: 1},
		"sharding/internal/simulation.Cluster":  {Operations: 46, Parts: 1, Cut: "Ledger chosen client opt orders"},
		"simulation.World":                      {Operations: 65, Parts: 1, Cut: "carriers changed disks endings failure listeners named now observers opt places trace"},
		"tools/tree.Repository":                 {Operations: 48, Parts: 1, Cut: "Fset Modules Root"},
		"transport/session.Endpoint":            {Operations: 46, Parts: 1, Cut: "accepted blocked closed closing handlers in mu named order out probes started wg"},
	}
}
