// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/machine"
)

// honest is a machine that is looked at while it sends: no message says of a generation that the
// replica has caught up with it which has not (D9). The leader ends a change by that word, and
// reads that ask the new set alone miss what the replica lacks.
type honest struct {
	*protocol.Machine
	cluster *Cluster
	has     map[chosenAt]bool // By generation, whether the replica had caught up after any step in it.
}

// Step handles an input. A message may leave long after the step in which it was written: it
// says what was the case then.
func (h *honest) Step(now machine.Now, in machine.Input, out *machine.Outbox) {
	before := len(out.Effects())
	h.Machine.Step(now, in, out)
	h.wentOn()
	if r := h.Register(0); r != nil {
		at := chosenAt{r.Lineage, r.Gen}
		h.has[at] = h.has[at] || h.Caught(0)
	}
	for _, e := range out.Effects()[before:] {
		s, _ := e.(machine.Send)
		m, ok := s.Message.(protocol.Envelope)
		if has, was := h.has[chosenAt{m.Lineage, m.Gen}]; ok && m.Caught && was && !has {
			h.cluster.World.Fail(fmt.Errorf("D9: a %T to %s says that its sender has caught up with generation %d, which it has not", m.Body, s.To, m.Gen))
		}
	}
}

// wentOn notes that a group in memory has gone on by itself without a majority, or buckets of it have begun anew, which
// is forgiven for those; and checks that no majority was left of those that run, or of the homes of such a bucket
// (D11). The documentation allows no more (docs/ddata.md, "When replicas are gone for good").
func (h *honest) wentOn() {
	r, c := h.Register(0), h.cluster
	if r == nil || c.opt.Durable || c.wentOn[chosenAt{r.Lineage, r.Gen}] {
		return
	}
	c.wentOn[chosenAt{r.Lineage, r.Gen}] = true
	live := map[protocol.ReplicaID]bool{}
	for _, n := range c.World.Nodes() {
		live[c.nodes[n.ID()].replica] = c.members[n.ID()] != nil
	}
	in := func(id protocol.ReplicaID) bool { return live[id] }
	before := c.chosen[chosenAt{r.Lineage, r.Gen - 1}]
	if on := c.chosen[chosenAt{protocol.Lineage{Turn: r.Lineage.Turn - 1, ID: r.Continues}, r.Gen - 1}]; before == nil && on != nil {
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
