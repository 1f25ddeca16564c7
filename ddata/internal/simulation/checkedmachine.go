// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// checkedMachine is a machine whose messages are checked: none says that its sender has caught up in a generation
// unless it has (D9). If one did, the leader might end the change of the replicas too early, and reads that ask the new
// set alone would miss what the replica lacks.
type checkedMachine struct {
	*protocol.Machine
	cluster *Cluster
	caught  map[generationID]bool // By generation, whether the replica had caught up after any step in it.
}

// Step handles an input. A message may be sent long after the step in which it was made, and says what was true then.
func (h *checkedMachine) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	before := len(out.Effects())
	h.Machine.Step(now, in, out)
	h.checkWithoutMajority()
	if r := h.Register(0); r != nil {
		at := generationID{r.Lineage, r.Gen}
		h.caught[at] = h.caught[at] || h.Caught(0)
	}
	for _, e := range out.Effects()[before:] {
		s, _ := e.(machine.Send)
		m, ok := s.Message.(protocol.Envelope)
		if has, was := h.caught[generationID{m.Lineage, m.Gen}]; ok && m.Caught && was && !has {
			h.cluster.World.Fail(fmt.Errorf("D9: a %T to %s says that its sender has caught up with generation %d, which it has not", m.Body, s.To, m.Gen))
		}
	}
}

// checkWithoutMajority looks whether a group in memory has gone on by itself without a majority, or buckets of it have
// begun anew. It checks that the replicas that run were no majority, or no majority of the homes of such a bucket
// (D11), which is all that is documented (docs/ddata.md, "When replicas are gone for good"). What was written before
// may be lost then.
func (h *checkedMachine) checkWithoutMajority() {
	r, c := h.Register(0), h.cluster
	if r == nil || c.opt.Durable || c.wentOn[generationID{r.Lineage, r.Gen}] {
		return
	}
	c.wentOn[generationID{r.Lineage, r.Gen}] = true
	live := map[protocol.ReplicaID]bool{}
	for _, n := range c.World.Nodes() {
		live[c.nodes[n.ID()].replica] = c.members[n.ID()] != nil
	}
	in := func(id protocol.ReplicaID) bool { return live[id] }
	before := c.registers[generationID{r.Lineage, r.Gen - 1}]
	if on := c.registers[generationID{protocol.Lineage{Turn: r.Lineage.Turn - 1, ID: r.Continues}, r.Gen - 1}]; before == nil && on != nil {
		if before = on; before.Current.Wins(in) && (len(before.Old) == 0 || before.Old.Wins(in)) {
			c.World.Fail(fmt.Errorf("D11: the group went on from generation %d without a majority, although %+v run", before.Gen, before.Current))
		}
		if c.WentOn++; c.opt.Copies == 0 {
			c.History.forgive()
		}
	}
	for _, x := range r.Resets {
		if x.Gen != r.Gen || before == nil {
			continue
		}
		for _, bucket := range x.Buckets {
			if homes := before.Homes(int(bucket), c.opt.Copies); homes.Wins(in) && before.Phase == protocol.PhaseStable {
				c.World.Fail(fmt.Errorf("D11: bucket %d began anew in generation %d, although %+v run", bucket, x.Gen, homes))
			}
			c.Anew++
			c.History.forgiveSome(func(key string) bool { return table.BucketOf(key) == int(bucket) })
		}
	}
}
